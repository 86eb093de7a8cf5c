/** The methods by which a payer pays a checkout, and the currencies of each. Pure. */

import { isStablecoin } from "./currency.ts";
import { CHECKOUT_METHODS } from "./vocabulary.ts";

export type CheckoutMethod = typeof CHECKOUT_METHODS[number];

/** Returns the methods that take a currency, of an amount of 0 those that save. */
export function methodsFor(currency: string, amount_minor: number): CheckoutMethod[] {
  if (isStablecoin(currency)) return amount_minor === 0 ? [] : ["stablecoin"];
  const is_euro = currency === "EUR";
  return CHECKOUT_METHODS.filter((method) =>
    method === "card" || method === "sepa_debit" && is_euro ||
    amount_minor > 0 && (method === "swift" || method === "sepa" && is_euro)
  );
}
