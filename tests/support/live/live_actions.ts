/** Actions of live tests: notifications, payers, and people with the dashboard of Stripe. */

import assert from "node:assert/strict";
import { until } from "../common/until.ts";
import { startSecondService } from "../service/second_service.ts";
import type { TestResponse } from "../service/service.ts";
import type { StripeObject } from "../stripe/journal.ts";
import { signatureHeader } from "../stripe/notifications.ts";
import { type LiveCase, NOTIFICATION_SECRET, settle } from "./live_case.ts";

/** The parts of a notification that a test can change. */
export interface Sent {
  account_id?: string;
  /** One signature for each. */
  secrets?: readonly string[];
  headers?: Record<string, string>;
}

/** Sends a body to the route of notifications, signed unless `secrets` is empty. */
export function notify(
  given: LiveCase,
  body: string,
  { account_id = given.account_id, secrets = [NOTIFICATION_SECRET], headers = {} }: Sent = {},
): Promise<TestResponse> {
  const at_ms = given.service.deps.clock();
  return given.service.call("POST", `/api-v1-payments/providers/${account_id}/notifications`, {
    key: null,
    body,
    headers: {
      ...(secrets.length > 0 && { "Stripe-Signature": signatureHeader(body, secrets, at_ms) }),
      ...headers,
    },
    unchecked: true,
  });
}

/**
 * Sends events of the double as notifications, and applies their provider events. Returns the
 * statuses.
 */
export async function deliver(given: LiveCase, events: readonly StripeObject[]): Promise<number[]> {
  const statuses: number[] = [];
  for (const event of events) statuses.push((await notify(given, JSON.stringify(event))).status);
  await settle(given);
  return statuses;
}

/** Returns the events of one object of the double, the oldest first. */
export async function eventsOf(given: LiveCase, ...types: string[]): Promise<StripeObject[]> {
  const { event } = await given.books();
  return event.filter(({ type }) => types.length === 0 || types.includes(type));
}

/** Returns the payment as the API shows it. */
export async function shown(given: LiveCase, id: string) {
  return (await given.call("GET", `/payments/${id}`)).body;
}

/** Returns the types of a payment's events in their order. The API must list the same ones. */
export async function eventTypes(given: LiveCase, id: string): Promise<string[]> {
  const rows = await given.service.sql<{ type: string }[]>`
    select type from pay.events where subject_id = ${id} order by sequence`;
  const types = rows.map(({ type }) => type);
  const { data } = (await given.call("GET", `/events?payment_id=${id}&limit=100`)).body;
  const listed: string[] = data.map(({ type }: { type: string }) => type);
  assert.deepEqual(listed.sort(), types.toSorted());
  return types;
}

/** Returns the stored provider events of a subject: state, outcome and exception. */
export async function providerEventsOf({ service }: LiveCase, subject_id: string | null) {
  const rows = await service.sql`
    select op || ' ' || state as event, outcome, exception from pay.provider_events
    where subject_id is not distinct from ${subject_id} order by received_at, reference`;
  return rows.map(({ event, outcome, exception }) => [event, outcome, exception]);
}

const RETURN_URL = "https://shop.example/back";
/** The members of a payment whose payer has to authenticate. */
export const CHALLENGED = {
  card: { token: "pm_card_authenticationRequired" },
  return_url: RETURN_URL,
};

/** Creates a payment that waits for its payer. Returns its id and the page of the payer's bank. */
export async function challenged(
  given: LiveCase,
  body: object = {},
): Promise<{ id: string; url: string }> {
  const created = await given.pay({ ...CHALLENGED, ...body });
  assert.equal(created.status, 201, created.text);
  assert.equal(created.body.status, "requires_action");
  return { id: created.body.id, url: created.body.next_action.url };
}

/** Authenticates as the payer does, and goes back to the shop. */
export async function visit(url: string, result = "success"): Promise<void> {
  const page = await fetch(`${url}?result=${result}`, { redirect: "manual" });
  await page.body?.cancel();
  assert.ok(page.headers.get("location")?.startsWith(RETURN_URL), `${page.status}`);
}

/** Returns the id of a payment at the double. */
export async function referenceOf({ books }: LiveCase, id: string): Promise<string> {
  const { payment_intent } = await books();
  return payment_intent.find(({ metadata }) => metadata.payment === id)!.id;
}

/** Pays, and returns the id. */
export async function paid(given: LiveCase): Promise<string> {
  const { status, body } = await given.pay();
  assert.equal(status, 201);
  await given.work();
  return body.id;
}

/** Makes a product in which a payment's request dies between its reservation and its record. */
export async function dieDuringOperation(
  given: LiveCase,
  idempotency_key: string,
  more: object = {},
): Promise<void> {
  const { double, service, variables, books } = given;
  const second = startSecondService(service, { provider_secret: (name) => variables[name] });
  const { length } = (await books()).payment_intent;
  // The provider does its work, but its response comes after the death.
  await double.plant({ method: "POST", at: "after", act: "delay", delay_ms: 200 });
  const body = { amount: 1000, currency: "EUR", card: { token: "pm_card_visa" }, ...more };
  const options = { key: service.live.text, idempotency_key, body };
  const dying = second.call("POST", "/api-v1-payments/v1/payments", options);
  await until(
    "the provider has worked",
    async () => (await books()).payment_intent.length > length,
  );
  await second.close();
  assert.equal((await dying).status, 503);
}

/** Calls the double as somebody with the dashboard does. */
export async function atStripe(given: LiveCase, path: string, form: Record<string, string>) {
  const response = await fetch(given.double.base_url + path, {
    method: "POST",
    headers: { Authorization: `Bearer ${given.secret}` },
    body: new URLSearchParams(form),
  });
  assert.equal(response.status, 200, await response.text());
}

/** A payment, and what happens to its money here and at the provider. */
export class Money {
  constructor(readonly given: LiveCase, readonly id: string) {}

  /** Refunds it by the API. Returns the response. */
  async refund(amount?: number) {
    return (await this.given.call("POST", `/payments/${this.id}/refund`, { body: { amount } }))
      .body;
  }

  /** Refunds it in the provider's dashboard. */
  async refundByHand(amount: number): Promise<void> {
    const payment_intent = await referenceOf(this.given, this.id);
    await atStripe(this.given, "/v1/refunds", { payment_intent, amount: `${amount}` });
  }

  /** Settles a refund at the provider, by default the newest one. */
  async settle(status: "succeeded" | "failed", at = -1): Promise<void> {
    const { id } = (await this.given.books()).refund.at(at)!;
    await this.given.double.act("settle_refund", { refund: id, status });
  }

  /** The payer's bank takes the money back. */
  async dispute(more: { amount?: number; reason?: string } = {}): Promise<void> {
    const payment_intent = await referenceOf(this.given, this.id);
    await this.given.double.act("disputes", { payment_intent, ...more });
    await this.learn();
  }

  /** Closes a dispute at the provider, by default the newest one. */
  async close(status: "won" | "lost" | "prevented", at = -1): Promise<void> {
    const { id } = (await this.given.books()).dispute.at(at)!;
    await this.given.double.act("close_dispute", { dispute: id, status });
    await this.learn();
  }

  /** Delivers all notifications of the provider. */
  async learn(): Promise<void> {
    await deliver(this.given, await eventsOf(this.given));
  }
}
