/** The lists of payments, refunds, disputes, transfers and ledger entries. */

import type {
  Checkout,
  Dispute,
  LedgerEntry,
  Payment,
  Refund,
  Transfer,
} from "../../../packages/client/mod.ts";
import {
  DISPUTE_STATUSES,
  METHOD_KINDS,
  PAYMENT_STATUSES,
  REFUND_STATUSES,
  TRANSFER_STATUSES,
} from "../../../shared/core/vocabulary.ts";
import { RAILS } from "../../../shared/domain/rails.ts";
import type { PaymentText } from "../../../shared/schema/payment.ts";
import { ACCOUNT_TEXTS, ACCOUNTS, label } from "../data/words.ts";
import { call } from "../data/calls.ts";
import { choiceOf, CREATED_FILTERS, type Filter } from "../parts/filters.tsx";
import { destinationText, methodText } from "../data/method_text.ts";
import { type List, tableOf } from "../parts/list_page.tsx";
import { type Column, timeColumn } from "../parts/list_table.tsx";
import { Mention } from "../parts/mention.tsx";
import { PayeeMark } from "../parts/payee_check.tsx";
import { href } from "../data/route.ts";
import { Money, Status, Time } from "../parts/text.tsx";

const CURRENCY: Filter = { name: "currency", label: "Currency", placeholder: "EUR" };
const PAYMENT: Filter = { name: "payment_id", label: "Payment", placeholder: "pay_…" };

/**
 * The columns of a list of money: the amount, which is the link, the status, others and the time. A
 * narrow list has the time and the first of the others in the columns before.
 */
export function moneyColumns<T extends Payment | Checkout | Refund | Dispute | Transfer>(
  link: (item: T) => string,
  [first, ...others]: readonly [Column<T>, ...Column<T>[]],
): Column<T>[] {
  return [
    {
      heading: "Amount",
      class: "right",
      cell: (item) => (
        <>
          <a class="row-link" href={link(item)}>
            <Money amount_minor={item.amount_minor} currency={item.currency} />
          </a>
          <span class="until-600">
            <Time at={item.created_at} />
          </span>
        </>
      ),
    },
    {
      heading: "Status",
      cell: (item) => (
        <>
          <Status of={item.status} />
          {"payee_check" in item && <PayeeMark of={item} />}
          <span class="until-460">{first.cell(item)}</span>
        </>
      ),
    },
    { ...first, class: "from-460" },
    ...others,
    timeColumn(),
  ];
}

/** Returns the columns of a list whose rows lead to a payment. */
function ofPayment<T extends Refund | Dispute>(others: readonly Column<T>[]): Column<T>[] {
  return moneyColumns(({ payment_id }) => href(["payments", payment_id]), [
    {
      heading: "Payment",
      cell: ({ payment_id }) => <Mention id={payment_id} />,
    },
    ...others,
  ]);
}

const TEXTS = Object.keys(
  { reference: 1, description: 1 } satisfies Record<Exclude<PaymentText, "return_url">, 1>,
).join(" ");

/** The columns that tell payments and checkouts apart. */
export const ABOUT_COLUMNS: readonly Column<Payment | Checkout>[] = [
  { heading: "Reference", class: "cut from-940", cell: ({ reference }) => reference },
  {
    heading: "Description and customer",
    class: "grow from-760",
    cell: ({ id, description, customer }) => (
      <>
        {description && <span>{description}</span>}
        {customer && <span class="quiet">{customer.email}</span>}
        {!description && !customer && <code class="quiet">{id}</code>}
      </>
    ),
  },
];

/** Returns the columns of payments, whose rows lead to a page. */
export const paymentColumns = (link: (payment: Payment) => string) =>
  moneyColumns<Payment>(link, [{ heading: "Method", cell: methodText }, ...ABOUT_COLUMNS]);

/** Returns the table of payments that a page has in common, with the column that differs. */
const paymentsOf = (column: Column<Payment>) =>
  tableOf("Payments", moneyColumns<Payment>(({ id }) => href(["payments", id]), [column]));

/** The payments of an instrument. Their method and their customer are those of the page. */
export const INSTRUMENT_PAYMENTS = paymentsOf({
  heading: "Payer",
  cell: ({ off_session }) => off_session ? "Not present" : "Present",
});

export const CHECKOUT_PAYMENTS = paymentsOf({ heading: "Method", cell: methodText });

const TRANSFER_COLUMNS: readonly Column<Transfer>[] = moneyColumns(
  ({ id }) => href(["transfers", id]),
  [
    { heading: "Destination", cell: ({ destination }) => destinationText(destination) },
    {
      heading: "Description",
      class: "grow from-760",
      cell: ({ id, description }) => description ?? <code class="quiet">{id}</code>,
    },
  ],
);

export const PAYMENTS: List<Payment> = {
  section: "payments",
  filters: ({ customer_id, instrument_id, checkout_id }) => [
    choiceOf("status", "Status", PAYMENT_STATUSES),
    choiceOf(
      "method_kind",
      "Method",
      METHOD_KINDS,
      (kind) => RAILS[kind as Payment["method_kind"]].name,
    ),
    CURRENCY,
    { name: "reference", label: "Reference", placeholder: "order-1001" },
    { name: "customer", label: "Customer’s e-mail", placeholder: "ada@example.com" },
    ...CREATED_FILTERS,
    // Other pages lead to these. The row has no width for them otherwise.
    ...(customer_id ? [{ name: "customer_id", label: "Customer’s id" }] : []),
    ...(instrument_id ? [{ name: "instrument_id", label: "Instrument" }] : []),
    ...(checkout_id ? [{ name: "checkout_id", label: "Checkout" }] : []),
  ],
  read: (params) => call("payments", "list", params),
  csv: "id created_at status amount_decimal currency amount_minor amount_captured " +
    "amount_refunded amount_disputed method_kind instrument_id checkout_id off_session customer.id " +
    `customer.email customer.name ${TEXTS} failure_code advice metadata`,
  empty: () => <p>Create a payment with a test card and watch its status.</p>,
  show: tableOf("Payments", paymentColumns(({ id }) => href(["payments", id]))),
};

