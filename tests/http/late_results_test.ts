/**
 * Results that come later in a sandbox (contract §2): the worker settles a payment with a late
 * response, and ends every authorization after 7 days, however the payment was authorized.
 */

import assert from "node:assert/strict";
import { recordOf } from "../support/database/payment_records.ts";
import { callAsPayer, challengePath, CONSOLE_URL } from "../support/service/payer_page.ts";
import type { TestService } from "../support/service/service.ts";
import { advance, card, PAYMENTS, serviceCase } from "../support/service/service_case.ts";

const AT = Date.parse("2026-06-07T08:09:10.111Z");
const LATE_MS = 2_000;
const WINDOW_MS = 7 * 24 * 3_600_000;

/** Sets the time, and lets the worker do the work that is due then. */
async function at(service: TestService, at_ms: number): Promise<void> {
  await service.setClock(at_ms);
  await service.deps.provider_worker.notify();
}

/** Authorizes a payment in one way. Returns its id. */
type Authorize = (service: TestService) => Promise<string>;

/** The ways to an authorization, each with its time. */
const WAYS: [name: string, at_ms: number, authorize: Authorize][] = [
  ["a create", AT, async (service) => {
    return (await service.pay({ ...card("4242 4242 4242 4242"), capture: "manual" })).body.id;
  }],
  ["a late response", AT + LATE_MS, async (service) => {
    const { body } = await service.pay({ ...card("4000 0000 0000 0119"), capture: "manual" });
    assert.equal(body.status, "processing");
    await at(service, AT + LATE_MS);
    return body.id;
  }],
  ["the payer's page", AT, async (service) => {
    const { body } = await service.pay({ ...card("4000 0025 0000 3155"), capture: "manual" });
    await callAsPayer(service, challengePath(body), "success");
    return body.id;
  }],
  ["an advance", AT, async (service) => {
    const { body } = await service.pay({ ...card("4000 0025 0000 3155"), capture: "manual" });
    await advance(service, body.id, "authorized");
    return body.id;
  }],
];

serviceCase("an authorization ends after 7 days by itself", async (t, service) => {
  for (const [name, authorized_ms, authorize] of WAYS) {
    await t.step(`after ${name}`, async () => {
      await service.setClock(AT);
      const id = await authorize(service);
      const read = async () => (await service.call("GET", `${PAYMENTS}/${id}`)).body;
      const { status, capture_before } = await read();
      const ends_ms = authorized_ms + WINDOW_MS;
      assert.deepEqual([status, Date.parse(capture_before)], ["authorized", ends_ms]);
      await at(service, ends_ms - 1);
      assert.equal((await read()).status, "authorized");
      await at(service, ends_ms);
      const ended = await read();
      assert.deepEqual([ended.status, ended.capture_before], ["cancelled", null]);
      const { events, ledger } = await recordOf(service, id);
      assert.equal(events.at(-1)!.type, "payment.cancelled");
      assert.equal(ledger.size, 0);
      // The call belongs to the request that has made the payment.
      const calls = await service.sql`
        select op, state, api_key_id, request_id from pay.provider_operations
        where subject_id = ${id} order by op`;
      assert.deepEqual([calls.at(-1)!.op, calls.at(-1)!.state], ["expire", "settled"]);
      for (const { api_key_id } of calls) assert.equal(api_key_id, service.key.id);
      const requests = new Set(calls.map(({ request_id }) => request_id));
      assert.equal(requests.size, name === "an advance" ? 2 : 1);
    });
  }
}, { console_url: CONSOLE_URL });
