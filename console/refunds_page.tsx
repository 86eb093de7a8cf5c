/** The list of the refunds of all payments. */

import type { Refund } from "../client/mod.ts";
import { REFUND_STATUSES } from "../shared/core/vocabulary.ts";
import { call } from "./calls.ts";
import type { Filter } from "./filters.tsx";
import { LinkedRow } from "./linked_row.tsx";
import { ListPage } from "./list_page.tsx";
import { Mention } from "./mention.tsx";
import { href } from "./route.ts";
import { Money, Status, Time, TimeColumn } from "./text.tsx";
import { label } from "./words.ts";

const FILTERS: readonly Filter[] = [
  {
    name: "status",
    label: "Status",
    options: REFUND_STATUSES.map((status) => [status, label(status)]),
  },
  { name: "payment_id", label: "Payment", placeholder: "pay_…" },
];

/** The columns of the file. */
const COLUMNS = [
  "id",
  "created_at",
  "status",
  "amount_decimal",
  "currency",
  "amount_minor",
  "payment_id",
  "payment_status",
  "reason",
  "failure_code",
  "metadata",
];

/** All refunds of the sandbox. */
export function RefundsPage({ query }: { query: Readonly<Record<string, string>> }) {
  return (
    <ListPage
      section="refunds"
      title="Refunds"
      noun="refunds"
      one="refund"
      query={query}
      filters={FILTERS}
      read={(params) => call("refunds", "list", params)}
      columns={COLUMNS}
      empty={<p>You refund a completed payment on its page.</p>}
    >
      {(refunds, busy) => <RefundTable refunds={refunds} busy={busy} />}
    </ListPage>
  );
}

function RefundTable({ refunds, busy }: { refunds: readonly Refund[]; busy: boolean }) {
  return (
    <table class="list" aria-label="Refunds" aria-busy={busy}>
      <thead>
        <tr>
          <th scope="col" class="right">Amount</th>
          <th scope="col">Status</th>
          <th scope="col">Payment</th>
          <th scope="col" class="wide-only">Reason</th>
          <TimeColumn />
        </tr>
      </thead>
      <tbody>
        {refunds.map((refund) => (
          <LinkedRow key={refund.id}>
            <td class="right">
              <a class="row-link" href={href(["payments", refund.payment_id])}>
                <Money amount_minor={refund.amount_minor} currency={refund.currency} />
              </a>
              <span class="phone-only">
                <Time at={refund.created_at} />
              </span>
            </td>
            <td>
              <Status of={refund.status} />
            </td>
            <td>
              <Mention section="payments" id={refund.payment_id} />
            </td>
            <td class="grow wide-only">
              {refund.reason && <span>{label(refund.reason)}</span>}
              {refund.failure_code && <code class="quiet">{refund.failure_code}</code>}
            </td>
            <td class="when wide-only">
              <Time at={refund.created_at} />
            </td>
          </LinkedRow>
        ))}
      </tbody>
    </table>
  );
}
