/**
 * One request to Stripe and its response: form encoding, headers, a limit on the response, and the
 * difference between a response and no usable response. This module never repeats a request and
 * knows no operation. Messages and results contain no secret. Source: docs.stripe.com/api.
 */

import { boundedBytes, jsonIn } from "../../core/response_body.ts";
import { fetchInSpan } from "../../core/tracing.ts";
import type { ProviderAccount, UnknownReason } from "../../domain/providers/connector.ts";
import { expandedOf, StripeError } from "./stripe_objects.ts";
import { readStripeSettings, STRIPE_VERSION } from "./stripe_settings.ts";

/**
 * Most bytes of a response. A page of 100 events usually has about 400 kB, but the metadata of one
 * object alone can have 25 kB. A list that is longer is read in smaller pages.
 */
const RESPONSE_BYTES_MAX = 1024 * 1024;

/** A secret that a header can carry: printable, without spaces. */
const SECRET = /^[!-~]{1,500}$/;

/** Names and values of a form or a query, in order. */
export type StripeFields = readonly (readonly [name: string, value: string])[];

export interface StripeRequest {
  method: "GET" | "POST";
  /** Such as `/v1/payment_intents`. */
  path: string;
  fields: StripeFields;
  /** For POST: Stripe's idempotency key. */
  key?: string;
}

/** A response with a JSON object. */
export interface StripeResponse {
  status: number;
  body: Record<string, unknown>;
  /** Stripe responds from its memory of the key. */
  replayed: boolean;
}

/** No usable response: the request may have worked. */
export interface StripeUnknown {
  unknown: UnknownReason;
  /** False: Stripe would only replay this response. */
  may_repeat: boolean;
  /** True: the response is longer than `RESPONSE_BYTES_MAX`. */
  too_long?: true;
  /** True: this request did nothing at Stripe: it was not sent, or Stripe refused its key. */
  did_nothing?: true;
}

/** A response that is none of Stripe's, or none of this request. */
export const GARBAGE = { unknown: "garbage", may_repeat: true } as const;

/** Sends one request. Never throws. `signal` is the only deadline. */
export async function callStripe(
  account: ProviderAccount,
  request: StripeRequest,
  signal: AbortSignal,
): Promise<StripeResponse | StripeUnknown> {
  if (account.secret === null || !SECRET.test(account.secret)) {
    return { ...unknown("unauthorized"), did_nothing: true };
  }
  try {
    const { url, init } = fetchInput(account, account.secret, request);
    const response = await fetchInSpan(url, { ...init, signal });
    return await readResponse(response);
  } catch {
    return unknown(signal.aborted ? "timeout" : "connection");
  }
}

/** Reports whether a request has no usable response. */
export function isUnknown(response: object): response is StripeUnknown {
  return "unknown" in response;
}

function fetchInput(account: ProviderAccount, secret: string, request: StripeRequest) {
  const { base_url, connected_account } = readStripeSettings(account.settings);
  const form = new URLSearchParams(request.fields.map(([name, value]) => [name, value])).toString();
  const headers = new Headers({
    "Authorization": `Bearer ${secret}`,
    "Stripe-Version": STRIPE_VERSION,
  });
  if (connected_account !== null) headers.set("Stripe-Account", connected_account);
  if (request.key !== undefined) headers.set("Idempotency-Key", request.key);
  const url = base_url + request.path;
  // A redirect would send the secret to another address.
  const common = { method: request.method, headers, redirect: "error" } as const;
  if (request.method === "GET") return { url: form === "" ? url : `${url}?${form}`, init: common };
  headers.set("Content-Type", "application/x-www-form-urlencoded");
  return { url, init: { ...common, body: form } };
}

async function readResponse(response: Response): Promise<StripeResponse | StripeUnknown> {
  const { status } = response;
  const replayed = response.headers.get("idempotent-replayed") === "true";
  const bytes = await boundedBytes(response, RESPONSE_BYTES_MAX);
  // Stripe also keeps a 500 under its key: a repeated request would get the same one.
  if (status >= 500 || status === 424) return unknown("server_error", !replayed);
  if (status === 429) return unknown("rate_limited");
  if (status === 409) return unknown("in_progress");
  if (bytes === null) return { ...GARBAGE, too_long: true };
  const body = objectIn(bytes);
  if (status === 401 || status === 403) {
    // Stripe checks the key before anything else. A proxy in front of it has no error of Stripe.
    const is_stripe = expandedOf(StripeError, body?.error) !== null;
    return { ...unknown("unauthorized"), ...(is_stripe && { did_nothing: true }) };
  }
  return body === null ? GARBAGE : { status, body, replayed };
}

function objectIn(bytes: Uint8Array): Record<string, unknown> | null {
  const value = jsonIn(bytes);
  const is_object = typeof value === "object" && value !== null && !Array.isArray(value);
  return is_object ? value as Record<string, unknown> : null;
}

function unknown(reason: UnknownReason, may_repeat = true): StripeUnknown {
  return { unknown: reason, may_repeat };
}
