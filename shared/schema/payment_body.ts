/**
 * The bodies of requests on payments (variants A and B of a create, contract §2), and the values
 * that a request can name. The functions load the schemas of requests alone: those of responses are
 * in modules of their own, for types and the OpenAPI document (ADR 0009).
 */

import * as z from "zod";
import { MANDATE_ID, MAX_MANDATE_ID_LENGTH } from "../core/bank_order.ts";
import { isLoopback } from "../core/loopback.ts";
import {
  CAPTURE_METHODS,
  INSTRUMENT_USAGES,
  MANDATE_SEQUENCES,
  METHOD_KINDS,
  OUTCOMES,
} from "../core/vocabulary.ts";
import { IbanInput } from "./bank_account.ts";
import { MAX_AMOUNT_MINOR, MAX_REFERENCE, MAX_RETURN_URL } from "./limits.ts";
import { mustBe, replaceable } from "./requirement.ts";
import { rule, type RuleContext } from "./rule.ts";
import {
  AmountAlias,
  AmountMinor,
  Currency,
  Description,
  id,
  isStorableTime,
  Metadata,
  Network,
  PersonInput,
  requiredAmount,
  sameAmount,
  Settlement,
  Stablecoin,
} from "./values.ts";

export const MethodKind = z.enum(METHOD_KINDS).describe("Kind of the payment method (variant B)");
export type MethodKind = z.infer<typeof MethodKind>;

export const Capability = z.enum(METHOD_KINDS.map((kind) => `${kind}_payment` as const))
  .describe("Kind of the payment method (variant A)");
export type Capability = z.infer<typeof Capability>;

/** Results that a create with a test key can force (contract §2). */
export const Outcome = z.enum(OUTCOMES).describe(
  "Forces this result and overrides the instrument. Test keys only",
);
export type Outcome = z.infer<typeof Outcome>;

/** The code with which a bank returns or rejects money, in a request: ISO 20022, or `R01`. */
export const ReturnCode = mustBe(
  z.string().regex(/^[A-Z][A-Z0-9]{2,3}$/).describe(
    "The bank's code of the return, as in the external code set of ISO 20022: `AC04`, `AM04`, " +
      "`MD01`, `MD06`, `MS03` … Only with `failed`, for money by bank. By default `R01`",
  ),
  'a return code of a bank, such as "AC04"',
);

/** Refuses a return code with another status than `failed`. */
export function returnCodeOfFailure(
  { to, return_code }: { to: string; return_code?: string | undefined },
  context: RuleContext,
): void {
  if (return_code === undefined || to === "failed") return;
  const message = 'is only for an advance to "failed": remove it';
  context.addIssue({ code: "custom", path: ["return_code"], message });
}

/** A card number in the body of a create. Only test keys can send one, and only a test number. */
const CardNumberInput = z.object({
  number: replaceable(mustBe(
    z.string().min(12).max(40)
      .describe("A published test card number. Spaces and dashes are ignored. Test keys only"),
    `a test card number as text, such as "4242 4242 4242 4242"`,
  )),
  exp_month: replaceable(z.number().int().min(1).max(12).describe("Month of expiry, 1 to 12")),
  exp_year: replaceable(
    z.number().int().min(2000).max(2100).describe("Year of expiry, such as 2034"),
  ),
  cvc: replaceable(mustBe(
    z.string().regex(/^\d{3,4}$/)
      .describe("Three digits, four for American Express. The service never stores it"),
    'three digits as text, such as "123" (four digits for American Express)',
  )),
  postal_code: z.string().max(20).optional().describe("Postal code of the payer. Any is accepted"),
});

/** A card that the provider's own form has taken, in the body of a create. */
const CardTokenInput = z.object({
  token: mustBe(
    z.string().regex(/^pm_[A-Za-z0-9_]{1,250}$/).describe(
      "The token of a card, which the provider's form in the browser makes: `pm_…`. Test keys " +
        "take the test tokens",
    ),
    'a token that begins with "pm_", such as "pm_card_visa"',
  ),
});

