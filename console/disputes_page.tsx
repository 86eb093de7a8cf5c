/** The list of the disputes of all payments. */

import type { Dispute } from "../client/mod.ts";
import { DISPUTE_STATUSES } from "../shared/core/vocabulary.ts";
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
    options: DISPUTE_STATUSES.map((status) => [status, label(status)]),
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
  "reason",
  "evidence_due_by",
  "evidence.submitted_at",
  "evidence.text",
  "closed_at",
];

/** All disputes of the sandbox. */
export function DisputesPage({ query }: { query: Readonly<Record<string, string>> }) {
  return (
    <ListPage
      section="disputes"
      title="Disputes"
      noun="disputes"
      one="dispute"
      query={query}
      filters={FILTERS}
      read={(params) => call("disputes", "list", params)}
      columns={COLUMNS}
      empty={
        <p>
          A payer disputes a payment when you advance it to “Chargeback”, and at once with the test
          card that ends with 0259.
        </p>
      }
    >
      {(disputes, busy) => <DisputeTable disputes={disputes} busy={busy} />}
    </ListPage>
  );
}

function DisputeTable({ disputes, busy }: { disputes: readonly Dispute[]; busy: boolean }) {
  return (
    <table class="list" aria-label="Disputes" aria-busy={busy}>
      <thead>
        <tr>
          <th scope="col" class="right">Amount</th>
          <th scope="col">Status</th>
          <th scope="col">Payment</th>
          <th scope="col" class="wide-only">Reason</th>
          <th scope="col" class="wide-only">Evidence until</th>
          <TimeColumn />
        </tr>
      </thead>
      <tbody>
        {disputes.map((dispute) => (
          <LinkedRow key={dispute.id}>
            <td class="right">
              <a class="row-link" href={href(["payments", dispute.payment_id])}>
                <Money amount_minor={dispute.amount_minor} currency={dispute.currency} />
              </a>
              <span class="phone-only">
                <Time at={dispute.created_at} />
              </span>
            </td>
            <td>
              <Status of={dispute.status} />
            </td>
            <td>
              <Mention section="payments" id={dispute.payment_id} />
            </td>
            <td class="grow wide-only">{label(dispute.reason)}</td>
            <td class="when wide-only">
              {dispute.status === "needs_response" && dispute.evidence_due_by && (
                <Time at={dispute.evidence_due_by} />
              )}
            </td>
            <td class="when wide-only">
              <Time at={dispute.created_at} />
            </td>
          </LinkedRow>
        ))}
      </tbody>
    </table>
  );
}
