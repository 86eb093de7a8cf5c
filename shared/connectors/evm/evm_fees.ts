/**
 * Decides the fees of payouts (ADR 0020). The operator's `max_fee` and `max_tip` bound each
 * transaction, so no response of a node makes a payout dearer. Pure.
 *
 * A transaction offers `max_fee` per unit of gas. It pays the base fee, which the chain sets, and
 * the tip, which a node proposes. Source: EIP-1559.
 */

import { EVM_NETWORKS, type EvmNetwork } from "./evm_networks.ts";

/**
 * A tip of up to this multiple of the base fee follows the market, however high the market is.
 * Even in rushes most wallets propose less than the base fee itself.
 */
const TIP_OF_BASE = 3;
/** The base fee can double within 6 blocks, and the transaction must stay valid. */
const BASE_RESERVE = 2;
/** Nodes accept a replacement whose fees are at least 10 % higher; many require 12.5 %. */
const BUMP = 1.125;
/** A fee of a wrong node can be far too low, and 37 doublings reach 100 gwei from 1 wei. */
const MAX_FEE_RAISE = 2;
/** Decimals of the coins of these networks. */
const WEI_DIGITS = 18;
const WEI_OF_GWEI = 1e9;

/** The fees of a transaction per unit of gas, in wei. */
export interface Fees {
  max_fee: number;
  priority_fee: number;
}

/** The prices that one node reports, per unit of gas, in wei. */
export interface FeeQuote {
  base_fee: number;
  tip: number;
}

/** The newest blocks of a node, of which each has one percentile of tips. */
export interface FeeHistory {
  /** The base fees of the blocks, and of the next one. */
  base_fees: readonly number[];
  tips: readonly number[];
}

/**
 * Returns the prices of a node, which are at least those of its newest blocks: the base fee of the
 * next block, and the median of their tips.
 */
export function quoteOf(proposed: FeeQuote, { base_fees, tips }: FeeHistory): FeeQuote {
  const sorted = tips.toSorted((a, b) => a - b);
  return {
    base_fee: Math.max(proposed.base_fee, base_fees.at(-1) ?? 0),
    tip: Math.max(proposed.tip, sorted[Math.floor(sorted.length / 2)] ?? 0),
  };
}

export interface FeeLimits {
  network: EvmNetwork;
  /** The most that one payout may cost, in wei. */
  max_fee: bigint;
  /** A tip up to this one is allowed whatever the base fee is, per unit of gas, in wei. */
  max_tip: number;
}

/**
 * Returns the reason, for the operator, why the market asks for more than the account allows; null:
 * it does not. The lowest quotes count, so a node that asks for too much stops nothing on its own.
 */
export function excessOf(
  quotes: readonly FeeQuote[],
  gas: number,
  limits: FeeLimits,
): string | null {
  const { base_fee, tip } = lowest(quotes);
  const advice = "if a block explorer agrees, raise it; if not, change rpc_urls";
  if (tip > tipLimit(quotes, limits)) {
    const [requested, base, most] = [tip, base_fee, limits.max_tip].map((wei) => wei / WEI_OF_GWEI);
    return `the tip is ${requested} gwei at a base fee of ${base}, and max_tip ${most}: ${advice}`;
  }
  if (base_fee + tip <= gasPriceLimit(gas, limits)) return null;
  const cost = costOf(gas, base_fee + tip, limits);
  return `the fee is ${cost}, and max_fee ${formatCoins(limits.max_fee)}: ${advice}`;
}

/**
 * Returns the fees of a first transaction: those of the highest quotes that the account allows, so
 * a node that reports too little holds up nothing on its own. If it allows none, the lowest quotes
 * count, within the limits.
 */
export function firstFees(quotes: readonly FeeQuote[], gas: number, limits: FeeLimits): Fees {
  const allowed = quotes.filter((quote) => excessOf([quote], gas, limits) === null);
  const { base_fee, tip } = allowed.length > 0 ? highest(allowed) : lowest(quotes);
  const allowed_tip = Math.min(tip, tipLimit(quotes, limits));
  const wanted = BASE_RESERVE * base_fee + allowed_tip;
  const max_fee = Math.min(wanted, gasPriceLimit(gas, limits));
  return { max_fee, priority_fee: Math.min(allowed_tip, max_fee) };
}