const CardMembers = z.object({
  ...CardNumberInput.partial().shape,
  ...CardTokenInput.partial().shape,
});

/** A card in the body of a create: a token, or with a test key the number of a test card. */
export const CardInput = mustBe(
  CardMembers.check(rule(tokenOrNumber)).describe(
    "A card: `token`, or with a test key `number`, `exp_month`, `exp_year` and `cvc` of a test " +
      "card",
  ),
  'an object with "token", or with "number", "exp_month", "exp_year" and "cvc"',
);
export type CardInput = z.infer<typeof CardInput>;

/** Refuses a token beside other members, and a card without a token that lacks a member. */
function tokenOrNumber(
  card: z.infer<typeof CardMembers>,
  context: RuleContext,
): void {
  const { token, ...number } = card;
  if (token !== undefined) {
    if (Object.values(number).every((value) => value === undefined)) return;
    const message = "stands for the whole card: leave the other members out";
    context.addIssue({ code: "custom", path: ["token"], message });
    return;
  }
  const missing = (["number", "exp_month", "exp_year", "cvc"] as const)
    .find((name) => card[name] === undefined);
  if (missing === undefined) return;
  context.addIssue({
    code: "invalid_type",
    expected: "nonoptional",
    path: [missing],
    input: undefined,
  });
}

const MandateSequence = z.enum(MANDATE_SEQUENCES).describe(
  "The place of the payment among those of the mandate. `recurring` can be the first too. " +
    "Nothing is collected after `final` or `one_off`",
);
export type MandateSequence = z.infer<typeof MandateSequence>;

export const InstrumentUsage = z.enum(INSTRUMENT_USAGES).describe(
  "`on_session`: for payments with the payer present. `off_session`: also without",
);
export type InstrumentUsage = z.infer<typeof InstrumentUsage>;

/** The mandate of a payer, under which a payment by SEPA is collected. */
export const Mandate = z.object({
  id: mustBe(
    z.string().max(MAX_MANDATE_ID_LENGTH).regex(MANDATE_ID).describe(
      "Your own reference of the mandate: at most 35 letters, digits, single spaces and " +
        "`+?/:().,'-`",
    ),
    "text of 1 to 35 letters, digits, single spaces and +?/:().,'-",
  ),
  signed_at: mustBe(
    z.string().max(40).refine(isDateOrTime, "must be a date or a time").describe(
      "When the payer signed: a date such as `2026-01-31`, or an RFC 3339 time",
    ),
    "a date such as 2026-01-31, or a time with its time zone, such as 2026-01-31T09:00:00Z",
  ),
  sequence: MandateSequence,
}).describe("The mandate of the payer, for a payment by SEPA with an `iban`");
export type Mandate = z.infer<typeof Mandate>;

/** The same in a request, which refuses other members. A response can get new ones. */
export const MandateInput = z.object({
  ...Mandate.shape,
  id: Mandate.shape.id.optional(),
  sequence: Mandate.shape.sequence.optional(),
}).describe(
  "The mandate of the payer. `id` and `sequence` are required without `save`. With it the service " +
    "makes an id, and the sequence is `first` or `recurring`, by default `recurring`",
);

function isDateOrTime(text: string): boolean {
  const has_form = z.iso.date().safeParse(text).success ||
    z.iso.datetime({ offset: true }).safeParse(text).success;
  return has_form && isStorableTime(Date.parse(text));
}

