/**
 * What a payment is made with: the instrument of a create's body, checked and reduced to what may
 * be kept. A card number, CVC or IBAN goes no further than this module. Pure.
 */

import { cardBrand, normalizeCardNumber } from "../../core/card_number.ts";
import { type Stablecoin, STABLECOINS } from "../../core/currency.ts";
import { ERROR_PAGE, invalidParameter } from "../../core/errors.ts";
import { ibanCountry, ibanLastFour, isValidIban, normalizeIban } from "../../core/iban.ts";
import { inferNetwork, isValidAddress } from "../../core/wallet_address.ts";
import type { Capability, CardInput, CreatePaymentBody } from "../../schema/payment.ts";
import type { MethodKind, PaymentMethod } from "../../schema/payment.ts";
import { type TestBehaviour, testCard, testIban, testWallet } from "./test_values.ts";

/** An instrument fit to be kept, and what it makes the sandbox do. */
export interface Instrument {
  kind: MethodKind;
  /** What is shown of it; null when the payment names no instrument. */
  method: PaymentMethod | null;
  /** What a test value does; "approve" for other well-formed accounts and addresses. */
  behaviour: TestBehaviour | null;
}

/** Reads the instrument of a create. Throws `invalid_parameter` naming the field. */
export function readInstrument(
  body: CreatePaymentBody,
  livemode: boolean,
  at_ms: number,
): Instrument {
  const given = (["card", "iban", "wallet"] as const).filter((name) => body[name] !== undefined);
  if (given.length > 1) {
    throw invalidParameter(given[1]!, 'Send only one of "card", "iban" and "wallet"');
  }
  const asked = askedKind(body);
  const instrument = body.card
    ? readCard(body.card, livemode, at_ms)
    : body.iban
    ? readIban(body.iban.iban, asked?.kind, body.currency)
    : body.wallet
    ? readWallet(body.wallet, body.currency)
    : { kind: asked?.kind ?? "card", method: null, behaviour: null };
  if (asked && asked.kind !== instrument.kind) {
    const { param } = asked;
    throw invalidParameter(
      param,
      `"${param}" is "${body[param]}", but the payment has "${given[0]}": leave one of them out`,
    );
  }
  checkCurrency(instrument.kind, body.currency);
  return instrument;
}

/** The kind that `capability` or `method_kind` asks for, and the field that asks. */
function askedKind(body: CreatePaymentBody) {
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

/** The name of a kind in variant A. */
export function capabilityOf(kind: MethodKind): Capability {
  return `${kind}_payment`;
}

/** Refuses a currency that a rail cannot carry. */
export function checkCurrency(kind: MethodKind, currency: string): void {
  if (kind === "sepa" && currency !== "EUR") {
    throw invalidParameter("currency", `SEPA takes EUR only, not ${currency}`);
  }
  if (kind !== "stablecoin" && isStablecoin(currency)) {
    throw invalidParameter(
      "currency",
      `${currency} needs a "wallet": cards and banks do not take it`,
    );
  }
}

const USE_A_TEST_CARD =
  `Use a test card number such as 4242 4242 4242 4242. ${ERROR_PAGE}#test-values lists them`;
const EXPIRED = "The card has expired: any month in the future works for a test card";

function readCard(card: CardInput, livemode: boolean, at_ms: number): Instrument {
  if (livemode) {
    throw invalidParameter("card.number", "Live keys take no card numbers: use a test key");
  }
  const number = normalizeCardNumber(card.number);
  const behaviour = testCard(number);
  // The number is not repeated: it might be a real one.
  if (!behaviour) throw invalidParameter("card.number", USE_A_TEST_CARD);
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

/** What an unset address looks like on EVM chains. */
const ZERO_ADDRESS = /^0x0{40}$/i;

/** Where an instrument stands in a body, for the field that an error names. */
interface Place {
  prefix: string;
}

/** Reads an account. `asked` is the rail that was named, if any. */
export function readIban(
  text: string,
  asked: MethodKind | undefined,
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
  const inferred = test?.kind ?? (currency === "EUR" ? "sepa" : "swift");
  const kind = asked === "sepa" || asked === "swift" ? asked : inferred;
  return {
    kind,
    method: { type: kind, iban: { country: ibanCountry(iban), last4: ibanLastFour(iban) } },
    behaviour: test?.behaviour ?? "approve",
  };
}

/** Reads a wallet. */
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
      `This is not a wallet address on ${network}: check each character, or name another "network". ` +
        "A test wallet is 0x000000000000000000000000000000000000dEaD",
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

function isStablecoin(currency: string): currency is Stablecoin {
  return (STABLECOINS as readonly string[]).includes(currency);
}
