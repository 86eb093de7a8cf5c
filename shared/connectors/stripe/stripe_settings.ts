/**
 * Settings of an account at Stripe: the address of the API, a connected account, and the
 * publishable key of the page of checkouts. They are checked when an account is added, and again
 * for each request. None is a secret.
 */

import { invalidParameter } from "../../core/errors.ts";
import { isLoopback } from "../../core/loopback.ts";

/** The version of Stripe's API that requests name: the one of the npm package 23.1.0 (ADR 0013). */
export const STRIPE_VERSION = "2026-10-28.endive";

const STRIPE_URL = "https://api.stripe.com";
const CONNECTED_ACCOUNT = /^acct_[A-Za-z0-9]{1,64}$/;
const PUBLISHABLE_KEY = /^pk_live_[A-Za-z0-9]{1,255}$/;
const NAMES: readonly string[] = ["base_url", "connected_account", "publishable_key"];

interface StripeSettings {
  /** Without a slash at its end. */
  base_url: string;
  /** `acct_…`: requests act for this connected account. */
  connected_account: string | null;
  /** `pk_live_…`: Stripe's fields in the page make tokens with it; null: checkouts take no card. */
  publishable_key: string | null;
}

/** Reads the settings of an account. Throws `invalid_parameter` with the name of the setting. */
export function readStripeSettings(settings: Readonly<Record<string, string>>): StripeSettings {
  for (const name of Object.keys(settings)) {
    if (NAMES.includes(name)) continue;
    throw invalidParameter(
      name,
      `is not a setting of stripe: the settings are ${NAMES.join(", ")}`,
    );
  }
  const { base_url = STRIPE_URL, connected_account = null, publishable_key = null } = settings;
  if (connected_account !== null && !CONNECTED_ACCOUNT.test(connected_account)) {
    throw invalidParameter(
      "connected_account",
      'must be the id of a connected account, such as "acct_1032D82eZvKYlo2C"',
    );
  }
  if (publishable_key !== null && !PUBLISHABLE_KEY.test(publishable_key)) {
    throw invalidParameter(
      "publishable_key",
      '"publishable_key" must be the publishable key of Stripe\'s live mode, which begins ' +
        "with pk_live_. If you have given a secret key, roll it at Stripe",
    );
  }
  return { base_url: readBaseUrl(base_url), connected_account, publishable_key };
}

/** The secret is sent to this address, so no other host than Stripe's is accepted. */
function readBaseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const is_loopback = url !== null && ["http:", "https:"].includes(url.protocol) &&
    isLoopback(url.hostname);
  // The origin drops user names, paths and queries, so the comparison refuses them.
  if (
    url === null || !(url.origin === STRIPE_URL || is_loopback) || url.href !== `${url.origin}/`
  ) {
    throw invalidParameter(
      "base_url",
      `must be ${STRIPE_URL}, or the origin of a program on this machine, ` +
        'such as "http://127.0.0.1:12111"',
    );
  }
  return url.origin;
}
