/** The page of a list: filters, pages, a CSV file, and new items without a reload. */

import type { ComponentChildren } from "preact";
import type { ListParams, Page } from "../../../packages/client/mod.ts";
import type { Call } from "../data/calls.ts";
import { ExportButton } from "./export_button.tsx";
import { concerns, failureOf } from "../data/failure.ts";
import { type Filter, Filters, readFilters } from "./filters.tsx";
import { type Column, ListTable, type RowAttributes } from "./list_table.tsx";
import { useLive } from "../data/live.ts";
import { Empty, NoItems, Reading } from "./notice.tsx";
import { LacksScope } from "../data/permissions.ts";
import { Crumb, NewLink, Title } from "./page_parts.tsx";
import { href } from "../data/route.ts";
import { createName, sectionName, wordsOf } from "../data/titles.ts";
import { countText } from "../data/words.ts";

/** Number of items on a page, unless the list has another one. */
const PAGE_SIZE = 20;

type Query = Readonly<Record<string, string>>;

export interface List<T> {
  /** The first step of the route. */
  section: string;
  /** The heading, if it is not the name of the section. */
  title?: (query: Query) => string;
  /** The section to which the page leads back. */
  crumb?: string;
  filters?: (query: Query) => readonly Filter[];
  /** The query of the whole list. Its filters alone do not make a list a filtered one. */
  all?: Query;
  page_size?: number;
  read: (params: ListParams) => Call<Page<T>>;
  /** The columns of the CSV file, separated by spaces. Absent: the page saves no file. */
  csv?: string;
  /** The way to make an item, if the section has no page for it. */
  action?: ComponentChildren;
  /** Text above the filters. */
  about?: (query: Query) => ComponentChildren;
  /** The content of an empty list without filters. */
  empty: (query: Query) => ComponentChildren;
  /** The items; `busy` means that another page is on its way. */
  show: (items: readonly T[], busy: boolean, query: Query) => ComponentChildren;
}

export function tableOf<T extends { id: string }>(
  label: string,
  columns: readonly Column<T>[],
  row?: (item: T, query: Query) => RowAttributes,
): List<T>["show"] {
  return (items, busy, query) => (
    <ListTable
      label={label}
      items={items}
      busy={busy}
      columns={columns}
      row={(item) => row?.(item, query) ?? {}}
    />
  );
}

export function ListPage<T extends object>({ list, query }: { list: List<T>; query: Query }) {
  const { section, all = {}, csv } = list;
  const newLink = (article: string, looks: string) => (
    <NewLink section={section} class={looks}>{createName(section, article)}</NewLink>
  );
  const action = list.action ?? newLink("", "button primary");
  const { one, noun } = wordsOf(section);
  const filters = list.filters?.(query) ?? [];
  const { values, failure: unsent } = readFilters(filters, query);
  const read = unsent ? null : (params: ListParams) => list.read({ ...values, ...params });
  const { starting_after } = query;
  const limit = list.page_size ?? PAGE_SIZE;
  const live = useLive(
    read && read({ limit, include: "total", ...(starting_after && { starting_after }) }),
    { logged: true },
  );
  const is_readable = !(live.error instanceof LacksScope);
  const failure = unsent ?? (live.error === null ? null : failureOf(live.error));
  const is_refused = concerns(failure, filters.map(({ name }) => name));
  const is_filtered = Object.keys(values).some((name) => !(name in all));
  return (
    <>
      {list.crumb !== undefined && <Crumb section={list.crumb} />}
      <Title title={list.title?.(query) ?? sectionName(section)}>
        {csv === undefined ? action : (
          <div class="title-actions">
            <ExportButton
              noun={noun}
              read={is_refused || !is_readable ? null : read}
              columns={csv}
            />
            {action}
          </div>
        )}
      </Title>
      {is_readable && list.about?.(query)}
      {filters.length > 0 && is_readable && (
        <Filters
          label={`Filter ${noun}`}
          steps={[section]}
          filters={filters}
          values={values}
          failure={failure}
          can_save
        />
      )}
      {is_refused
        ? <Empty title="These filters cannot be applied" />
        : (
          <Reading label={noun} live={live} rows={6}>
            {(page) => (
              <>
                {page.data.length > 0
                  ? list.show(page.data, live.is_stale, query)
                  : (
                    <NoItems page={page}>
                      {is_filtered
                        ? (
                          <Empty title={`No ${one} matches`}>
                            <a href={href([section], all)}>Show all {noun}</a>
                          </Empty>
                        )
                        : (
                          <Empty title={`No ${noun} yet`}>
                            {list.empty(query)}
                            {newLink("the first ", "button")}
                          </Empty>
                        )}
                    </NoItems>
                  )}
                <Total of={page} one={one} noun={noun} />
                <Pager page={page} query={query} steps={[section]} />
              </>
            )}
          </Reading>
        )}
    </>
  );
}

/** Says how many items the list has, if that is known. */
function Total({ of: { total }, one, noun }: { of: Page<unknown>; one: string; noun: string }) {
  if (!total || total.count === 0) return null;
  return (
    <p class="quiet">
      {!total.is_exact && "More than "}
      {countText(total.count)} {total.count === 1 ? one : noun}
    </p>
  );
}

/** The cursor of the previous page, by cursor. The API has cursors in one direction only. */
const previous_of = new Map<string, string>();

/** Links to the newest, the newer and the older page. */
export function Pager<T>(props: {
  page: Page<T>;
  steps: readonly string[];
  query: Readonly<Record<string, string>>;
  /** The parameter of the route with the cursor. */
  cursor?: string;
}) {
  const { page: { next_cursor, has_more }, steps, cursor = "starting_after" } = props;
  const { [cursor]: shown = "", ...query } = props.query;
  const older = has_more && next_cursor !== null ? next_cursor : null;
  if (older === null && shown === "") return null;
  if (older !== null) previous_of.set(older, shown);
  const newer = previous_of.get(shown);
  return (
    <nav class="pager" aria-label="Pages">
      {shown !== "" && <a class="button" href={href(steps, query)}>Newest</a>}
      {newer !== undefined && newer !== "" && (
        <a class="button" href={href(steps, { ...query, [cursor]: newer })}>Newer</a>
      )}
      {older !== null && (
        <a class="button" href={href(steps, { ...query, [cursor]: older })}>Older</a>
      )}
    </nav>
  );
}
