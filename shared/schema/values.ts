/**
 * Wire values that several resources share: amounts, currencies, metadata, persons.
 */

import * as z from "zod";
import { formatAmount, isCurrency, normalizeCurrency, STABLECOINS } from "../core/currency.ts";
import { idPattern, type IdPrefix } from "../core/ids.ts";
import { NETWORKS } from "../core/vocabulary.ts";
import {
  MAX_AMOUNT_MINOR,
  MAX_DESCRIPTION,
  MAX_EMAIL,
  MAX_METADATA_ENTRIES,
  MAX_METADATA_KEY,
  MAX_METADATA_VALUE,
  MAX_NAME,
} from "./limits.ts";
import { mustBe } from "./requirement.ts";

/** An id of one kind. */
export function id(prefix: IdPrefix) {
  return mustBe(
    z.string().regex(idPattern(prefix)),
    `an id that begins with "${prefix}", copied from an answer`,
  );
}

/** An amount in minor units of its currency: 1050 is 10.50 EUR. */
export const AmountMinor = mustBe(
  z.number().int().min(1).max(MAX_AMOUNT_MINOR)
    .describe("Amount in minor units of the currency: `1999` is 19.99 EUR"),
  "a whole number in minor units of the currency: 19.99 EUR is 1999",
);

/** The same amount under its other name: both are in every answer. */
export const AmountTwin = AmountMinor.describe(
  "The same as `amount_minor`. In a request give one of them, or both equal",
);

const CURRENCY_WORDS = 'a currency code such as "EUR", "USD" or "USDC"';
/** An ISO 4217 code, `USDC` or `USDT`; any case in, upper case out. */
export const Currency = mustBe(
  z.string().max(8).transform(normalizeCurrency)
    .refine(isCurrency, { error: `must be ${CURRENCY_WORDS}` })
    .describe("ISO 4217 code, `USDC` or `USDT`; upper and lower case are the same"),
  CURRENCY_WORDS,
);

/** A currency as every answer shows it. */
export const CurrencyCode = z.string().describe("ISO 4217 code, `USDC` or `USDT`");

/** The merchant's own data on a resource. */
export const Metadata = mustBe(
  z.record(
    z.string().min(1).max(MAX_METADATA_KEY),
    z.string().max(MAX_METADATA_VALUE),
  ).refine((entries) => Object.keys(entries).length <= MAX_METADATA_ENTRIES, {
    error: `has more than ${MAX_METADATA_ENTRIES} entries, which is the limit`,
  }).describe(
    `Your own data: at most ${MAX_METADATA_ENTRIES} strings of ${MAX_METADATA_VALUE} characters ` +
      `under keys of ${MAX_METADATA_KEY}`,
  ),
  'an object whose values are text, such as {"order": "1001"}',
);

/** Metadata as every answer shows it. */
export const ShownMetadata = z.record(z.string(), z.string()).describe("Your own data");

/** Who pays: `customer` in variant A, `payer` in variant B. */
export const Person = z.object({
  email: mustBe(
    z.email().max(MAX_EMAIL),
    `an e-mail address such as "ada@example.com", of at most ${MAX_EMAIL} characters`,
  ),
  name: z.string().min(1).max(MAX_NAME).optional(),
}).describe("Who pays: `customer` and `payer` are two names of the same");
export type Person = z.infer<typeof Person>;

/** Free text on a resource. */
export const Description = z.string().max(MAX_DESCRIPTION);

/** The instant something happened: RFC 3339, UTC, milliseconds. */
export const Instant = z.iso.datetime().describe("RFC 3339 in UTC, with milliseconds");

/** The range that `timestamptz`, RFC 3339 and `Date` share, in UTC. */
const FIRST_TIME_MS = Date.parse("0001-01-01T00:00:00.000Z");
const LAST_TIME_MS = Date.parse("9999-12-31T23:59:59.999Z");

/**
 * A time in a request: RFC 3339 with any offset, parsed to milliseconds. An offset can move a time
 * of the year 9999 into the year 10000, which the database refuses, so the check uses UTC.
 */
export const Time = mustBe(
  z.iso.datetime({ offset: true })
    .transform((text) => Date.parse(text))
    .refine((at_ms) => at_ms >= FIRST_TIME_MS && at_ms <= LAST_TIME_MS, {
      error: "must be in the years 1 to 9999 in UTC",
    }),
  "a date and time with its time zone, such as 2026-01-31T09:00:00Z",
);

/** Networks of a wallet. */
export const Network = z.enum(NETWORKS);
/** Stablecoins. */
export const Stablecoin = z.enum(STABLECOINS);

/** How an asynchronous rail settles: at once, or when it is advanced. Test keys only. */
export const Settlement = z.enum(["instant", "manual"]).describe(
  "Test keys only. `manual` leaves a SEPA, SWIFT or stablecoin movement `pending` until it is " +
    "advanced",
);

/** An amount under its two names: `amount` (variant A) and `amount_minor` (variant B). */
interface NamedTwice {
  amount?: number | undefined;
  amount_minor?: number | undefined;
  currency?: string;
}

/** Refuses a body whose two amounts differ. */
export function sameAmount(body: NamedTwice, context: z.RefinementCtx): void {
  const { amount, amount_minor } = body;
  if (amount !== undefined && amount_minor !== undefined && amount !== amount_minor) {
    context.addIssue({
      code: "custom",
      path: ["amount_minor"],
      message: 'is another name of "amount": send one of them, or the same in both',
    });
  }
}

/** Refuses a body without an amount. */
export function requiredAmount(body: NamedTwice, context: z.RefinementCtx): void {
  if (amountOf(body) !== undefined) return;
  context.addIssue({
    code: "custom",
    path: ["amount"],
    message: `is required, in whole minor units: send 1999 for ${
      formatAmount(1999, body.currency ?? "EUR")
    }`,
  });
}

/** The amount of a body, by whichever name it has. */
export function amountOf(body: NamedTwice): number | undefined {
  return body.amount_minor ?? body.amount;
}
