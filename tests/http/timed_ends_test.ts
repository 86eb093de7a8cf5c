/**
 * Moves that a sandbox makes by itself (contract §2): a late response, the end of a payment whose
 * payer does not authenticate within 24 hours, and the end of an authorization after 7 days,
 * however the payment was authorized. Each comes at the time that the payment shows.
 */

import assert from "node:assert/strict";
import type { Payment } from "../../shared/schema/payment.ts";
import { recordOf } from "../support/database/payment_records.ts";
import { callAsPayer, challengePath, CHECKOUT_URL } from "../support/service/payer_page.ts";
import type { TestService } from "../support/service/service.ts";
import {
  advance,
  APPROVED,
  card,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

const MADE_AT = Date.parse("2026-06-07T08:09:10.111Z");
const LATE_MS = 2_000;
const DAY_MS = 24 * 3_600_000;
const WEEK_MS = 7 * DAY_MS;
const THREE_D_SECURE = { card: { token: "pm_card_authenticationRequired" } };
const SECURE_LATER = { ...THREE_D_SECURE, capture: "manual" };

/** Sets the time, and lets the worker do the work that is due then. */
async function at(service: TestService, at_ms: number): Promise<void> {
  await service.setClock(at_ms);
  await service.deps.provider_worker.notify();
}

const read = async (service: TestService, id: string) =>
  (await service.call("GET", `${PAYMENTS}/${id}`)).body;
/** A move of a new payment. */
type Move = (
  service: TestService,
  payment: { id: string; next_action: unknown },
) => Promise<unknown>;
const nothing = () => Promise.resolve();

/** The ways to an authorization, each with its time. */
const WAYS: [name: string, body: Record<string, unknown>, authorize: Move, late_ms?: number][] = [
  ["a create", { ...card({}), capture: "manual" }, nothing],
  [
    "a late response",
    { ...card("4000 0000 0000 0119"), capture: "manual" },
    async (service, { id }) => {
      assert.equal((await read(service, id)).status, "processing");
      await at(service, MADE_AT + LATE_MS);
    },
    LATE_MS,
  ],
  ["the payer's page", SECURE_LATER, (service, payment) => {
    return callAsPayer(service, challengePath(payment), "success");
  }],
  ["an advance", SECURE_LATER, (service, { id }) => advance(service, id, "authorized")],
];

serviceCase("an authorization ends after 7 days by itself", async (t, service) => {
  for (const [name, body, authorize, late_ms = 0] of WAYS) {
    await t.step(`after ${name}`, async () => {
      await service.setClock(MADE_AT);
      const { body: payment } = await service.pay(body);
      await authorize(service, payment);
      const { status, capture_before } = await read(service, payment.id);
      const ends_ms = MADE_AT + late_ms + WEEK_MS;
      assert.deepEqual([status, Date.parse(capture_before)], ["authorized", ends_ms]);
      await at(service, ends_ms - 1);
      assert.equal((await read(service, payment.id)).status, "authorized");
      await at(service, ends_ms);
      const ended = await read(service, payment.id);
      assert.deepEqual([ended.status, ended.capture_before], ["cancelled", null]);
      const { events, ledger } = await recordOf(service, payment.id);
      assert.deepEqual([events.at(-1)!.type, ledger.size], ["payment.cancelled", 0]);
      // The call belongs to the request that has made the payment.
      const calls = await service.sql`
        select op, state, api_key_id, request_id from pay.provider_operations
        where subject_id = ${payment.id} order by op`;
      assert.deepEqual([calls.at(-1)!.op, calls.at(-1)!.state], ["expire", "settled"]);
      for (const { api_key_id } of calls) assert.equal(api_key_id, service.key.id);
      const requests = new Set(calls.map(({ request_id }) => request_id));
      assert.equal(requests.size, name === "an advance" ? 2 : 1);
    });
  }
}, { checkout_url: CHECKOUT_URL });

const MANDATE = { id: "M-1", signed_at: new Date().toISOString(), sequence: "recurring" };
/** Times that a payment shows: [name; body; where it is; the status then] */
const SHOWN: [string, Record<string, unknown>, (payment: Payment) => string, string][] = [
  ["authorization", WAYS[0]![1], ({ capture_before }) => capture_before!, "cancelled"],
  ["advance", SECURE_LATER, ({ capture_before }) => capture_before!, "cancelled"],
  [
    "bank transfer",
    { method_kind: "sepa" },
    ({ next_action }) => (next_action as { expires_at: string }).expires_at,
    "failed",
  ],
  [
    "collection",
    { ...APPROVED.sepa, mandate: MANDATE },
    ({ method }) => `${(method as { due_on: string }).due_on}T00:00:00.000Z`,
    "completed",
  ],
];

serviceCase("a clock that runs and is set to the time that a payment shows", async (t, service) => {
  for (const [name, body, timeOf, status] of SHOWN) {
    await t.step(`${name}: ${status}`, async () => {
      const { body: { id } } = await service.pay(body);
      if (name === "advance") await advance(service, id, "authorized");
      const to = timeOf(await read(service, id));
      await service.call("POST", `${SANDBOX}/clock`, { body: { to } });
      const ended = await read(service, id);
      assert.deepEqual([ended.status, ended.updated_at], [status, to]);
      await service.call("POST", `${SANDBOX}/reset`);
    });
  }
});
