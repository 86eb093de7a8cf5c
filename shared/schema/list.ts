/**
 * Query parameters and the envelope of lists (contract §5). Query values are text, from which these
 * schemas parse numbers and times.
 */

import * as z from "zod";
import { IdPrefix } from "../core/ids.ts";
import {
  DEFAULT_PAGE,
  MAX_PAGE,
  MAX_REFERENCE,
  MAX_SEARCH,
  MAX_TOTALS_SPAN,
  MIN_SEARCH,
  MIN_TOTALS_SPAN,
} from "./limits.ts";
import { MethodKind } from "./payment_body.ts";
import { mustBe } from "./requirement.ts";
import { rule, type RuleContext } from "./rule.ts";
import {
  DisputeStatus,
  InstrumentStatus,
  PaymentStatus,
  RefundStatus,
  TransferStatus,
} from "./statuses.ts";
import { Currency, CustomerId, Email, id, Time } from "./values.ts";

const LIMIT_WORDS = `a whole number from 1 to ${MAX_PAGE}`;

/** The query parameter `limit`, in decimal digits. */
export const Limit = mustBe(
  z.string().regex(/^\d{1,3}$/)
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= MAX_PAGE, { error: `must be ${LIMIT_WORDS}` })
    .default(DEFAULT_PAGE),
  LIMIT_WORDS,
);

const After = Time.optional().describe("Only items created after this RFC 3339 time");

const Before = Time.optional().describe("Only items created before this RFC 3339 time");

const Search = z.string().min(MIN_SEARCH).max(MAX_SEARCH).optional();

/** Makes the schema of `starting_after` for a list whose ids have this prefix. */
export function cursor(prefix: IdPrefix) {
  return mustBe(
    id(prefix).optional().describe("The `next_cursor` of the previous page"),
    `the "next_cursor" of the previous page, which begins with "${prefix}"`,
  );
}

/** The parameters of every list whose ids have this prefix. */
export function page(prefix: IdPrefix) {
  return {
    limit: Limit,
    starting_after: cursor(prefix),
    include: z.enum(["total"]).optional().describe(
      "`total`: also how many items the list has",
    ),
  };
}

/**
 * Refuses a query that names two of a payment, a transfer and an instrument. A list shows the items
 * of one of them. Used with `rule`.
 */
export function oneSubject(
  query: Partial<Record<typeof SUBJECTS[number], string | undefined>>,
  context: RuleContext,
): void {
  const [first, second] = SUBJECTS.filter((name) => query[name] !== undefined);
  if (second === undefined) return;
  context.addIssue({
    code: "custom",
    path: [second],
    message: `cannot be combined with "${first}": send one of them`,
  });
}

const SUBJECTS = ["payment_id", "transfer_id", "instrument_id"] as const;

export const ListPaymentsQuery = z.object({
  ...page("pay_"),
  status: PaymentStatus.optional().describe("Only payments in this status"),
  currency: Currency.optional().describe("Only payments in this currency"),
  method_kind: MethodKind.optional().describe("Only payments by this kind of method"),
  reference: z.string().min(1).max(MAX_REFERENCE).optional()
    .describe("Only payments with this reference"),
  customer: Email.optional()
    .describe("Only payments whose customer has exactly this e-mail address"),
  customer_id: CustomerId.optional().describe("Only payments whose customer has this `id`"),
  instrument_id: id("ins_").optional()
    .describe("Only payments that have saved or used this instrument"),
  checkout_id: id("chk_").optional().describe("Only payments of this checkout"),
  search: Search.describe(
    "Only payments with this value, such as an e-mail address, an amount or the last four digits, " +
      "or with these words in the customer's name, the reference or the description. If there are " +
      "none, only payments with this text in a part of them",
  ),
  created_after: After,
  created_before: Before,
});

export const PaymentTotalsQuery = z.object({
  starting_after: cursor("pay_"),
  from: Time.optional().describe("Only payments created at or after this RFC 3339 time"),
  to: Time.optional().describe("Only payments created before this RFC 3339 time"),
  span: mustBe(
    z.string().regex(/^\d{1,7}$/).transform(Number)
      .pipe(z.number().min(MIN_TOTALS_SPAN).max(MAX_TOTALS_SPAN)),
    `a whole number of seconds from ${MIN_TOTALS_SPAN} to ${MAX_TOTALS_SPAN} (31 days)`,
  ).optional().describe(
    "Seconds of each span of time that has totals of its own; the first begins at `from`. " +
      "Without it there is one span",
  ),
  status: PaymentStatus.optional().describe("Only payments in this status"),
  currency: Currency.optional().describe("Only payments in this currency"),
  method_kind: MethodKind.optional().describe("Only payments by this kind of method"),
}).check(rule(({ from, span }, context) => {
  if (span === undefined || from !== undefined) return;
  context.addIssue({
    code: "custom",
    path: ["from"],
    message: 'is required with "span": send the time at which the first span begins',
  });
}));

export const ListRefundsQuery = z.object({
  ...page("re_"),
  payment_id: id("pay_").optional().describe("Only refunds of this payment"),
  status: RefundStatus.optional().describe("Only refunds in this status"),
});

export const ListPaymentRefundsQuery = ListRefundsQuery.omit({ payment_id: true, status: true });

export const ListDisputesQuery = z.object({
  ...page("dp_"),
  payment_id: id("pay_").optional().describe("Only disputes of this payment"),
  status: DisputeStatus.optional().describe("Only disputes in this status"),
});

export const LEDGER_ACCOUNTS = [
  "processor",
  "available",
  "chargebacks",
  "in_transit",
  "external",
  "bank",
  "unapplied",
  "reserve",
] as const;

export const LedgerAccount = z.enum(LEDGER_ACCOUNTS).describe(
  "An account of the ledger. `available` is the money that transfers can use",
);
export type LedgerAccount = z.infer<typeof LedgerAccount>;

export const ListLedgerEntriesQuery = z.object({
  ...page("le_"),
  payment_id: id("pay_").optional().describe(
    "Only entries of this payment. It cannot be combined with `transfer_id`",
  ),
  transfer_id: id("tr_").optional().describe("Only entries of this transfer"),
  transaction_id: id("txn_").optional().describe("Only entries of this ledger transaction"),
  account: LedgerAccount.optional().describe("Only entries of this account"),
  currency: Currency.optional().describe("Only entries in this currency"),
}).check(rule(oneSubject));

export const ListTransfersQuery = z.object({
  ...page("tr_"),
  status: TransferStatus.optional().describe("Only transfers in this status"),
  currency: Currency.optional().describe("Only transfers in this currency"),
  search: Search.describe("Only transfers with this text in the description"),
  created_after: After,
  created_before: Before,
});

export const ListInstrumentsQuery = z.object({
  ...page("ins_"),
  customer_id: CustomerId.optional().describe("Only instruments of this customer"),
  status: InstrumentStatus.optional().describe("Only instruments in this status"),
  method_kind: MethodKind.optional().describe("Only instruments of this kind of method"),
});
