/**
 * The URL of the step where the payer of a sandbox payment completes 3-D Secure, on the page for
 * payers. The token is in the fragment, so it reaches no log of the page's host.
 */

import { randomHex, type RandomSource } from "../core/ids.ts";

/** The part of the URL between the page's own URL and the token (apps/checkout/data/visit.ts). */
const ROUTE = "/#bank/";
/** 192 random bits: nobody can guess the token of a payment. */
const TOKEN_BYTES = 24;
const TOKEN = /^[0-9a-f]{48}$/;

export interface PayerUrls {
  base_url: string;
  /** URL of the page for payers without a slash at its end; null: it is not hosted. */
  checkout_url: string | null;
}

export function newChallengeToken(random: RandomSource): string {
  return randomHex(TOKEN_BYTES, random);
}

export function isChallengeToken(text: string): boolean {
  return TOKEN.test(text);
}

export function challengeUrl(checkout_url: string, token: string): string {
  return `${checkout_url}${ROUTE}${token}`;
}

/** Reports whether the URL leads to the page, and not to an operation or a provider. */
export function isChallengeUrl(url: string): boolean {
  const [, token] = url.split(ROUTE);
  return token !== undefined && isChallengeToken(token);
}
