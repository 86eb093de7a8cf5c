/**
 * The payment on the wire: what a create takes (variants A and B, contract §2) and what every
 * answer shows.
 */

import { z } from "zod";
import { STABLECOINS } from "../core/currency.ts";
import { NETWORKS } from "../core/wallet_address.ts";
import { MAX_NAME, MAX_REFERENCE } from "./limits.ts";
import {
  AmountMinor,
  Currency,
  Description,
  Instant,
  Metadata,
  Person,
  requiredAmount,
  sameAmount,
} from "./values.ts";

/** Every status of a payment (contract §2, lifecycle). */
export const PAYMENT_STATUSES = [
  "pending",
  "requires_action",
  "processing",
  "completed",
  "declined",
  "failed",
  "cancelled",
  "partially_refunded",
  "refunded",
  "chargeback",
] as const;
export type PaymentStatus = typeof PAYMENT_STATUSES[number];

/** How a payment is made, as variant B names it. */
export const METHOD_KINDS = ["card", "sepa", "swift", "stablecoin"] as const;
export type MethodKind = typeof METHOD_KINDS[number];

/** How a payment is made, as variant A names it. */
export const CAPABILITIES = [
  "card_payment",
  "sepa_payment",
  "swift_payment",
  "stablecoin_payment",
] as const;
export type Capability = typeof CAPABILITIES[number];

/** Results that a sandbox create can force (interface §4). */
export const OUTCOMES = ["success", "declined", "pending", "refunded", "chargeback"] as const;
export type Outcome = typeof OUTCOMES[number];

/** A card as a create takes it. Only published test numbers are accepted, in the sandbox alone. */
export const CardInput = z.object({
  number: z.string().min(12).max(40).describe("A published test card number"),
  exp_month: z.number().int().min(1).max(12),
  exp_year: z.number().int().min(2000).max(2100),
  cvc: z.string().regex(/^\d{3,4}$/, { error: "is not three digits (four for American Express)" }),
  postal_code: z.string().max(20).optional(),
});
export type CardInput = z.infer<typeof CardInput>;

/** A bank account as a create takes it; the plain IBAN is accepted too. */
export const IbanInput = z.preprocess(
  (value) => typeof value === "string" ? { iban: value } : value,
  z.object({
    iban: z.string().min(5).max(60),
    bic: z.string().regex(/^[A-Za-z]{6}[A-Za-z0-9]{2}([A-Za-z0-9]{3})?$/, {
      error: "is not a BIC of 8 or 11 characters",
    }).optional(),
    holder_name: z.string().min(1).max(MAX_NAME).optional(),
  }),
);
export type IbanInput = z.infer<typeof IbanInput>;

/** A wallet as a create takes it; the plain address is accepted too. */
export const WalletInput = z.preprocess(
  (value) => typeof value === "string" ? { address: value } : value,
  z.object({
    address: z.string().min(20).max(120),
    network: z.enum(NETWORKS).optional(),
    asset: z.enum(STABLECOINS).optional(),
  }),
);
export type WalletInput = z.infer<typeof WalletInput>;

/** The body of a create: variants A and B, mixed field by field. */
export const CreatePaymentBody = z.object({
  amount: AmountMinor.optional(),
  amount_minor: AmountMinor.optional(),
  currency: Currency,
  capability: z.enum(CAPABILITIES).optional(),
  method_kind: z.enum(METHOD_KINDS).optional(),
  customer: Person.optional(),
  payer: Person.optional(),
  card: CardInput.optional(),
  iban: IbanInput.optional(),
  wallet: WalletInput.optional(),
  description: Description.optional(),
  reference: z.string().min(1).max(MAX_REFERENCE).optional(),
  metadata: Metadata.optional(),
  outcome: z.enum(OUTCOMES).optional(),
  settlement: z.enum(["instant", "manual"]).optional(),
}).superRefine(sameAmount).superRefine(requiredAmount);
export type CreatePaymentBody = z.infer<typeof CreatePaymentBody>;

/** What is shown of the instrument. */
export const PaymentMethod = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("card"),
    card: z.object({
      brand: z.string(),
      last4: z.string(),
      exp_month: z.number().int(),
      exp_year: z.number().int(),
    }),
  }),
  z.object({
    type: z.enum(["sepa", "swift"]),
    iban: z.object({ country: z.string(), last4: z.string() }),
  }),
  z.object({
    type: z.literal("stablecoin"),
    wallet: z.object({
      address: z.string(),
      network: z.enum(NETWORKS),
      asset: z.enum(STABLECOINS),
      tx_hash: z.string().nullable(),
    }),
  }),
]);
export type PaymentMethod = z.infer<typeof PaymentMethod>;

/** What the payer has to do next. */
export const NextAction = z.object({ type: z.literal("authenticate"), url: z.url() });

/** A payment as every answer shows it. */
export const Payment = z.object({
  id: z.string(),
  object: z.literal("payment"),
  status: z.enum(PAYMENT_STATUSES),
  amount: AmountMinor,
  amount_minor: AmountMinor,
  currency: z.string(),
  amount_refunded: z.number().int().min(0),
  capability: z.enum(CAPABILITIES),
  method_kind: z.enum(METHOD_KINDS),
  method: PaymentMethod.nullable(),
  customer: Person.nullable(),
  payer: Person.nullable(),
  description: z.string().nullable(),
  reference: z.string().nullable(),
  metadata: z.record(z.string(), z.string()),
  next_action: NextAction.nullable(),
  failure_code: z.string().nullable(),
  failure_message: z.string().nullable(),
  return_code: z.string().nullable(),
  livemode: z.boolean(),
  sequence: z.number().int().min(1),
  created_at: Instant,
  updated_at: Instant,
  completed_at: Instant.nullable(),
  cancelled_at: Instant.nullable(),
});
export type Payment = z.infer<typeof Payment>;

/** The body of an advance: the status to move to. */
export const AdvanceBody = z.object({ to: z.enum(PAYMENT_STATUSES) });

/** The body of an authentication: what the payer's bank answers. */
export const AuthenticateBody = z.object({
  result: z.enum(["success", "failure"]).default("success"),
});

/** A body that carries nothing: cancel and reset. */
export const EmptyBody = z.object({});
