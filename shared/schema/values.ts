/**
 * Values on the wire that several resources share: ids, amounts, currencies, times, metadata and
 * persons (contract §2).
 */

import * as z from "zod";
import { formatAmount, isCurrency, normalizeCurrency, STABLECOINS } from "../core/currency.ts";
import { idPattern, type IdPrefix } from "../core/ids.ts";
import { NETWORKS } from "../core/vocabulary.ts";
import {
  MAX_AMOUNT_MINOR,
  MAX_CUSTOMER_ID,
  MAX_DESCRIPTION,
  MAX_EMAIL,
  MAX_METADATA_ENTRIES,
  MAX_METADATA_KEY,
  MAX_METADATA_VALUE,
  MAX_NAME,
} from "./limits.ts";
import { mustBe } from "./requirement.ts";
import type { RuleContext } from "./rule.ts";

export function id(prefix: IdPrefix) {
  return mustBe(
    z.string().regex(idPattern(prefix)),
    `an id that begins with "${prefix}", copied from a response`,
  );
}

/** An amount in minor units of its currency: 1050 is 10.50 EUR. */
export const AmountMinor = mustBe(
  z.number().int().min(1).max(MAX_AMOUNT_MINOR)
    .describe("Amount in minor units of the currency: `1999` is 19.99 EUR"),
  "a whole number in minor units of the currency: 19.99 EUR is 1999",
);

export const AmountAlias = AmountMinor.describe(
  "Amount in minor units of the currency: `1999` is 19.99 EUR. `amount_minor` is another name " +
    "for it: a request has one of them, or both with the same value, and responses have both",
);

const CURRENCY_WORDS = 'a currency code such as "EUR", "USD" or "USDC"';
/** A currency in a request: ISO 4217 code, `USDC` or `USDT` in any case. Parses to upper case. */
export const Currency = mustBe(
  z.string().max(8).transform(normalizeCurrency)
    .refine(isCurrency, { error: `must be ${CURRENCY_WORDS}` })
    .describe("Currency of the amount: ISO 4217 code, `USDC` or `USDT`, in either case"),
  CURRENCY_WORDS,
);

export const CurrencyCode = z.string().describe(
  "Currency of the amounts: ISO 4217 code, `USDC` or `USDT`",
);

/** The merchant's own data on a resource. */
export const Metadata = mustBe(
  z.preprocess(
    fewEntries,
    z.record(z.string().min(1).max(MAX_METADATA_KEY), z.string().max(MAX_METADATA_VALUE)),
  ).describe(
    `Your own data: at most ${MAX_METADATA_ENTRIES} entries. A name has at most ` +
      `${MAX_METADATA_KEY} characters, a value at most ${MAX_METADATA_VALUE}`,
  ),
  'an object whose values are text, such as {"order": "1001"}',
);

/** Refuses too many entries before each of them is checked: a body can have 8 000. */
function fewEntries(sent: Record<string, string>, context: z.RefinementCtx): unknown {
  const is_too_many = typeof sent === "object" && sent !== null &&
    Object.keys(sent).length > MAX_METADATA_ENTRIES;
  if (!is_too_many) return sent;
  const message =
    `has more than ${MAX_METADATA_ENTRIES} entries: send at most ${MAX_METADATA_ENTRIES}`;
  context.addIssue({ code: "custom", message });
  return z.NEVER;
}

export const ShownMetadata = z.record(z.string(), z.string()).describe(
  "Your own data, as the last request set it",
);

/** Letters and digits of any script (RFC 6531 §3.3). */
const WORD = "\\p{L}\\p{M}\\p{N}";
const ATOM = `[${WORD}!#$%&'*+/=?^_\`{|}~\\-]+`;
const LABEL = `[${WORD}][${WORD}\\-]*`;
/** The form of an address. */
export const EMAIL: RegExp = new RegExp(
  `^${ATOM}(?:\\.${ATOM})*@(?:${LABEL}\\.)+[\\p{L}][${WORD}\\-]*[${WORD}]$`,
  "u",
);

/** An e-mail address without quotes or comments, of any script. */
export const Email = mustBe(
  z.string().max(MAX_EMAIL).regex(EMAIL).meta({ format: "idn-email" }),
  `an e-mail address such as "ada@example.com", of at most ${MAX_EMAIL} characters`,
);

