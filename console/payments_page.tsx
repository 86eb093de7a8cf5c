/** The list of payments with filters and pages. It shows new payments without a reload. */

import type { Payment } from "../client/mod.ts";
import { METHOD_KINDS, PAYMENT_STATUSES } from "../shared/core/vocabulary.ts";
import { call } from "./calls.ts";
import { CREATED_FILTERS, type Filter } from "./filters.tsx";
import { instrumentText } from "./instrument_text.ts";
import { LinkedRow } from "./linked_row.tsx";
import { ListPage } from "./list_page.tsx";
import { href } from "./route.ts";
import { Money, Status, Time, TimeColumn } from "./text.tsx";
import { label, METHOD_NAMES } from "./words.ts";

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
    <table class="list" aria-label="Payments" aria-busy={busy}>
      <thead>
        <tr>
          <th scope="col" class="right">Amount</th>
          <th scope="col">Status</th>
          <th scope="col">Method</th>
          <th scope="col" class="wide-only">Reference</th>
          <th scope="col" class="wide-only">Description and customer</th>
          <TimeColumn />
        </tr>
      </thead>
      <tbody>
        {payments.map((payment) => (
          <LinkedRow key={payment.id}>
            <td class="right">
              <a class="row-link" href={href(["payments", payment.id])}>
                <Money amount_minor={payment.amount_minor} currency={payment.currency} />
              </a>
              <span class="phone-only">
                <Time at={payment.created_at} />
              </span>
            </td>
            <td>
              <Status of={payment.status} />
            </td>
            <td>{instrumentText(payment)}</td>
            <td class="cut wide-only">{payment.reference}</td>
            <td class="grow wide-only">
              <About payment={payment} />
            </td>
            <td class="when wide-only">
              <Time at={payment.created_at} />
            </td>
          </LinkedRow>
        ))}
      </tbody>
    </table>
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
