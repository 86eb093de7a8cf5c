/** The offers of a checkout: the methods that the payer can choose, each at a price. */

import { type CheckoutMethod, methodsFor } from "../../core/checkout_methods.ts";
import { ApiError } from "../../core/errors.ts";
import { CHECKOUT_METHODS } from "../../core/vocabulary.ts";
import type { StoredAccount } from "../../store/provider_rows.ts";
import type { CheckoutPrice } from "../../schema/checkout.ts";
import type { MethodKind } from "../../schema/payment_body.ts";

export interface Offer {
  method: CheckoutMethod;
  price: CheckoutPrice;
}

/** An account that serves a kind of methods live (`pay_internal.method_accounts`). */
export interface MethodAccount {
  method_kind: MethodKind;
  /** `*`: each currency for which there is no other account. */
  currency: string;
  account: StoredAccount;
}

export const METHOD_KIND: Readonly<Record<CheckoutMethod, MethodKind>> = {
  card: "card",
  sepa_debit: "sepa",
  sepa: "sepa",
  swift: "swift",
  stablecoin: "stablecoin",
};

/** Returns each method at each price that it takes. */
export function offersOf(prices: readonly CheckoutPrice[]): Offer[] {
  return prices.flatMap((price) =>
    methodsFor(price.currency, price.amount_minor).map((method) => ({ method, price }))
  );
}

/** Returns the account that serves a method in a currency; null: none does. */
export function accountFor(
  accounts: readonly MethodAccount[],
  method: CheckoutMethod,
  currency: string,
): StoredAccount | null {
  const serving = accounts.filter(({ method_kind }) => method_kind === METHOD_KIND[method]);
  const found = serving.find((one) => one.currency === currency) ??
    serving.find((one) => one.currency === "*");
  return found?.account ?? null;
}

/** Returns the offers of the methods that the accounts of a live environment take at each price. */
export async function offersOfAccounts(
  offers: readonly Offer[],
  accounts: readonly MethodAccount[],
  takes: (account: StoredAccount, method: CheckoutMethod, price: CheckoutPrice) => Promise<boolean>,
): Promise<Offer[]> {
  const is_taken = await Promise.all(offers.map(({ method, price }) => {
    const account = accountFor(accounts, method, price.currency);
    return account && takes(account, method, price);
  }));
  const refused = new Set(offers.filter((_, i) => !is_taken[i]).map(({ method }) => method));
  return offers.filter(({ method }) => !refused.has(method));
}

/**
 * Chooses the methods of a new checkout among offers. Throws `provider_not_configured` if no
 * account takes one of them.
 */
export function chooseMethods(
  wanted: CheckoutMethod[] | undefined,
  offers: readonly Offer[],
): CheckoutMethod[] {
  const taken = new Set(offers.map(({ method }) => method));
  const missing = wanted?.find((method) => !taken.has(method));
  if (missing === undefined && taken.size > 0) {
    return wanted ?? CHECKOUT_METHODS.filter((method) => taken.has(method));
  }
  throw new ApiError(
    "provider_not_configured",
    missing === undefined
      ? "No live provider takes a payment of this checkout: use a test key, or let the operator " +
        'run "deno task providers add"'
      : `No live provider takes "${missing}" of checkouts: leave it out of "methods", or let the ` +
        'operator configure it. A card needs the setting "publishable_key", and "sepa_debit" the ' +
        'setting "creditor_id" and BANK_DETAILS_KEYS',
  );
}