/** The merchant's own id of a customer. */
export const CustomerId = z.string().min(1).max(MAX_CUSTOMER_ID)
  // A browser or proxy removes these from a path, even if they are percent-encoded.
  .refine((id) => id !== "." && id !== "..", 'cannot be "." or "..": send another id');

/** The payer: `customer` in variant A, `payer` in variant B. */
export const PersonInput = mustBe(
  z.object({
    id: CustomerId.optional().describe(
      "Your own id of the customer. Lists of payments can filter by it",
    ),
    email: Email.optional().describe(
      "E-mail address of the person. Required, except beside an `instrument`",
    ),
    name: z.string().min(1).max(MAX_NAME).optional().describe("Name of the person"),
  }).describe("The payer: `customer` or `payer`"),
  'an object with "email"',
);
/** The same in a response, which an erasure changes. */
export const Person = z.object({
  ...PersonInput.shape,
  email: Email.nullable().describe("E-mail address of the person; null: erased"),
  name: PersonInput.shape.name.unwrap().nullable().optional()
    .describe("Name of the person; null: erased"),
}).describe("The payer. `customer` and `payer` are two names for the same person");
export type Person = z.infer<typeof Person>;

/** Free text on a resource. */
export const Description = z.string().max(MAX_DESCRIPTION)
  .describe("Your own text for people, such as what was sold");

/** A time in a response: RFC 3339 in UTC, with milliseconds. */
export const Instant = z.iso.datetime().describe("RFC 3339 in UTC, with milliseconds");

const FIRST_TIME_MS = Date.parse("0001-01-01T00:00:00.000Z");
const LAST_TIME_MS = Date.parse("9999-12-31T23:59:59.999Z");

/** Reports whether `timestamptz`, RFC 3339 and `Date` can all represent a time in UTC. */
export function isStorableTime(at_ms: number): boolean {
  return at_ms >= FIRST_TIME_MS && at_ms <= LAST_TIME_MS;
}

/**
 * A time in a request: RFC 3339 with any offset. Parses to milliseconds. The range check uses UTC:
 * an offset can move a time of the year 9999 into the year 10000, which the database refuses.
 */
export const Time = mustBe(
  z.iso.datetime({ offset: true })
    .transform((text) => Date.parse(text))
    .refine(isStorableTime, {
      error: "must be in the years 1 to 9999 in UTC",
    }),
  "a date and time with its time zone, such as 2026-01-31T09:00:00Z",
);

export const Network = z.enum(NETWORKS).describe("Network of the wallet");
export const Stablecoin = z.enum(STABLECOINS).describe("Stablecoin that is sent");

/** Settlement of an asynchronous rail: at once, or by an advance. Test keys only. */
export const Settlement = z.enum(["instant", "manual"]).describe(
  "Test keys only. `manual` leaves a transfer, or a payment whose money takes time, `pending` " +
    "until an advance moves it, and also the refunds of a payment",
);

/** An amount under its two names: `amount` (variant A) and `amount_minor` (variant B). */
export interface NamedTwice {
  amount?: number | undefined;
  amount_minor?: number | undefined;
  currency?: string;
}

/** Refuses a body whose two amounts differ. */
export function sameAmount(body: NamedTwice, context: RuleContext): void {
  const { amount, amount_minor } = body;
  if (amount !== undefined && amount_minor !== undefined && amount !== amount_minor) {
    context.addIssue({
      code: "custom",
      path: ["amount_minor"],
      message: 'is another name for "amount": send one of them, or the same value in both',
    });
  }
}

export function requiredAmount(body: NamedTwice, context: RuleContext): void {
  if (amountOf(body) !== undefined) return;
  // zod also calls this function if the currency is refused.
  const currency = body.currency && isCurrency(body.currency) ? body.currency : "EUR";
  context.addIssue({
    code: "custom",
    path: ["amount"],
    message: `is required, in whole minor units: send 1999 for ${formatAmount(1999, currency)}`,
  });
}

export function amountOf(body: NamedTwice): number | undefined {
  return body.amount_minor ?? body.amount;
}
