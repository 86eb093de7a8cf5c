/**
 * Instruments on the wire: cards and SEPA mandates that a payment has saved, and that later
 * payments can use (contract §2).
 */

import * as z from "zod";
import { INSTRUMENT_END_REASONS, KEPT_METHOD_KINDS } from "../core/vocabulary.ts";
import { ShownIban } from "./bank_account.ts";
import { MAX_CUSTOMER_ID } from "./limits.ts";
import { CardMethod } from "./payment.ts";
import { InstrumentUsage, Mandate } from "./payment_body.ts";
import { InstrumentStatus } from "./statuses.ts";
import { id, Instant } from "./values.ts";

export const InstrumentEndReason = z.enum(INSTRUMENT_END_REASONS).describe(
  "`deleted` by you, `erased` with its customer, `revoked` by the payer at the bank, " +
    "`account_closed`, `used_up` by its last payment, `idle` for 36 months, or " +
    "`removed_at_provider`",
);
export type InstrumentEndReason = z.infer<typeof InstrumentEndReason>;

export const SepaInstrumentMethod = z.object({ type: z.literal("sepa"), iban: ShownIban })
  .describe("The account of the payer");

export const InstrumentMethod = z.discriminatedUnion("type", [CardMethod, SepaInstrumentMethod])
  .describe("The card or account, masked");

export const Instrument = z.object({
  id: id("ins_"),
  object: z.literal("instrument"),
  status: InstrumentStatus,
  customer: z.object({
    id: z.string().max(MAX_CUSTOMER_ID).nullable().describe("Your own id of the customer"),
    email: z.string().nullable().describe("E-mail address; null: none, or erased"),
    name: z.string().nullable().describe("Name; null: none, or erased"),
  }).nullable().describe("The customer of the payment that has saved it; null: it named none"),
  method_kind: z.enum(KEPT_METHOD_KINDS).describe("Kind of the payment method"),
  method: InstrumentMethod.nullable(),
  usage: InstrumentUsage,
  mandate: Mandate.omit({ sequence: true }).nullable()
    .describe("The mandate of the payer, by SEPA; null for a card"),
  is_kept: z.boolean().describe(
    "Whether payments can name it as `instrument`. False: it is a mandate whose IBAN you send with " +
      "each payment",
  ),
  payment_id: id("pay_").describe("The payment that has saved it"),
  ended_reason: InstrumentEndReason.nullable(),
  last_used_at: Instant.nullable().describe("The time of its last payment; null: none yet"),
  livemode: z.boolean(),
  sequence: z.number().int().min(1)
    .describe("1 on creation, one more with each event and each change of the status"),
  created_at: Instant,
  updated_at: Instant,
  ended_at: Instant.nullable().describe("The time of its end; null unless it has ended"),
}).describe("A card or SEPA mandate that later payments can use");
export type Instrument = z.infer<typeof Instrument>;
