/** Transfers and balances over HTTP. */

import assert from "node:assert/strict";
import { startService } from "../support/service/service.ts";

const TRANSFERS = "/api-v1-payments/v1/transfers";
const IBAN = "DE89 3704 0044 0532 0130 00";

Deno.test("transfers and balances", async (t) => {
  const service = await startService();
  const send = (body: Record<string, unknown> = {}, options = {}) =>
    service.call("POST", TRANSFERS, {
      body: { amount: 100, currency: "EUR", destination: { iban: IBAN }, ...body },
      ...options,
    });
  const balance = async () => {
    const { body } = await service.call("GET", "/api-v1-payments/v1/balance");
    return Object.fromEntries(
      // deno-lint-ignore no-explicit-any
      body.balances.map((b: any) => [`${b.currency} ${b.account}`, b.amount_minor]),
    );
  };
  try {
    await t.step("POST /v1/transfers without money is 402 balance_insufficient", async () => {
      const refused = await send({}, { idempotency_key: "poor" });
      assert.equal(refused.status, 402, refused.text);
      assert.equal(refused.body.error.code, "balance_insufficient");
      const again = await send({}, { idempotency_key: "poor" });
      assert.equal(again.text, refused.text);
      assert.equal(again.headers.get("Idempotent-Replayed"), "true");
    });
    await service.make({ amount_minor: 1000, outcome: "success" });
    await t.step("POST /v1/transfers moves money out", async () => {
      const sent = await send({}, { idempotency_key: "rich" });
      assert.equal(sent.status, 201, sent.text);
      assert.equal(sent.body.status, "completed");
      assert.deepEqual(sent.body.destination, {
        type: "iban",
        iban: { country: "DE", last4: "3000" },
      });
      assert.equal((await send({}, { idempotency_key: "rich" })).text, sent.text);
      assert.deepEqual(await balance(), {
        "EUR available": 900,
        "EUR external": 100,
        "EUR in_transit": 0,
        "EUR processor": -1000,
      });
    });
    await t.step("a manual transfer stays pending until it is cancelled or advanced", async () => {
      const waiting = await send({ settlement: "manual", amount: 900 });
      assert.equal(waiting.body.status, "pending");
      assert.equal((await balance())["EUR available"], 0);
      assert.equal((await send({ amount: 1 })).status, 402);
      const cancelled = await service.call("POST", `${TRANSFERS}/${waiting.body.id}/cancel`);
      assert.equal(cancelled.body.status, "cancelled", cancelled.text);
      const refused = await service.call("POST", `${TRANSFERS}/${waiting.body.id}/cancel`);
      assert.equal(refused.status, 409);
      const second = await send({ settlement: "manual" });
      const path = `/api-v1-sandbox/transfers/${second.body.id}/advance`;
      const done = await service.call("POST", path, { body: { to: "completed" } });
      assert.equal(done.body.status, "completed", done.text);
      assert.equal((await balance())["EUR available"], 800);
    });
    await t.step("?transfer_id= lists the events and deliveries of one transfer", async () => {
      const endpoint = await service.call("POST", "/api-v1-payments/v1/webhook_endpoints", {
        body: { delivery: "inbox" },
      });
      assert.equal(endpoint.status, 201, endpoint.text);
      const waiting = await send({ settlement: "manual" });
      await send();
      await service.make({ amount_minor: 1000, outcome: "success" });
      const { id } = waiting.body;
      await service.call("POST", `${TRANSFERS}/${id}/cancel`);
      const list = async (name: string) => {
        const { body } = await service.call(
          "GET",
          `/api-v1-payments/v1/${name}?transfer_id=${id}&limit=100`,
        );
        return body.data;
      };
      const events = await list("events");
      assert.deepEqual(
        // deno-lint-ignore no-explicit-any
        events.map(({ type, data }: any) => [type, data.object.id]),
        [["transfer.cancelled", id], ["transfer.created", id]],
      );
      const deliveries = await list("webhook_deliveries");
      assert.deepEqual(
        // deno-lint-ignore no-explicit-any
        deliveries.map(({ event_id }: any) => event_id).sort(),
        // deno-lint-ignore no-explicit-any
        events.map(({ id }: any) => id).sort(),
      );
    });
    await t.step("POST /reset deletes all transfers", async () => {
      const { body } = await service.call("POST", "/api-v1-sandbox/reset");
      assert.ok(body.deleted.transfers > 0);
      assert.deepEqual(await balance(), {});
    });
  } finally {
    await service.close();
  }
});
