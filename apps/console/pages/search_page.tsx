/** The matches of a search: payments, transfers, and requests with an idempotency key. */

import { MAX_SEARCH, MIN_SEARCH } from "../../../shared/schema/limits.ts";
import { call } from "../data/calls.ts";
import { useLive } from "../data/live.ts";
import { PAYMENTS, TRANSFERS } from "./money_lists.tsx";
import { Empty, ReadingList } from "../parts/notice.tsx";
import { REQUESTS } from "./other_lists.tsx";
import { Title } from "../parts/page_parts.tsx";
import { whyNoPage } from "../data/resource_link.ts";

/** Number of matches in each list. */
const SHOWN = 20;
/** Milliseconds between two searches: each reads many rows. */
const EVERY_MS = 10_000;

/** The page. */
export function SearchPage({ text }: { text: string }) {
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
              An id opens its page. Part of a reference, a description, or the e-mail address or
              name of a customer lists the matches.
            </p>
          </Empty>
        )
        : <Matches text={text} />}
    </>
  );
}

function Matches({ text }: { text: string }) {
  const options = { logged: true, every_ms: EVERY_MS };
  const payments = useLive(call("payments", "list", { search: text, limit: SHOWN }), options);
  const transfers = useLive(call("transfers", "list", { search: text, limit: SHOWN }), options);
  const requests = useLive(
    call("sandbox", "listRequests", { idempotency_key: text, limit: SHOWN }),
    options,
  );
  return (
    <div class="matches">
      <section aria-labelledby="payments">
        <h2 id="payments">Payments</h2>
        <ReadingList label="payments" live={payments} rows={3} none="No payment matches">
          {(items) => PAYMENTS.show(items, payments.is_stale, {})}
        </ReadingList>
      </section>
      <section aria-labelledby="transfers">
        <h2 id="transfers">Transfers</h2>
        <ReadingList label="transfers" live={transfers} rows={1} none="No transfer matches">
          {(items) => TRANSFERS.show(items, transfers.is_stale, {})}
        </ReadingList>
      </section>
      <section aria-labelledby="requests">
        <h2 id="requests">Requests with this idempotency key</h2>
        <ReadingList
          label="requests"
          live={requests}
          rows={1}
          none="No request has this key"
          is_paged
        >
          {(items) => REQUESTS.show(items, requests.is_stale, {})}
        </ReadingList>
      </section>
    </div>
  );
}