/**
 * Returns the fees of a transaction that replaces one; null: `max_fee` leaves no room for it. The
 * highest quotes count, because the lowest ones may have been too low. `max_tip` bounds the tips
 * that nodes propose, and not the raises by the least step. A raise that leaves no room for another
 * one has the highest tip, because nothing can repair a tip that is too low after it.
 */
export function raisedFees(
  last: Fees,
  quotes: readonly FeeQuote[],
  gas: number,
  limits: FeeLimits,
): Fees | null {
  const most = gasPriceLimit(gas, limits);
  const least = bumped(last.max_fee);
  const least_tip = bumped(last.priority_fee);
  if (least > most || least_tip > most) return null;
  const { base_fee, tip } = highest(quotes);
  const most_tip = tipLimit(quotes, limits);
  const wanted_tip = Math.max(Math.min(tip, most_tip), least_tip);
  const wanted = Math.max(
    BASE_RESERVE * base_fee + wanted_tip,
    MAX_FEE_RAISE * last.max_fee,
    least,
  );
  const max_fee = Math.min(wanted, most);
  const is_last = bumped(max_fee) > most;
  const priority_fee = is_last ? Math.max(most_tip, wanted_tip) : wanted_tip;
  return { max_fee, priority_fee: Math.min(priority_fee, max_fee) };
}

/** Reports whether a transaction could cost more than the account allows. */
export function isTooDear(gas: number, { max_fee }: Fees, limits: FeeLimits): boolean {
  return max_fee > gasPriceLimit(gas, limits);
}

/** Reports whether no block can take a transaction with these fees, as all nodes have it. */
export function isBelowMarket({ max_fee }: Fees, quotes: readonly FeeQuote[]): boolean {
  return max_fee < lowest(quotes).base_fee;
}

export function costOf(gas: number, price: number, { network }: FeeLimits): string {
  return `${formatCoins(BigInt(gas) * BigInt(price))} ${EVM_NETWORKS[network].coin}`;
}

export function limitsText({ network, max_fee, max_tip }: FeeLimits): string {
  return `max_fee ${formatCoins(max_fee)} ${EVM_NETWORKS[network].coin} and max_tip ` +
    `${max_tip / WEI_OF_GWEI} gwei`;
}

/** Parses a decimal number of coins or gwei. Returns null if it is none. */
export function parseUnits(text: string, digits: number): bigint | null {
  const [, whole, fraction = ""] = /^(\d{1,9})(?:\.(\d+))?$/.exec(text) ?? [];
  if (whole === undefined || fraction.length > digits) return null;
  return BigInt(whole + fraction.padEnd(digits, "0"));
}

/** Parses a decimal number of the network's coin to wei. Returns null if it is none. */
export function parseCoins(text: string): bigint | null {
  return parseUnits(text, WEI_DIGITS);
}

function formatCoins(wei: bigint): string {
  const coins = Number(wei) / 10 ** WEI_DIGITS;
  return coins.toLocaleString("en", { maximumSignificantDigits: 3, useGrouping: false });
}

function lowest(quotes: readonly FeeQuote[]): FeeQuote {
  return {
    base_fee: Math.min(...quotes.map(({ base_fee }) => base_fee)),
    tip: Math.min(...quotes.map(({ tip }) => tip)),
  };
}

function highest(quotes: readonly FeeQuote[]): FeeQuote {
  return {
    base_fee: Math.max(...quotes.map(({ base_fee }) => base_fee)),
    tip: Math.max(...quotes.map(({ tip }) => tip)),
  };
}

function tipLimit(quotes: readonly FeeQuote[], { max_tip }: FeeLimits): number {
  return Math.max(max_tip, TIP_OF_BASE * lowest(quotes).base_fee);
}

/** The highest price of a unit of gas with which the whole gas costs at most `max_fee`. */
function gasPriceLimit(gas: number, { max_fee }: FeeLimits): number {
  return Number(max_fee / BigInt(gas));
}

function bumped(fee: number): number {
  return Math.max(Math.ceil(fee * BUMP), fee + 1);
}
