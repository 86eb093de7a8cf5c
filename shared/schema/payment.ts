/** The payment in a response (contract §2). */

import * as z from "zod";
import { BANK_RAILS } from "../core/bank_schemes.ts";
import { DECLINE_ADVICE, DECLINE_CODES } from "../core/errors.ts";
import { METHOD_KINDS } from "../core/vocabulary.ts";
import { ShownIban } from "./bank_account.ts";
import {
  Capability,
  CaptureMethod,
  CreatePaymentBody,
  INSTRUMENT_FIELDS,
  Mandate,
  MethodKind,
} from "./payment_body.ts";
import { PaymentStatus } from "./statuses.ts";
import {
  AmountMinor,
  CurrencyCode,
  id,
  Instant,
  Network,
  Person,
  Settlement,
  ShownMetadata,
  Stablecoin,
} from "./values.ts";

/** The next step that helps after a decline (contract §2). */
export const DeclineAdvice = z.enum(DECLINE_ADVICE).describe(
  "The next step after a decline: the same method again in hours or days, another method or its " +
    "data again, none, or a new payment in which the payer authenticates",
);

/** A sum of amounts, 0 or more, in minor units. */
const Sum = z.number().int().min(0);

/** Codes of a payment or transfer that failed after the provider accepted it. */
export const FAILURE_CODES = [
  "bank_return",
  "onchain_reverted",
  "processing_failed",
  "expired",
  "underpaid",
  "provider_refused",
] as const;
export type FailureCode = typeof FAILURE_CODES[number];

export const ShownCard = z.object({
  brand: z.string().describe("The brand, such as `visa`, `mastercard`, `amex`, `discover`"),
  last4: z.string().describe("The last four digits"),
  exp_month: z.number().int().describe("Month of expiry, 1 to 12"),
  exp_year: z.number().int().describe("Year of expiry, such as 2034"),
}).describe("The shown parts of a card");
export type ShownCard = z.infer<typeof ShownCard>;

export const ShownWallet = z.object({
  address: z.string().describe("Address of the wallet, which is public"),
  network: Network,
  asset: Stablecoin,
  tx_hash: z.string().nullable().describe(
    "Hash of the transaction on chain. Null until it completes",
  ),
}).describe("A wallet. Its address is public, so responses show it whole");

export const CardMethod = z.object({ type: z.literal("card"), card: ShownCard })
  .describe("The method of a payment by card");

export const IbanMethod = z.object({
  type: z.enum(BANK_RAILS).describe("Rail of the payment"),
  iban: ShownIban,
  mandate: Mandate.nullable().describe("The mandate of the payer; null without one"),
  due_on: z.iso.date().nullable()
    .describe("The day on which the payment is collected under the mandate; null without one"),
})
  .describe("The method of a payment by bank");

export const WalletMethod = z.object({ type: z.literal("stablecoin"), wallet: ShownWallet })
  .describe("The method of a payment by stablecoin");

export const PaymentMethod = z.discriminatedUnion("type", [CardMethod, IbanMethod, WalletMethod])
  .describe("The payment instrument, masked");
export type PaymentMethod = z.infer<typeof PaymentMethod>;

// Every kind has a method here, and every instrument of a create has a name above.
METHOD_KINDS satisfies readonly PaymentMethod["type"][];

type KeysOf<Method> = Method extends object ? Exclude<keyof Method, "type"> : never;
export type MethodMember = KeysOf<PaymentMethod>;

null! as Exclude<
  MethodMember & keyof CreatePaymentBody,
  "mandate"
> satisfies typeof INSTRUMENT_FIELDS[number];

export const AuthenticateAction = z.object({
  type: z.literal("authenticate"),
  url: z.url().describe("Address of the page for the payer"),
})
  .describe(
    "Send the payer to this page, where the bank asks for 3-D Secure. With a test key it is a " +
      "page with the buttons Approve and Fail. From there the payer comes to `return_url`, with " +
      "the parameter `payment_id`. The payment is `failed` with `expired` if the payer does not " +
      "authenticate within 24 hours",
  );

