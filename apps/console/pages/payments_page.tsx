/** The list of payments with filters and pages. It shows new payments without a reload. */

import type { Payment } from "../../../packages/client/mod.ts";
import { METHOD_KINDS, PAYMENT_STATUSES } from "../../../shared/core/vocabulary.ts";
import { call } from "../data/calls.ts";
import { CREATED_FILTERS, type Filter } from "../parts/filters.tsx";
import { instrumentText } from "../data/instrument_text.ts";
import { ListPage } from "../parts/list_page.tsx";
import { MoneyTable } from "../parts/money_table.tsx";
import { href } from "../data/route.ts";
import { label, METHOD_NAMES } from "../data/words.ts";

const FILTERS: readonly Filter[] = [
  {
    name: "status",
    label: "Status",
    options: PAYMENT_STATUSES.map((status) => [status, label(status)]),
  },
  {
    name: "method_kind",
    label: "Method",
    options: METHOD_KINDS.map((kind) => [kind, METHOD_NAMES[kind]]),
  },
  { name: "currency", label: "Currency", placeholder: "EUR" },
  { name: "reference", label: "Reference", placeholder: "order-1001" },
  { name: "customer", label: "Customer’s e-mail", placeholder: "ada@example.com" },
  ...CREATED_FILTERS,
];

/** The filter to which the page of a payment leads. The row has no width for it otherwise. */
const CUSTOMER_ID: Filter = { name: "customer_id", label: "Customer’s id" };

/** The columns of the file. */
const COLUMNS = [
  "id",
  "created_at",
  "status",
  "amount_decimal",
  "currency",
  "amount_minor",
  "amount_captured",
  "amount_refunded",
  "amount_disputed",
  "method_kind",
  "customer.id",
  "customer.email",
  "customer.name",
  "reference",
  "description",
  "failure_code",
  "advice",
  "metadata",
];

/** All payments of the sandbox. */
export function PaymentsPage({ query }: { query: Readonly<Record<string, string>> }) {
  return (
    <ListPage
      section="payments"
      title="Payments"
      noun="payments"
      one="payment"
      query={query}
      filters={query["customer_id"] ? [...FILTERS, CUSTOMER_ID] : FILTERS}
      read={(params) => call("payments", "list", params)}
      columns={COLUMNS}
      action={<a class="button primary" href={href(["payments", "new"])}>Create payment</a>}
      empty={
        <>
          <p>Create a payment with a test card and watch its status.</p>
          <a class="button" href={href(["payments", "new"])}>Create the first payment</a>
        </>
      }
    >
      {(payments, busy) => <PaymentTable payments={payments} busy={busy} />}
    </ListPage>
  );
}

/** The table of payments. */
export function PaymentTable({ payments, busy }: { payments: readonly Payment[]; busy: boolean }) {
  return (
    <MoneyTable
      label="Payments"
      items={payments}
      busy={busy}
      link={({ id }) => href(["payments", id])}
      columns={[
        { heading: "Method", cell: instrumentText },
        { heading: "Reference", wide: "cut", cell: ({ reference }) => reference },
        {
          heading: "Description and customer",
          wide: "grow",
          cell: (payment) => <About payment={payment} />,
        },
      ]}
    />
  );
}

/** The description and the customer of a payment, or its id if it has neither. */
function About({ payment: { id, description, customer } }: { payment: Payment }) {
  if (!description && !customer) return <code class="quiet">{id}</code>;
  return (
    <>
      {description && <span>{description}</span>}
      {customer && <span class="quiet">{customer.email}</span>}
    </>
  );
}
