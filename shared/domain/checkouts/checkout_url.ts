/**
 * The URL of a checkout. Its token is derived from the master secret and a salt in the row, as the
 * secret of an endpoint is, so the database holds no token. Stored responses have a reference in
 * place of the URL (ADR 0015).
 */

import { createHash } from "node:crypto";
import { deriveBytes } from "../../core/webhook_signature.ts";
import { masterSecretOf } from "../webhooks/endpoint_secret.ts";

/** Label of the derivation, so that another one from the same master secret gives other bytes. */
const DERIVATION_LABEL = "checkout_token";
/** 192 bits: nobody can guess the token of a checkout. */
const TOKEN_BYTES = 24;
const TOKEN_PREFIX = "cht_";
const TOKEN = /^cht_[0-9a-f]{48}$/;
/** The reference behind the first members of a checkout, which no text of a merchant looks like. */
const REFERENCE =
  /("object":"checkout","status":"[a-z]+","url":)"checkout_reference:(chk_[0-9a-z]{26}):([0-9a-f]+)"/g;

/** What the URLs of checkouts are made from. */
export interface CheckoutUrls {
  master_secret: string;
  /** URL of the page without a slash at its end; null: it is not hosted. */
  checkout_url: string | null;
}

/** Returns the token of a checkout. */
export function checkoutToken(id: string, salt: string, master_secret: string): string {
  const bytes = deriveBytes(masterSecretOf(salt, master_secret), [DERIVATION_LABEL, id, salt]);
  return TOKEN_PREFIX + bytes.subarray(0, TOKEN_BYTES).toString("hex");
}

/** Reports whether a text has the form of a token. */
export function isCheckoutToken(text: string): boolean {
  return TOKEN.test(text);
}

/** Returns the hash under which a token is stored, lower-case hex. */
export function tokenHash(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

/** Makes the reference that replaces a URL in a stored response (`pay_internal.checkout_head`). */
export function checkoutReference(id: string, salt: string): string {
  return `checkout_reference:${id}:${salt}`;
}

/** Replaces the references in a response with URLs. */
export function revealUrls(body: string, { master_secret, checkout_url }: CheckoutUrls): string {
  return body.replace(REFERENCE, (_, before, id, salt) => {
    const url = checkout_url === null
      ? null
      : `${checkout_url}/#${checkoutToken(id, salt, master_secret)}`;
    return before + JSON.stringify(url);
  });
}
