/**
 * The instrument of a payment or transfer: checks it and reduces it to the parts that may be
 * stored. Full card numbers, CVCs and full IBANs do not leave this module (security §2, card
 * numbers). Pure.
 */

import { railOfCurrency } from "../../core/bank_schemes.ts";
import { cardBrand, normalizeCardNumber } from "../../core/card_number.ts";
import { formatAmount, isStablecoin } from "../../core/currency.ts";
import { invalidParameter } from "../../core/errors.ts";
import { ibanCountry, ibanLastFour, isValidIban, normalizeIban } from "../../core/iban.ts";
import { inferNetwork, isValidAddress } from "../../core/wallet_address.ts";
import {
  type Capability,
  type CardInput,
  type CreatePaymentBody,
  INSTRUMENT_FIELDS,
  type MethodKind,
} from "../../schema/payment_body.ts";
import { type PaymentMethod } from "../../schema/payment.ts";
import { amountOf, type NamedTwice } from "../../schema/values.ts";
import { RAILS } from "../rails.ts";
import { TEST_TOKENS, type TestBehaviour, testCard, testIban, testWallet } from "./test_values.ts";

/** A checked instrument without its secret parts, and its behaviour in the sandbox. */
export interface Instrument {
  kind: MethodKind;
  /** The masked instrument that responses show; null if the request has no instrument. */
  method: PaymentMethod | null;
  /** The behaviour of a test value; "approve" for other valid IBANs and wallet addresses. */
  behaviour: TestBehaviour | null;
  /** The provider's token of a live card. */
  token?: string;
}

/** The readers of the instruments of a create. `kind`: that the request names, if any. */
const READERS: Record<
  typeof INSTRUMENT_FIELDS[number],
  (
    body: CreatePaymentBody,
    kind: MethodKind | undefined,
    livemode: boolean,
    at_ms: number,
  ) => Instrument
> = {
  card: ({ card }, _, livemode, at_ms) => readCard(card!, livemode, at_ms),
  iban: ({ iban, currency }, kind) => readIban(iban!.iban, kind, currency),
  wallet: ({ wallet, currency }) => readWallet(wallet!, currency),
};

/** Reads the instrument of a create. Throws `invalid_parameter` with the field at fault. */
export function readInstrument(
  body: CreatePaymentBody,
  livemode: boolean,
  at_ms: number,
): Instrument {
  const [field, other] = INSTRUMENT_FIELDS.filter((name) => body[name] !== undefined);
  if (other !== undefined) {
    const names = INSTRUMENT_FIELDS.map((name) => `"${name}"`);
    throw invalidParameter(other, `Send only one of ${new Intl.ListFormat("en-GB").format(names)}`);
  }
  const requested = requestedKind(body);
  const kind = requested?.kind;
  const instrument = field === undefined
    ? { kind: kind ?? "card", method: null, behaviour: null }
    : READERS[field](body, kind, livemode, at_ms);
  if (requested && requested.kind !== instrument.kind) {
    const { param } = requested;
    throw invalidParameter(
      param,
      `"${param}" is "${body[param]}", but the payment has "${field}": leave one of them out`,
    );
  }
  checkCurrency(instrument.kind, body.currency);
  return instrument;
}

/** The kind that `capability` or `method_kind` names, and the field that names it. */
function requestedKind(body: CreatePaymentBody) {
  const byCapability = body.capability && kindOf(body.capability);
  if (byCapability && body.method_kind && byCapability !== body.method_kind) {
    throw invalidParameter(
      "method_kind",
      `"method_kind" is "${body.method_kind}", but "capability" is "${body.capability}": ` +
        "send one of them",
    );
  }
  if (body.method_kind) return { kind: body.method_kind, param: "method_kind" as const };
  return byCapability && { kind: byCapability, param: "capability" as const };
}

function kindOf(capability: Capability): MethodKind {
  return capability.slice(0, -"_payment".length) as MethodKind;
}

/** Returns the name of a kind in variant A. */
export function capabilityOf(kind: MethodKind): Capability {
  return `${kind}_payment`;
}

/** Throws `invalid_parameter` for a currency that the rail does not support. */
export function checkCurrency(kind: MethodKind, currency: string): void {
  const { name, only_currency: only, is_for_stablecoins } = RAILS[kind];
  if (only !== null && currency !== only) {
    throw invalidParameter(
      "currency",
      `${name} takes ${only} only: send "${only}" as the "currency"`,
    );
  }
  if (!is_for_stablecoins && isStablecoin(currency)) {
    throw invalidParameter(
      "currency",
      `${currency} needs a "wallet" or the kind "stablecoin": cards and banks do not take it`,
    );
  }
}

/** Throws `invalid_parameter` for an amount above the limit of the rail. */
export function checkAmount(kind: MethodKind, body: NamedTwice & { currency: string }): void {
  const { name, amount_max } = RAILS[kind];
  if (amount_max === null || (amountOf(body) ?? 0) <= amount_max) return;
  const param = body.amount_minor === undefined ? "amount" : "amount_minor";
  const limit = formatAmount(amount_max, body.currency);
  throw invalidParameter(param, `"${param}" must be at most ${amount_max} by ${name}: ${limit}`);
}

const USE_A_TEST_CARD = "Use a test card number such as 4242 4242 4242 4242";
const EXPIRED = "The card has expired: any month in the future works for a test card";

/** Expiry of the cards for which test tokens stand. */
const TOKEN_EXPIRY = { exp_month: 12, exp_year: 2040 };

