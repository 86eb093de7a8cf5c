/**
 * The rails: everything that differs between the kinds of payment methods. No rule elsewhere
 * compares the name of a rail, except in the connectors; the console only words them. A new kind
 * without a row is a type error, and each column that the row has to fill leads to a rule. Pure.
 */

import { BANK_SCHEMES, type BankRail, railOfCurrency } from "../core/bank_schemes.ts";
import { METHOD_KINDS } from "../core/vocabulary.ts";
import type { FailureCode, MethodMember, Payment, PaymentMethod } from "../schema/payment.ts";
import type { MethodKind } from "../schema/payment_body.ts";
import type { Transfer, TransferDestination } from "../schema/transfer.ts";

const HOUR_MS = 3_600_000;

/** The connectors of live accounts, in the order in which lists name them. */
export const LIVE_CONNECTORS = ["stripe", "evm", "bank"] as const;
export type LiveConnector = typeof LIVE_CONNECTORS[number];

/** Where a payer without an instrument sends the money (contract §2). */
interface PayerSends<Target> {
  to: Target;
  /** The time for it in a sandbox. */
  window_ms: number;
  /** When it is final: when the provider reports it, or later, as a chain can undo it. */
  settles: "at_once" | "when_final";
}

export type Rail =
  & RailRules
  & (
    /**
     * The scheme of the orders to banks that move its money. Only such a rail has an account.
     * `payer_sends` is null if a payment without an instrument has no place.
     */
    | { bank: BankRail; is_for_stablecoins: false; payer_sends: PayerSends<"account"> | null }
    /** No bank gets an order. */
    | { bank: null; is_for_stablecoins: true; payer_sends: PayerSends<"address"> }
    | { bank: null; is_for_stablecoins: false; payer_sends: null }
  );

/** The rules without the banks. */
interface RailRules {
  /** As people write it. */
  name: string;
  /** The connector whose accounts serve it with a live key; null: such a request returns 503. */
  connector: LiveConnector | null;
  /** Whether it moves stablecoins. With a test key such a rail takes every currency. */
  is_for_stablecoins: boolean;
  /** The only currency; null: any. */
  only_currency: string | null;
  /** Largest amount, in minor units of `only_currency`; null: no limit. */
  amount_max: number | null;
  /** Whether a live payment needs the token of the provider in place of the instrument. */
  needs_token: boolean;
  /** Whether an amount can be authorized now and captured later. */
  has_manual_capture: boolean;
  /** Whether a payment is collected from the payer's account under a mandate. */
  collects: boolean;
  /** Whether the money takes time, so that `settlement: "manual"` leaves a payment `pending`. */
  takes_time: boolean;
  /** The usual code with which a bank takes a completed payment back; null: nobody does. */
  returns: string | null;
  /** The code of a payment or transfer that fails after the provider has accepted it. */
  fails_with: FailureCode;
  /**
   * Where the method of a payment, or the destination of a transfer, shows the provider's id of the
   * transaction that has moved the money; null: nowhere.
   */
  shows_transaction: readonly [part: MethodMember, member: string] | null;
  /** The destination that a refund can name; `payer`: none, it goes back to where it came from. */
  refund_to: "payer" | "account" | "wallet";
  /**
   * Whether a payment that has failed here is still open at its provider: somebody could pay it in
   * another way, so the service cancels it there.
   */
  stays_open: boolean;
}

export const RAILS: Readonly<Record<MethodKind, Rail>> = {
  card: {
    name: "Card",
    connector: "stripe",
    bank: null,
    is_for_stablecoins: false,
    only_currency: null,
    amount_max: null,
    needs_token: true,
    has_manual_capture: true,
    collects: false,
    takes_time: false,
    payer_sends: null,
    returns: null,
    fails_with: "processing_failed",
    shows_transaction: null,
    refund_to: "payer",
    stays_open: true,
  },
  sepa: railOfBanks("sepa", { collects: true }),
  swift: railOfBanks("swift", { collects: false }),
  stablecoin: {
    name: "Stablecoin",
    connector: "evm",
    bank: null,
    is_for_stablecoins: true,
    only_currency: null,
    amount_max: null,
    needs_token: false,
    has_manual_capture: false,
    collects: false,
    takes_time: true,
    payer_sends: { to: "address", window_ms: HOUR_MS, settles: "when_final" },
    returns: null,
    fails_with: "onchain_reverted",
    shows_transaction: ["wallet", "tx_hash"],
    refund_to: "wallet",
    stays_open: false,
  },
};

/** The rules of banks, with what their scheme decides. */
function railOfBanks(bank: BankRail, { collects }: Pick<Rail, "collects">): Rail {
  const { name, currency: only_currency, amount_max } = BANK_SCHEMES[bank];
  return {
    ...{ name, bank, only_currency, amount_max, collects },
    connector: "bank",
    is_for_stablecoins: false,
    needs_token: false,
    has_manual_capture: false,
    takes_time: true,
    payer_sends: { to: "account", window_ms: 14 * 24 * HOUR_MS, settles: "at_once" },
    returns: "R01",
    fails_with: "bank_return",
    shows_transaction: null,
    refund_to: "account",
    stays_open: false,
  };
}

const TRANSFER_RAILS: Readonly<
  Record<TransferDestination["type"], (currency: string) => MethodKind>
> = {
  iban: railOfCurrency,
  wallet: () => "stablecoin",
};

/** Returns the kinds of payment methods that the accounts of a connector serve with a live key. */
export function methodKindsOf(connector: LiveConnector): MethodKind[] {
  return METHOD_KINDS.filter((kind) => RAILS[kind].connector === connector);
}

/** Returns the names of some rails for a message: `SEPA or SWIFT`, or with "and". */
export function railNames(
  holds: (rail: Rail) => boolean,
  type: "conjunction" | "disjunction" = "disjunction",
): string {
  const names = Object.values(RAILS).filter(holds).map(({ name }) => name);
  return new Intl.ListFormat("en-GB", { type }).format(names);
}

/** Returns the method of an operation about a resource: it chooses the provider. */
export function methodOf(
  subject:
    | Pick<Payment, "object" | "method_kind">
    | Pick<Transfer, "object" | "destination" | "currency">,
): MethodKind {
  return subject.object === "payment"
    ? subject.method_kind
    : TRANSFER_RAILS[subject.destination.type](subject.currency);
}

/** Returns a method or destination with the id of its transaction, if its rail shows one. */
export function withTransaction<Shown extends PaymentMethod | TransferDestination>(
  shown: Shown,
  { shows_transaction }: Rail,
  id: string,
): Shown {
  if (shows_transaction === null) return shown;
  const [part, name] = shows_transaction;
  return { ...shown, [part]: { ...shown[part as keyof Shown], [name]: id } };
}

/** Returns the rules of the rail of a payment or transfer. */
export function railOf(subject: Parameters<typeof methodOf>[0]): Rail {
  return RAILS[methodOf(subject)];
}
