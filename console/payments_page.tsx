/** The list of payments with filters and pages. It shows new payments without a reload. */

import type { ComponentChildren, TargetedEvent } from "preact";
import type { Payment } from "../client/mod.ts";
import { METHOD_KINDS, PAYMENT_STATUSES } from "../shared/core/vocabulary.ts";
import { call } from "./calls.ts";
import { concerns, type Failure, failureOf } from "./failure.ts";
import { FieldFault } from "./form.tsx";
import { instrumentText } from "./instrument_text.ts";
import { useLive } from "./live.ts";
import { Empty, NoItems, Reading } from "./notice.tsx";
import { Pager } from "./pager.tsx";
import { go, href } from "./route.ts";
import { Money, Status, Time } from "./text.tsx";
import { label, METHOD_NAMES } from "./words.ts";

/** Number of payments on a page. */
const PAGE_SIZE = 20;

const FILTERS = [
  "status",
  "method_kind",
  "currency",
  "reference",
  "created_after",
  "created_before",
] as const;

/** All payments of the sandbox. */
export function PaymentsPage({ query }: { query: Readonly<Record<string, string>> }) {
  const filters = Object.fromEntries(
    FILTERS.flatMap((name) => query[name] ? [[name, query[name]]] : []),
  );
  const live = useLive(
    call("payments", "list", {
      limit: PAGE_SIZE,
      ...filters,
      ...instants(filters),
      ...(query["starting_after"] && { starting_after: query["starting_after"] }),
    }),
    { logged: true },
  );
  const failure = live.error === null ? null : failureOf(live.error);
  const is_filtered = Object.keys(filters).length > 0;
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>Payments</h1>
        <a class="button primary" href={href(["payments", "new"])}>Create payment</a>
      </div>
      <Filters values={filters} failure={failure} />
      {concerns(failure, FILTERS)
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

/** Converts the local times of the fields to RFC 3339 in UTC. */
function instants(filters: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    ["created_after", "created_before"].flatMap((name) => {
      const date = new Date(filters[name] ?? "");
      return Number.isNaN(date.getTime()) ? [] : [[name, date.toISOString()]];
    }),
  );
}

function Filters(props: { values: Readonly<Record<string, string>>; failure: Failure | null }) {
  const { values, failure } = props;
  const set = (name: string) => (event: TargetedEvent<HTMLInputElement | HTMLSelectElement>) =>
    go(["payments"], { ...values, [name]: event.currentTarget.value.trim() }, true);
  const control = (name: string) => ({
    value: values[name] ?? "",
    onChange: set(name),
    ...(concerns(failure, [name]) &&
      { "aria-invalid": "true" as const, "aria-describedby": `${name}-error` }),
  });
  const text = { autoComplete: "off", spellcheck: false } as const;
  const count = Object.keys(values).length;
  return (
    <form
      class="filters"
      role="search"
      aria-label="Filter payments"
      onSubmit={(event) => event.preventDefault()}
    >
      <FilterField name="status" label="Status" failure={failure}>
        <select {...control("status")}>
          <option value="">Any</option>
          {PAYMENT_STATUSES.map((status) => (
            <option key={status} value={status}>{label(status)}</option>
          ))}
        </select>
      </FilterField>
      <FilterField name="method_kind" label="Method" failure={failure}>
        <select {...control("method_kind")}>
          <option value="">Any</option>
          {METHOD_KINDS.map((kind) => <option key={kind} value={kind}>{METHOD_NAMES[kind]}
          </option>)}
        </select>
      </FilterField>
      <FilterField name="currency" label="Currency" failure={failure}>
        <input {...control("currency")} {...text} type="text" placeholder="EUR" />
      </FilterField>
      <FilterField name="reference" label="Reference" failure={failure}>
        <input {...control("reference")} {...text} type="text" />
      </FilterField>
      <FilterField name="created_after" label="After" failure={failure}>
        <input {...control("created_after")} type="datetime-local" />
      </FilterField>
      <FilterField name="created_before" label="Before" failure={failure}>
        <input {...control("created_before")} type="datetime-local" />
      </FilterField>
      {count > 0 && (
        <button type="button" class="plain" onClick={() => go(["payments"], {}, true)}>
          Clear {count === 1 ? "filter" : `${count} filters`}
        </button>
      )}
    </form>
  );
}

function FilterField(props: {
  name: string;
  label: string;
  failure: Failure | null;
  children: ComponentChildren;
}) {
  const { name, label, failure } = props;
  return (
    <div class={`filter filter-${name}`}>
      <label>
        <span>{label}</span>
        {props.children}
      </label>
      {concerns(failure, [name]) && <FieldFault id={`${name}-error`} failure={failure} />}
    </div>
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
          <th scope="col" class="wide-only">Description</th>
          <th scope="col" class="wide-only">Created</th>
        </tr>
      </thead>
      <tbody>
        {payments.map((payment) => (
          <tr key={payment.id}>
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
            <td class="grow wide-only">
              {payment.description ?? payment.customer?.email ?? (
                <code class="quiet">{payment.id}</code>
              )}
            </td>
            <td class="when wide-only">
              <Time at={payment.created_at} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
