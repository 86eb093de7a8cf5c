/** Polls as the dispatcher does, from a test without a running one, and inserts rows for it. */

import type { Settings } from "../../../shared/functions/settings.ts";
import type {
  AttemptResult,
  DeliveryPoll,
  LeasedDelivery,
} from "../../../shared/store/webhook_store.ts";
import type { TestService } from "../service/service.ts";
import { webhookCase } from "./webhook_case.ts";

export const AT = Date.parse("2026-08-09T10:11:12.013Z");
export const LEASE_MS = 25_000;

/** Sets all clocks to a time and polls once, as a running dispatcher would. */
export async function poll(
  { deps, setClock }: TestService,
  at_ms: number,
  requested: Partial<DeliveryPoll> = {},
): Promise<LeasedDelivery[]> {
  await setClock(at_ms);
  return await deps.webhook_store.pollDeliveries({
    results: [],
    capacity: { endpoints: {}, environments: {}, accounts: {} },
    limit: 64,
    per_endpoint: 16,
    per_environment: 64,
    per_account: 64,
    poison_ahead: {},
    at_ms,
    leased_until_ms: at_ms + LEASE_MS,
    excluded: [],
    ...requested,
  });
}

/** The result of an attempt. */
export function resultOf(leased: LeasedDelivery, delivered: boolean, at_ms: number): AttemptResult {
  const { environment_id, id, attempt, leased_until } = leased;
  const at = new Date(at_ms).toISOString();
  const record = {
    number: attempt,
    at,
    response_status: delivered ? 200 : 500,
    duration_ms: 100,
    error: null,
  };
  const next_attempt_at = delivered ? null : new Date(at_ms + 60_000).toISOString();
  return {
    environment_id,
    id,
    attempt,
    leased_until,
    outcome: delivered ? "delivered" : "failed",
    next_attempt_at,
    record: JSON.stringify(record),
  };
}

/** Enables all endpoints and makes payments with one event each, whose deliveries wait. */
export async function makeWaiting(service: TestService, count: number): Promise<void> {
  await service.sql`update pay.webhook_endpoints set status = 'enabled'`;
  for (let i = 0; i < count; i++) await service.make({ outcome: "pending" });
}

/** Options of a service without a dispatcher of its own. */
export const NO_DISPATCHER = { webhook_master_secret: undefined } as unknown as Partial<Settings>;

/**
 * Inserts an endpoint as a service with a master secret stores it, or without a URL an inbox. Its
 * id begins with its slot.
 */
export async function insertEndpoint(
  { sql, key }: TestService,
  slot = 0,
  { environment_id = key.environment_id, url = "http://127.0.0.1:1/" }: {
    environment_id?: string;
    url?: string | null;
  } = {},
): Promise<void> {
  await sql`insert into pay.webhook_endpoints
    (environment_id, id, slot, url, delivery, events, status, secrets, revision, created_at, body)
    values (${environment_id}, ${`whe_${slot}${"0".repeat(25)}`}, ${slot}, ${url},
      ${
    url === null ? "inbox" : "url"
  }, '{*}', 'enabled', '[{"version":1,"salt":"00","expires_at":null}]', 1, now(), '{}')`;
}

/** Registers a test of polls at `AT` with a number of endpoints, without a dispatcher. */
export function pollCase(
  name: string,
  run: (t: Deno.TestContext, service: TestService) => Promise<void>,
  endpoints = 1,
): void {
  webhookCase(`poll_deliveries() ${name}`, async (t, service) => {
    await service.setClock(AT);
    for (let slot = 0; slot < endpoints; slot++) await insertEndpoint(service, slot);
    await run(t, service);
  }, NO_DISPATCHER);
}
