/** The matches of a search: payments, transfers, and requests with an idempotency key. */

import type { ComponentChildren } from "preact";
import type { Page } from "../../../packages/client/mod.ts";
import { MAX_SEARCH, MIN_SEARCH } from "../../../shared/schema/limits.ts";
import { type Call, call } from "../data/calls.ts";
import { useLive } from "../data/live.ts";
import { PAYMENTS, TRANSFERS } from "./money_lists.tsx";
import { type List, Pager } from "../parts/list_page.tsx";
import { Empty, ReadingList } from "../parts/notice.tsx";
import { REQUESTS } from "./other_lists.tsx";
import { Title } from "../parts/page_parts.tsx";
import { whyNoPage } from "../data/resource_link.ts";

const SHOWN = 20;
/** Milliseconds between two searches: each can read many rows. */
const EVERY_MS = 10_000;

type Query = Readonly<Record<string, string>>;

export function SearchPage({ query }: { query: Query }) {
  const text = query["q"] ?? "";
  const reason = whyNoPage(text);
  return (
    <>
      <Title title="Search">{text !== "" && <p class="quiet">For “{text}”</p>}</Title>
      {reason !== null
        ? (
          <Empty title="This id has no page">
            <p>{reason}</p>
          </Empty>
        )
        : text.length < MIN_SEARCH || text.length > MAX_SEARCH
        ? (
          <Empty title={`Type ${MIN_SEARCH} to ${MAX_SEARCH} characters`}>
            <p>
              An id opens its page. A reference, an e-mail address, a name, an amount, the last four
              digits, an order number, an idempotency key or words of a description list the
              payments.
            </p>
          </Empty>
        )
        : (
          <div class="matches">
            <Matches
              title="Payments"
              list={PAYMENTS}
              read={(page) => call("payments", "list", { search: text, ...page })}
              query={query}
              none="No payment matches"
              about_none="A new payment can take 5 seconds to be found."
            />
            <Matches
              title="Transfers"
              list={TRANSFERS}
              read={(page) => call("transfers", "list", { search: text, ...page })}
              query={query}
              none="No transfer matches"
            />
            <Matches
              title="Requests with this idempotency key"
              list={REQUESTS}
              read={(page) => call("sandbox", "listRequests", { idempotency_key: text, ...page })}
              query={query}
              none="No request has this key"
            />
          </div>
        )}
    </>
  );
}

function Matches<T extends object>(props: {
  title: string;
  list: List<T>;
  read: (page: { limit: number; starting_after?: string }) => Call<Page<T>>;
  query: Query;
  none: string;
  about_none?: ComponentChildren;
}) {
  const { title, list: { section, show }, read, query, none, about_none } = props;
  const cursor = `${section}_after`;
  const starting_after = query[cursor];
  const live = useLive(
    read({ limit: SHOWN, ...(starting_after && { starting_after }) }),
    { logged: true, every_ms: EVERY_MS },
  );
  return (
    <section aria-labelledby={section}>
      <h2 id={section}>{title}</h2>
      <ReadingList
        label={section}
        live={live}
        rows={1}
        none={none}
        about_none={about_none && <p>{about_none}</p>}
        is_paged
      >
        {(items) => show(items, live.is_stale, {})}
      </ReadingList>
      {live.data && <Pager page={live.data} steps={["search"]} query={query} cursor={cursor} />}
    </section>
  );
}
