/** The list of the disputes of all payments. */

import type { Dispute } from "../../../packages/client/mod.ts";
import { DISPUTE_STATUSES } from "../../../shared/core/vocabulary.ts";
import { call } from "../data/calls.ts";
import type { Filter } from "../parts/filters.tsx";
import { ListPage } from "../parts/list_page.tsx";
import { MoneyTable } from "../parts/money_table.tsx";
import { Mention } from "../parts/mention.tsx";
import { href } from "../data/route.ts";
import { Time } from "../parts/text.tsx";
import { label } from "../data/words.ts";

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
    <MoneyTable
      label="Disputes"
      items={disputes}
      busy={busy}
      link={({ payment_id }) => href(["payments", payment_id])}
      columns={[
        {
          heading: "Payment",
          cell: ({ payment_id }) => <Mention section="payments" id={payment_id} />,
        },
        { heading: "Reason", wide: "grow", cell: ({ reason }) => label(reason) },
        {
          heading: "Evidence until",
          wide: "when",
          cell: ({ status, evidence_due_by }) =>
            status === "needs_response" && evidence_due_by && <Time at={evidence_due_by} />,
        },
      ]}
    />
  );
}