export const BankTransferAction = z.object({
  type: z.literal("bank_transfer"),
  iban: z.string().describe("IBAN to which the payer sends the money"),
  bic: z.string().describe("BIC of its bank"),
  holder_name: z.string().describe("Name of the account holder"),
  reference: z.string().describe("The reference that the payer must give, ISO 11649"),
  amount_minor: AmountMinor,
  currency: CurrencyCode,
  expires_at: Instant,
  epc_qr: z.string().nullable().describe(
    "The text of a QR code for banking apps (EPC069-12). Null unless the currency is EUR",
  ),
}).describe("Show the payer these bank details");

export const SendStablecoinAction = z.object({
  type: z.literal("send_stablecoin"),
  network: Network,
  asset: Stablecoin,
  contract: z.string().describe(
    "Address of the token's contract on the network. In the sandbox a test token on Sepolia",
  ),
  address: z.string().describe("The address that belongs to this payment alone"),
  amount_minor: AmountMinor,
  expires_at: Instant,
  uri: z.string().describe("An EIP-681 link for wallets and QR codes"),
}).describe("Show the payer this address");

export const NextAction = z.discriminatedUnion("type", [
  AuthenticateAction,
  BankTransferAction,
  SendStablecoinAction,
]).describe("The next step of the payer");
export type NextAction = z.infer<typeof NextAction>;

export const Payment = z.object({
  id: id("pay_"),
  object: z.literal("payment"),
  status: PaymentStatus,
  amount: Sum.describe("The amount in minor units: 0 if the payment only saves its instrument"),
  amount_minor: Sum.describe("Another name for `amount`"),
  currency: CurrencyCode,
  amount_refunded: Sum.describe("Sum of the completed refunds, in minor units"),
  amount_refunding: Sum.describe("Sum of the pending refunds, in minor units"),
  amount_captured: Sum
    .describe("The amount that was taken: less than `amount` after a capture of a part"),
  amount_disputed: Sum.describe(
    "The amount that the payer has charged back, in minor units",
  ),
  amount_received: Sum.nullable()
    .describe("The amount that has arrived, on rails where the payer sends; null for the others"),
  capability: Capability,
  method_kind: MethodKind,
  method: PaymentMethod.nullable(),
  instrument_id: id("ins_").nullable()
    .describe("The instrument that the payment has saved or used; null: neither"),
  checkout_id: id("chk_").nullable().describe("The checkout whose attempt it is; null: none"),
  off_session: z.boolean().describe("Whether the payer was not present"),
  customer: Person.nullable(),
  payer: Person.nullable(),
  description: z.string().nullable().describe("Your own text for people; null without one"),
  reference: z.string().nullable().describe("Your own number of the order or invoice"),
  metadata: ShownMetadata,
  next_action: NextAction.nullable(),
  return_url: z.string().nullable()
    .describe("The page of your shop to which the payer comes back after `next_action`"),
  capture: CaptureMethod,
  capture_before: Instant.nullable()
    .describe("The time at which an uncaptured authorization is cancelled by itself"),
  settlement: Settlement.nullable().describe(
    "`manual` if the payment waits for an advance; null with a live key",
  ),
  failure_code: z.enum([...DECLINE_CODES, ...FAILURE_CODES]).nullable()
    .describe("The reason of a decline or a failure, for programs; null without one"),
  failure_message: z.string().nullable().describe("The reason of the failure in words, for people"),
  advice: DeclineAdvice.nullable(),
  return_code: z.string().nullable().describe("The bank's code of a return, such as `AC04`"),
  livemode: z.boolean(),
  sequence: z.number().int().min(1)
    .describe("Number of the payment's last event: 1 on creation, one more with each event"),
  created_at: Instant,
  updated_at: Instant,
  completed_at: Instant.nullable(),
  cancelled_at: Instant.nullable(),
}).describe("A payment");
export type Payment = z.infer<typeof Payment>;

/** The merchant's own texts of a payment. */
export type PaymentText = Exclude<
  {
    [Name in keyof CreatePaymentBody & keyof Payment]: string extends NonNullable<Payment[Name]>
      ? Name
      : never;
  }[keyof CreatePaymentBody & keyof Payment],
  "currency"
>;