/** A wallet in the body of a create: an object, or the address as text. */
export const WalletInput = mustBe(
  z.preprocess(
    (value) => typeof value === "string" ? { address: value } : value,
    z.object({
      address: mustBe(
        z.string().min(20).max(120).describe("Address of the wallet"),
        'a wallet address as text, such as "0x000000000000000000000000000000000000dEaD"',
      ),
      network: Network.optional().describe("By default the form of the address decides"),
      asset: Stablecoin.optional()
        .describe("By default the currency of the payment if it is a stablecoin, else `USDC`"),
    }),
  ).describe("A wallet: an object, or the address as text"),
  'a wallet address as text, or an object with "address"',
);
export type WalletInput = z.infer<typeof WalletInput>;

export const CaptureMethod = z.enum(CAPTURE_METHODS).describe(
  "`manual` only authorizes the amount; a capture within 7 days takes it. Cards only",
);
export type CaptureMethod = z.infer<typeof CaptureMethod>;

const REFUSED_RETURN_URL =
  'must begin with https, such as "https://shop.example/return", without a user name or password';

/**
 * The page to which the payer comes back after the next action, as a browser reads it: a parser
 * repairs spaces, backslashes and line breaks, and only its result was checked.
 */
export const ReturnUrl = mustBe(
  z.string().max(MAX_RETURN_URL).refine(isReturnUrl, REFUSED_RETURN_URL).describe(
    "The page of your shop to which the payer comes back after `next_action`, with the parameter " +
      "`payment_id` added. https, or with a test key also http on localhost. Responses show it " +
      "in its normal form, such as `https://shop.example/` for `https://shop.example`",
  ).transform((text) => new URL(text).href),
  'a URL that begins with https, such as "https://shop.example/return", of at most ' +
    `${MAX_RETURN_URL} characters, without a user name or password`,
);

function isReturnUrl(text: string): boolean {
  const url = URL.parse(text);
  if (!url || url.username || url.password || url.href.length > MAX_RETURN_URL) return false;
  return url.protocol === "https:" || url.protocol === "http:" && isLoopback(url.hostname);
}

/** Amounts of a create: 0 only saves the instrument. */
const [CreatedAmount, CreatedAmountMinor] = [AmountAlias, AmountMinor].map((schema) =>
  mustBe(
    z.number().int().min(0).max(MAX_AMOUNT_MINOR).describe(
      `${schema.description}. 0 only with \`save\``,
    ),
    "a whole number in minor units of the currency: 19.99 EUR is 1999",
  )
) as [typeof AmountAlias, typeof AmountMinor];

/** Refuses an amount of 0 that saves nothing, as other bodies do. */
function nothingOnlySaves(
  body: { amount?: number | undefined; amount_minor?: number | undefined; save?: unknown },
  context: RuleContext,
): void {
  if (body.save !== undefined) return;
  for (const name of ["amount", "amount_minor"] as const) {
    if (body[name] !== 0) continue;
    context.addIssue({
      ...{ code: "too_small", origin: "number", minimum: 1, inclusive: true },
      ...{ input: 0, path: [name] },
    });
  }
}

/** Refuses a person without an e-mail address, unless an instrument has it. */
export function wholePerson(
  body: { customer?: PersonIn | undefined; payer?: PersonIn | undefined; instrument?: unknown },
  context: RuleContext,
): void {
  if (body.instrument !== undefined) return;
  for (const name of ["customer", "payer"] as const) {
    if (body[name] === undefined || body[name].email !== undefined) continue;
    context.addIssue({
      ...{ code: "invalid_type", expected: "nonoptional", input: undefined },
      path: [name, "email"],
    });
  }
}

type PersonIn = z.infer<typeof PersonInput>;

/** Refuses a mandate that lacks a member, unless `save` makes it. */
function wholeMandate(
  { mandate, save }: { mandate?: z.infer<typeof MandateInput> | undefined; save?: unknown },
  context: RuleContext,
): void {
  if (mandate === undefined || save !== undefined) return;
  for (const name of ["id", "sequence"] as const) {
    if (mandate[name] !== undefined) continue;
    context.addIssue({
      ...{ code: "invalid_type", expected: "nonoptional", input: undefined },
      path: ["mandate", name],
    });
  }
}

