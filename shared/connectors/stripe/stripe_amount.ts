/**
 * Converts amounts between our minor units (`shared/core/currency.ts`) and Stripe's. Most
 * currencies agree. This module lists the others.
 * Source: docs.stripe.com/currencies, "Special cases".
 */

import { CURRENCIES } from "../../core/currency.ts";

/** Our unit divided by Stripe's. Stripe keeps two decimals for ISK and UGX, and none for MGA. */
const FACTORS: ReadonlyMap<string, number> = new Map([["ISK", 100], ["UGX", 100], ["MGA", 0.01]]);

/** Currencies with three decimals. Stripe accepts only amounts whose last decimal is 0. */
const LAST_DECIMAL_ZERO = ["BHD", "JOD", "KWD", "OMR", "TND"];

/** Accepted by this service, but not by Stripe, or with unknown minor units there. */
const NOT_AT_STRIPE = ["IQD", "LYD", "USDC", "USDT"];

/**
 * Converts an amount to Stripe's minor units. Returns null if Stripe cannot represent it.
 *
 * @param currency in upper case
 */
export function toStripeAmount(amount_minor: number, currency: string): number | null {
  if (!CURRENCIES.has(currency) || NOT_AT_STRIPE.includes(currency)) return null;
  if (LAST_DECIMAL_ZERO.includes(currency) && amount_minor % 10 !== 0) return null;
  const factor = FACTORS.get(currency) ?? 1;
  return wholeOrNull(factor < 1 ? amount_minor / Math.round(1 / factor) : amount_minor * factor);
}

/**
 * Converts an amount of Stripe to our minor units. Returns null if our unit is too large for it,
 * such as for a fee of 0.50 ISK.
 *
 * @param currency in upper case
 */
export function fromStripeAmount(amount: number, currency: string): number | null {
  return wholeOrNull(inMinorUnits(amount, currency));
}

/** Converts a sum of amounts of Stripe to the nearest of our minor units. */
export function nearestAmount(sum: number, currency: string): number {
  return Math.round(inMinorUnits(sum, currency));
}

function inMinorUnits(amount: number, currency: string): number {
  const factor = FACTORS.get(currency) ?? 1;
  return factor < 1 ? amount * Math.round(1 / factor) : amount / factor;
}

function wholeOrNull(amount: number): number | null {
  return Number.isSafeInteger(amount) ? amount : null;
}
