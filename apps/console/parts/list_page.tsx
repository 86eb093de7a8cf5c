/** The page of a list: filters, pages, a CSV file, and new items without a reload. */

import type { ComponentChildren } from "preact";
import type { ListParams, Page } from "../../../packages/client/mod.ts";
import type { Call } from "../data/calls.ts";
import type { Column } from "../data/csv.ts";
import { ExportButton } from "./export_button.tsx";
import { concerns, failureOf } from "../data/failure.ts";
import { type Filter, Filters, readFilters } from "./filters.tsx";
import { useLive } from "../data/live.ts";
import { Empty, NoItems, Reading } from "./notice.tsx";
import { Pager } from "./pager.tsx";
import { href } from "../data/route.ts";

/** Number of items on a page. */
const PAGE_SIZE = 20;

/** The page. `children` renders the table; `busy` means that another page is on its way. */
export function ListPage<T extends object>(props: {
  /** The first step of the route. */
  section: string;
  title: string;
  /** The items in the plural, in the words of the messages: `ledger entries`. */
  noun: string;
  /** One item, in the words of an empty list: `ledger entry`. */
  one: string;
  query: Readonly<Record<string, string>>;
  filters: readonly Filter[];
  read: (params: ListParams) => Call<Page<T>>;
  /** The columns of the CSV file. */
  columns: readonly Column[];
  /** The way to make an item. */
  action?: ComponentChildren;
  /** Text above the filters. */
  about?: ComponentChildren;
  /** The content of an empty list without filters. */
  empty: ComponentChildren;
  children: (items: readonly T[], busy: boolean) => ComponentChildren;
}) {
  const { section, noun, one, query, filters, read } = props;
  const { values, failure: unsent } = readFilters(filters, query);
  const filtered = unsent ? null : (params: ListParams) => read({ ...values, ...params });
  const { starting_after } = query;
  const live = useLive(
    filtered && filtered({ limit: PAGE_SIZE, ...(starting_after && { starting_after }) }),
    { logged: true },
  );
  const failure = unsent ?? (live.error === null ? null : failureOf(live.error));
  const is_refused = concerns(failure, filters.map(({ name }) => name));
  const is_filtered = Object.keys(values).length > 0;
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>{props.title}</h1>
        <div class="title-actions">
          <ExportButton noun={noun} read={is_refused ? null : filtered} columns={props.columns} />
          {props.action}
        </div>
      </div>
      {props.about}
      {filters.length > 0 && (
        <Filters
          label={`Filter ${noun}`}
          steps={[section]}
          filters={filters}
          values={values}
          failure={failure}
        />
      )}
      {is_refused
        ? <Empty title="These filters cannot be applied" />
        : (
          <Reading label={noun} live={live} rows={6}>
            {(page) => (
              <>
                {page.data.length > 0
                  ? props.children(page.data, live.is_stale)
                  : (
                    <NoItems page={page}>
                      {is_filtered
                        ? (
                          <Empty title={`No ${one} matches`}>
                            <a href={href([section])}>Show all {noun}</a>
                          </Empty>
                        )
                        : <Empty title={`No ${noun} yet`}>{props.empty}</Empty>}
                    </NoItems>
                  )}
                <Pager page={page} query={query} steps={[section]} />
              </>
            )}
          </Reading>
        )}
    </>
  );
}