/** Reads the token of a card. With a live key the provider knows the card. */
function readToken(token: string, livemode: boolean): Instrument {
  if (livemode) return { kind: "card", method: null, behaviour: null, token };
  const value = Object.hasOwn(TEST_TOKENS, token) ? TEST_TOKENS[token]! : null;
  if (value === null) {
    const [first, ...others] = Object.keys(TEST_TOKENS);
    throw invalidParameter(
      "card.token",
      `"card.token" must be a test token, such as ${first} or one of ${others.length} others of the ` +
        "contract",
    );
  }
  const number = normalizeCardNumber(value);
  return {
    kind: "card",
    method: {
      type: "card",
      card: { brand: cardBrand(number), last4: number.slice(-4), ...TOKEN_EXPIRY },
    },
    behaviour: testCard(number)!,
  };
}

/**
 * Throws `invalid_parameter` for a card number that is not of a test card, or with a live key. The
 * message does not repeat the number, which can be a real one.
 */
export function refuseRealCard(
  { card }: Pick<CreatePaymentBody, "card">,
  livemode: boolean,
): void {
  if (card?.number === undefined) return;
  if (livemode) {
    throw invalidParameter(
      "card.number",
      'Live keys take no card numbers: send the token of the provider as "card.token"',
    );
  }
  if (!testCard(normalizeCardNumber(card.number))) {
    throw invalidParameter("card.number", USE_A_TEST_CARD);
  }
}

function readCard(card: CardInput, livemode: boolean, at_ms: number): Instrument {
  if (card.token !== undefined) return readToken(card.token, livemode);
  refuseRealCard({ card }, livemode);
  return readTestCard(card as CompleteCard, at_ms);
}

type CompleteCard = { [Name in keyof CardInput]-?: Exclude<CardInput[Name], undefined> };

/** Reads a test card. The schema has checked that a card without a token has all its members. */
function readTestCard(card: CompleteCard, at_ms: number): Instrument {
  const number = normalizeCardNumber(card.number);
  const behaviour = testCard(number)!;
  const brand = cardBrand(number);
  if (brand !== "amex" && card.cvc.length !== 3) {
    throw invalidParameter("card.cvc", '"card.cvc" must have three digits for this card');
  }
  const now = new Date(at_ms);
  const year = now.getUTCFullYear();
  if (card.exp_year < year) {
    throw invalidParameter("card.exp_year", EXPIRED);
  }
  if (card.exp_year === year && card.exp_month < now.getUTCMonth() + 1) {
    throw invalidParameter("card.exp_month", EXPIRED);
  }
  const { exp_month, exp_year } = card;
  return {
    kind: "card",
    method: { type: "card", card: { brand, last4: number.slice(-4), exp_month, exp_year } },
    behaviour,
  };
}

/** The zero address, the value of an unset address on EVM chains. */
const ZERO_ADDRESS = /^0x0{40}$/i;

/** The place of an instrument in a body, for the field that an error names. */
interface Place {
  /** Path before the instrument, with a dot at the end: `destination.`. */
  prefix: string;
}

/** Reads an IBAN. `requested` is the kind that the request names, if any. */
export function readIban(
  text: string,
  requested: MethodKind | undefined,
  currency: string,
  { prefix }: Place = { prefix: "" },
): Instrument {
  const iban = normalizeIban(text);
  const test = testIban(iban);
  if (!test && !isValidIban(iban)) {
    throw invalidParameter(
      `${prefix}iban.iban`,
      "This is not an IBAN: a character is missing or wrong. A test IBAN is " +
        "DE89 3704 0044 0532 0130 00",
    );
  }
  const kind = (requested && RAILS[requested].bank) ?? test?.kind ?? railOfCurrency(currency);
  return {
    kind,
    method: {
      type: kind,
      iban: { country: ibanCountry(iban), last4: ibanLastFour(iban) },
      mandate: null,
      due_on: null,
    },
    behaviour: test?.behaviour ?? "approve",
  };
}

/** Reads a wallet. Throws `invalid_parameter` with the field at fault. */
export function readWallet(
  wallet: NonNullable<CreatePaymentBody["wallet"]>,
  currency: string,
  { prefix }: Place = { prefix: "" },
): Instrument {
  const address = wallet.address.replace(/\s/g, "");
  const behaviour = testWallet(address);
  if (ZERO_ADDRESS.test(address)) {
    throw invalidParameter(
      `${prefix}wallet.address`,
      "Nobody holds this address, so the money would be lost: use another address",
    );
  }
  const network = wallet.network ?? inferNetwork(address) ?? "ethereum";
  if (!behaviour && !isValidAddress(network, address)) {
    throw invalidParameter(
      `${prefix}wallet.address`,
      `This is not a wallet address on ${network}: check each character, or send another ` +
        '"network". A test wallet is 0x000000000000000000000000000000000000dEaD',
    );
  }
  const coin = isStablecoin(currency) ? currency : null;
  if (coin && wallet.asset && wallet.asset !== coin) {
    throw invalidParameter(
      `${prefix}wallet.asset`,
      `The wallet's "asset" is ${wallet.asset}, but "currency" is ${coin}: send the same in both`,
    );
  }
  const asset = wallet.asset ?? coin ?? "USDC";
  return {
    kind: "stablecoin",
    method: { type: "stablecoin", wallet: { address, network, asset, tx_hash: null } },
    behaviour: behaviour ?? "approve",
  };
}