export const INSTRUMENT_FIELDS = ["card", "iban", "wallet"] as const;

const REPLACED = [...INSTRUMENT_FIELDS, "mandate", "save"] as const;

export const ABOUT_INSTRUMENTS =
  `Send at most one of ${INSTRUMENT_FIELDS.map((name) => `\`${name}\``).join(", ")} and ` +
  "`instrument`. Without any of them and without `outcome` the payment is `pending`. If the payer " +
  "then sends the money, `next_action` has the place";

/** Refuses a member beside the instrument that replaces it, before any fault within the member. */
function instrumentAlone(
  body: Partial<Record<typeof REPLACED[number] | "instrument", unknown>>,
  { issues }: RuleContext,
): void {
  const name = body.instrument !== undefined && REPLACED.find((name) => body[name] !== undefined);
  if (!name) return;
  const message = 'cannot be sent with "instrument", which stands for it: leave one of them out';
  issues.unshift({ code: "custom", path: [name], message, input: body[name] });
}

export const CreatePaymentBody = z.object({
  amount: CreatedAmount.optional(),
  amount_minor: CreatedAmountMinor.optional(),
  currency: Currency,
  capability: Capability.optional().describe(
    "Kind of the payment method (variant A). By default that of the instrument; without one " +
      "`card_payment`",
  ),
  method_kind: MethodKind.optional().describe(
    "Kind of the payment method (variant B): another name for `capability`. Send one of the two",
  ),
  customer: PersonInput.optional(),
  payer: PersonInput.optional().describe(
    "The payer: another name for `customer`. Send one of the two",
  ),
  card: CardInput.optional(),
  iban: IbanInput.optional(),
  mandate: MandateInput.optional(),
  wallet: WalletInput.optional(),
  instrument: id("ins_").optional().describe(
    "A saved instrument in place of another one and its `mandate`. Needs the scope " +
      "`instruments:use`",
  ),
  off_session: z.boolean().optional().describe(
    "`true`: the payer is not present. Only with an `instrument` whose `usage` is `off_session`",
  ),
  save: InstrumentUsage.optional().describe(
    "Saves the card or the SEPA `iban` for later payments of the same `customer.id`: `on_session` " +
      "with the payer present, `off_session` also without",
  ),
  description: Description.optional(),
  reference: z.string().min(1).max(MAX_REFERENCE).optional()
    .describe("Your own number of the order or invoice. Lists of payments can filter by it"),
  metadata: Metadata.optional(),
  capture: CaptureMethod.optional(),
  return_url: ReturnUrl.optional(),
  outcome: Outcome.optional(),
  settlement: Settlement.optional(),
}).check(rule((body, context) => {
  // As one check, because zod takes time for each.
  sameAmount(body, context);
  requiredAmount(body, context);
  wholePerson(body, context);
  nothingOnlySaves(body, context);
  wholeMandate(body, context);
})).check(rule(instrumentAlone, { when: () => true })).describe(
  "Variants A (`amount`, `capability`, `customer`) and B (`amount_minor`, `method_kind`, " +
    "`payer`) can be mixed field by field. One of `amount` and `amount_minor` is required. " +
    ABOUT_INSTRUMENTS,
);
export type CreatePaymentBody = z.infer<typeof CreatePaymentBody>;

export const CapturePaymentBody = z.object({
  amount: AmountAlias.optional(),
  amount_minor: AmountMinor.optional(),
}).check(rule(sameAmount)).describe(
  "Without an amount the request captures the whole authorized amount",
);
export type CapturePaymentBody = z.infer<typeof CapturePaymentBody>;

export const AuthenticatePaymentBody = z.object({
  result: z.enum(["success", "failure"]).default("success")
    .describe("`failure` declines the payment with `authentication_failed`"),
}).describe("The result of 3-D Secure");
export type AuthenticationResult = z.infer<typeof AuthenticatePaymentBody>["result"];
