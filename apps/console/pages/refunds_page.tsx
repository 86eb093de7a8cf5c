/** The list of the refunds of all payments. */

import type { Refund } from "../../../packages/client/mod.ts";
import { REFUND_STATUSES } from "../../../shared/core/vocabulary.ts";
import { call } from "../data/calls.ts";
import type { Filter } from "../parts/filters.tsx";
import { ListPage } from "../parts/list_page.tsx";
import { MoneyTable } from "../parts/money_table.tsx";
import { Mention } from "../parts/mention.tsx";
import { href } from "../data/route.ts";
import { label } from "../data/words.ts";

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
  "payee_check",
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
    <MoneyTable
      label="Refunds"
      items={refunds}
      busy={busy}
      link={({ payment_id }) => href(["payments", payment_id])}
      columns={[
        {
          heading: "Payment",
          cell: ({ payment_id }) => <Mention section="payments" id={payment_id} />,
        },
        {
          heading: "Reason",
          wide: "grow",
          cell: ({ reason, failure_code, return_code }) => (
            <>
              {reason && <span>{label(reason)}</span>}
              {failure_code && <code class="quiet">{failure_code}</code>}
              {return_code && <code class="quiet">{return_code}</code>}
            </>
          ),
        },
      ]}
    />
  );
}
