/** The matches of a search: payments, transfers, and requests with an idempotency key. */

import { MAX_SEARCH, MIN_SEARCH } from "../../../shared/schema/limits.ts";
import { call } from "../data/calls.ts";
import { useLive } from "../data/live.ts";
import { Cut, Empty, NoItems, Reading } from "../parts/notice.tsx";
import { PaymentTable } from "./payments_page.tsx";
import { RequestTable } from "./requests_page.tsx";
import { whyNoPage } from "../data/resource_link.ts";
import { TransferTable } from "./transfers_page.tsx";

/** Number of matches in each list. */
const SHOWN = 20;
/** Milliseconds between two searches: each reads many rows. */
const EVERY_MS = 10_000;

/** The page. */
export function SearchPage({ text }: { text: string }) {
  const reason = whyNoPage(text);
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>Search</h1>
        {text !== "" && <p class="quiet">For “{text}”</p>}
      </div>
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
        <Reading label="payments" live={payments} rows={3}>
          {(page) =>
            page.data.length === 0
              ? (
                <NoItems page={page}>
                  <Empty title="No payment matches" />
                </NoItems>
              )
              : (
                <>
                  <PaymentTable payments={page.data} busy={payments.is_stale} />
                  <Cut page={page} />
                </>
              )}
        </Reading>
      </section>
      <section aria-labelledby="transfers">
        <h2 id="transfers">Transfers</h2>
        <Reading label="transfers" live={transfers} rows={1}>
          {(page) =>
            page.data.length === 0
              ? (
                <NoItems page={page}>
                  <Empty title="No transfer matches" />
                </NoItems>
              )
              : (
                <>
                  <TransferTable transfers={page.data} busy={transfers.is_stale} />
                  <Cut page={page} />
                </>
              )}
        </Reading>
      </section>
      <section aria-labelledby="requests">
        <h2 id="requests">Requests with this idempotency key</h2>
        <Reading label="requests" live={requests} rows={1}>
          {(page) =>
            page.data.length === 0
              ? <Empty title="No request has this key" />
              : <RequestTable requests={page.data} busy={requests.is_stale} />}
        </Reading>
      </section>
    </div>
  );
}
