/**
 * Query parameters of lists (contract §5). Query values are text; numbers and times are parsed here.
 */

import { z } from "zod";
import { type IdPrefix, isId } from "../core/ids.ts";
import { LEDGER_ACCOUNTS } from "./ledger.ts";
import { DEFAULT_PAGE, MAX_PAGE, MAX_REFERENCE } from "./limits.ts";
import { METHOD_KINDS, PAYMENT_STATUSES } from "./payment.ts";
import { TRANSFER_STATUSES } from "./transfer.ts";
import { Currency } from "./values.ts";

/** `limit` as plain decimal digits. */
export const Limit = z.string().regex(/^\d{1,3}$/, {
  error: `is not a whole number from 1 to ${MAX_PAGE}`,
})
  .transform(Number)
  .refine((limit) => limit >= 1 && limit <= MAX_PAGE, {
    error: `is not a whole number from 1 to ${MAX_PAGE}`,
  })
  .default(DEFAULT_PAGE);

const Time = z.iso.datetime({ offset: true, error: "is not an RFC 3339 time" })
  .transform((text) => Date.parse(text));

/** An id of one kind as a cursor or filter. */
export function id(prefix: IdPrefix) {
  return z.string().refine((text) => isId(prefix, text), {
    error: `is not an id that begins with "${prefix}"`,
  });
}

/** `GET /v1/payments` */
export const ListPaymentsQuery = z.object({
  limit: Limit,
  starting_after: id("pay_").optional(),
  status: z.enum(PAYMENT_STATUSES).optional(),
  currency: Currency.optional(),
  method_kind: z.enum(METHOD_KINDS).optional(),
  reference: z.string().min(1).max(MAX_REFERENCE).optional(),
  created_after: Time.optional(),
  created_before: Time.optional(),
});

/** `GET /v1/refunds` */
export const ListRefundsQuery = z.object({
  limit: Limit,
  starting_after: id("re_").optional(),
  payment_id: id("pay_").optional(),
});

/** `GET /v1/payments/{id}/refunds` */
export const ListPaymentRefundsQuery = ListRefundsQuery.omit({ payment_id: true });

/** `GET /v1/ledger_entries` */
export const ListLedgerEntriesQuery = z.object({
  limit: Limit,
  starting_after: id("le_").optional(),
  payment_id: id("pay_").optional(),
  transfer_id: id("tr_").optional(),
  transaction_id: id("txn_").optional(),
  account: z.enum(LEDGER_ACCOUNTS).optional(),
}).superRefine(({ payment_id, transfer_id }, context) => {
  if (payment_id === undefined || transfer_id === undefined) return;
  context.addIssue({
    code: "custom",
    path: ["transfer_id"],
    message: "cannot be combined with payment_id: an entry is of one of them",
  });
});

/** `GET /v1/transfers` */
export const ListTransfersQuery = z.object({
  limit: Limit,
  starting_after: id("tr_").optional(),
  status: z.enum(TRANSFER_STATUSES).optional(),
  currency: Currency.optional(),
  created_after: Time.optional(),
  created_before: Time.optional(),
});

/** A query that takes nothing. */
export const EmptyQuery = z.object({});