export const REFUNDS: List<Refund> = {
  section: "refunds",
  filters: () => [choiceOf("status", "Status", REFUND_STATUSES), PAYMENT],
  read: (params) => call("refunds", "list", params),
  csv: "id created_at status amount_decimal currency amount_minor payment_id payment_status " +
    "reason failure_code payee_check metadata",
  empty: () => <p>You refund a completed payment on its page.</p>,
  show: tableOf(
    "Refunds",
    ofPayment([{
      heading: "Reason",
      class: "grow from-760",
      cell: ({ reason, failure_code, return_code }) => (
        <>
          {reason && <span>{label(reason)}</span>}
          {failure_code && <code class="quiet">{failure_code}</code>}
          {return_code && <code class="quiet">{return_code}</code>}
        </>
      ),
    }]),
  ),
};

export const DISPUTES: List<Dispute> = {
  section: "disputes",
  filters: () => [choiceOf("status", "Status", DISPUTE_STATUSES), PAYMENT],
  read: (params) => call("disputes", "list", params),
  csv: "id created_at status amount_decimal currency amount_minor payment_id reason " +
    "evidence_due_by evidence.submitted_at evidence.text closed_at",
  empty: () => (
    <p>
      A payer disputes a payment when you advance it to “Chargeback”, and at once with the test card
      that ends with 0259.
    </p>
  ),
  show: tableOf(
    "Disputes",
    ofPayment([
      { heading: "Reason", class: "grow from-940", cell: ({ reason }) => label(reason) },
      {
        heading: "Evidence until",
        class: "when from-760",
        cell: ({ status, evidence_due_by }) =>
          status === "needs_response" && evidence_due_by && <Time at={evidence_due_by} />,
      },
    ]),
  ),
};

export const TRANSFERS: List<Transfer> = {
  section: "transfers",
  filters: () => [choiceOf("status", "Status", TRANSFER_STATUSES), CURRENCY, ...CREATED_FILTERS],
  read: (params) => call("transfers", "list", params),
  csv: "id created_at status amount_decimal currency amount_minor destination description " +
    "failure_code payee_check completed_at metadata",
  empty: () => (
    <p>
      A transfer moves money of the available balance to a bank account or a wallet.
    </p>
  ),
  show: tableOf("Transfers", TRANSFER_COLUMNS),
};

const accountOf = (query: { account?: string }) => ACCOUNTS.find((name) => name === query.account);

const LEDGER_COLUMNS: readonly Column<LedgerEntry>[] = [
  {
    heading: "Account",
    cell: (entry) => (
      <>
        {label(entry.account)}
        <span class="until-600">
          <OwnerOf entry={entry} /> <Time at={entry.created_at} />
        </span>
      </>
    ),
  },
  sideColumn("Debit", "debit"),
  sideColumn("Credit", "credit"),
  { heading: "Of", class: "from-600", cell: (entry) => <OwnerOf entry={entry} /> },
  {
    heading: "Transaction",
    class: "grow from-760",
    cell: ({ transaction_id }) => (
      <a href={href(["ledger"], { transaction_id })} title="Both sides of the transaction">
        <code>{transaction_id}</code>
      </a>
    ),
  },
  timeColumn(),
];

export const LEDGER: List<LedgerEntry> = {
  section: "ledger",
  crumb: "balance",
  title: (query) => {
    const account = accountOf(query);
    return account ? `Ledger: ${label(account).toLowerCase()}` : "Ledger";
  },
  filters: () => [
    choiceOf("account", "Account", ACCOUNTS),
    CURRENCY,
    PAYMENT,
    { name: "transfer_id", label: "Transfer", placeholder: "tr_…" },
    { name: "transaction_id", label: "Transaction", placeholder: "txn_…" },
  ],
  read: (params) => call("ledgerEntries", "list", params),
  csv: "id created_at transaction_id account direction amount_decimal currency amount_minor " +
    "payment_id refund_id transfer_id",
  about: (query) => {
    const account = accountOf(query);
    return account && <p class="about-page">{ACCOUNT_TEXTS[account]}</p>;
  },
  empty: () => <p>The first completed payment creates ledger entries.</p>,
  show: tableOf("Ledger entries", LEDGER_COLUMNS, ({ id }, { entry }) => ({
    title: id,
    "aria-current": id === entry ? "true" : undefined,
  })),
};

function sideColumn(heading: string, side: LedgerEntry["direction"]): Column<LedgerEntry> {
  return {
    heading,
    class: "right",
    cell: ({ direction, amount_minor, currency }) =>
      direction === side && <Money amount_minor={amount_minor} currency={currency} />,
  };
}

function OwnerOf({ entry: { payment_id, transfer_id } }: { entry: LedgerEntry }) {
  if (payment_id !== null) return <Mention id={payment_id} />;
  return transfer_id === null ? null : <Mention id={transfer_id} />;
}
