/** The harmless call that shows the operator whether an account works. */

import * as z from "zod";
import type { ProviderAccount, UnknownReason } from "../../domain/providers/connector.ts";
import { callStripe, isUnknown, type StripeFields } from "./stripe_call.ts";
import { STRIPE_EVENT_TYPES } from "./stripe_events.ts";
import { expandedOf, StripePage } from "./stripe_objects.ts";
import { readStripeSettings, STRIPE_VERSION } from "./stripe_settings.ts";

const REASONS: Partial<Record<UnknownReason, string>> = {
  timeout: "Stripe did not respond in time",
  connection: "no connection to Stripe",
  server_error: "Stripe responds with an error of its own",
  rate_limited: "Stripe limits the rate of requests",
};

const Account = z.object({ object: z.literal("account"), id: z.string() });
const Balance = z.object({ object: z.literal("balance") });
const Endpoint = z.object({
  url: z.string(),
  api_version: z.string().nullish(),
  enabled_events: z.array(z.string()),
});

/**
 * Reads the account, or its balance if the key may not read accounts.
 *
 * @returns a line for the operator
 * @throws {Error} with a message for people
 */
export async function testAccount(account: ProviderAccount, signal: AbortSignal): Promise<string> {
  if (account.secret === null) throw new Error("The variable that holds the secret is not set");
  const { connected_account } = readStripeSettings(account.settings);
  const get = async (path: string, fields: StripeFields = []) => {
    const response = await callStripe(account, { method: "GET", path, fields }, signal);
    return isUnknown(response) || response.status === 200 ? response : null;
  };
  const mode = /^[a-z]+_live_/.test(account.secret) ? "live" : "test";
  let response = await get("/v1/account");
  // A restricted key can lack the permission to read the account.
  if (response !== null && isUnknown(response) && response.unknown === "unauthorized") {
    response = await get("/v1/balance");
  }
  if (response !== null && isUnknown(response)) {
    const reason = response.unknown === "unauthorized"
      ? "Stripe refuses the secret, or the secret lacks the permission to read the balance"
      : REASONS[response.unknown] ?? "this address does not respond like Stripe";
    throw new Error(`The test call failed: ${reason}`);
  }
  const read = expandedOf(Account, response?.body);
  if (read === null && expandedOf(Balance, response?.body) === null) {
    throw new Error("The test call failed: this address does not respond like Stripe");
  }
  if (read !== null && connected_account !== null && read.id !== connected_account) {
    throw new Error("The test call failed: the key is of another connected account");
  }
  const warning = await endpointWarning(account, signal);
  return `Stripe accepts the key of ${read?.id ?? "this account"} in ${mode} mode${warning}`;
}

/** Returns the faults of the webhook endpoint: Stripe uses its version and events, not ours. */
async function endpointWarning(account: ProviderAccount, signal: AbortSignal): Promise<string> {
  const response = await callStripe(account, {
    method: "GET",
    path: "/v1/webhook_endpoints",
    fields: [["limit", "100"]],
  }, signal);
  const page = isUnknown(response) ? null : expandedOf(StripePage, response.body);
  const endpoint = (page?.data ?? []).map((object) => expandedOf(Endpoint, object))
    .find((one) => one?.url.includes(`/providers/${account.id}/notifications`));
  if (!endpoint) return "";
  const { api_version, enabled_events } = endpoint;
  const missing = enabled_events.includes("*")
    ? []
    : STRIPE_EVENT_TYPES.filter((type) => !enabled_events.includes(type));
  return [
    api_version === STRIPE_VERSION
      ? ""
      : `. Its webhook endpoint has version ${api_version ?? "of the account"}: create it with ` +
        `version ${STRIPE_VERSION}`,
    missing.length === 0 ? "" : `. Its webhook endpoint lacks events: add ${missing.join(", ")}`,
  ].join("");
}
