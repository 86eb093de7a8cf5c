/** The list of payments with filters and pages. It shows new payments without a reload. */

import type { Payment } from "../client/mod.ts";
import { METHOD_KINDS, PAYMENT_STATUSES } from "../shared/core/vocabulary.ts";
import { call } from "./calls.ts";
import { concerns, failureOf } from "./failure.ts";
import { CREATED_FILTERS, type Filter, Filters, readFilters } from "./filters.tsx";
import { instrumentText } from "./instrument_text.ts";
import { LinkedRow } from "./linked_row.tsx";
import { useLive } from "./live.ts";
import { Empty, NoItems, Reading } from "./notice.tsx";
import { Pager } from "./pager.tsx";
import { href } from "./route.ts";
import { CreatedColumn, Money, Status, Time } from "./text.tsx";
import { label, METHOD_NAMES } from "./words.ts";

/** Number of payments on a page. */
const PAGE_SIZE = 20;

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
const NAMES = FILTERS.map(({ name }) => name);

/** All payments of the sandbox. */
export function PaymentsPage({ query }: { query: Readonly<Record<string, string>> }) {
  const { values, failure: unsent } = readFilters(FILTERS, query);
  const live = useLive(
    unsent ? null : call("payments", "list", {
      limit: PAGE_SIZE,
      ...values,
      ...(query["starting_after"] && { starting_after: query["starting_after"] }),
    }),
    { logged: true },
  );
  const failure = unsent ?? (live.error === null ? null : failureOf(live.error));
  const is_filtered = Object.keys(values).length > 0;
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>Payments</h1>
        <a class="button primary" href={href(["payments", "new"])}>Create payment</a>
      </div>
      <Filters
        label="Filter payments"
        steps={["payments"]}
        filters={FILTERS}
        values={values}
        failure={failure}
      />
      {concerns(failure, NAMES)
        ? <Empty title="These filters cannot be applied" />
        : (
          <Reading label="payments" live={live} rows={6}>
            {(page) => (
              <>
                {page.data.length === 0
                  ? (
                    <NoItems page={page}>
                      <NoPayments is_filtered={is_filtered} />
                    </NoItems>
                  )
                  : <PaymentTable payments={page.data} busy={live.is_stale} />}
                <Pager page={page} query={query} steps={["payments"]} />
              </>
            )}
          </Reading>
        )}
    </>
  );
}

function NoPayments({ is_filtered }: { is_filtered: boolean }) {
  if (is_filtered) {
    return (
      <Empty title="No payment matches">
        <a href={href(["payments"])}>Show all payments</a>
      </Empty>
    );
  }
  return (
    <Empty title="No payments yet">
      <p>Create a payment with a test card and watch its status.</p>
      <a class="button" href={href(["payments", "new"])}>Create the first payment</a>
    </Empty>
  );
}

function PaymentTable({ payments, busy }: { payments: readonly Payment[]; busy: boolean }) {
  return (
    <table class="list" aria-label="Payments" aria-busy={busy}>
      <thead>
        <tr>
          <th scope="col" class="right">Amount</th>
          <th scope="col">Status</th>
          <th scope="col">Method</th>
          <th scope="col" class="wide-only">Reference</th>
          <th scope="col" class="wide-only">Description and customer</th>
          <CreatedColumn />
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
