/** `trigger`: which endpoint it chooses, which objects it makes, and which response it shows. */

import assert from "node:assert/strict";
import type { PaymentsClient } from "../../packages/client/mod.ts";
import { freePort } from "../support/common/free_port.ts";
import { call } from "../support/package/command_line.ts";
import { TRIGGER_TYPES } from "../../packages/sandbox/trigger_objects.ts";
import { EVENT_TYPES } from "../../shared/core/vocabulary.ts";
import { withServedService } from "../support/service/served_service.ts";
import { onlyEndpoint, withListenCase } from "../support/package/listen_case.ts";

const EVENT = "payment.completed";

async function paymentOf(client: PaymentsClient): Promise<string> {
  return (await client.payments.create({ amount: 1, currency: "EUR", outcome: "success" })).id;
}

Deno.test("trigger sends the event to the only endpoint and shows its response", () =>
  withListenCase(async ({ client, env, folder, receiver }) => {
    const payment = await paymentOf(client);
    const trigger = (...args: string[]) =>
      call(["trigger", EVENT, "--payment", payment, ...args], env, folder);
    const nothing = await trigger();
    assert.equal(nothing.stderr, "There is no webhook endpoint: run listen, or register one\n");
    assert.equal(nothing.code, 1);

    const url = receiver.url("/hooks");
    const { id } = await client.webhookEndpoints.create({ url, events: ["transfer.created"] });
    const good = await trigger();
    assert.match(good.stdout, /^whd_\w+ {2}payment\.completed {2}delivered {2}200\n$/, good.stderr);
    assert.equal(good.code, 0);
    receiver.judge = () => new Response("unknown\norder", { status: 422 });
    const bad = await trigger();
    assert.match(bad.stdout, / {2}422\n {2}unknown order\n$/);
    assert.equal(bad.code, 1);
    const json = await trigger("--json");
    const { endpoint_id, answer: response } = JSON.parse(json.stdout);
    assert.deepEqual([json.code, endpoint_id, response], [1, id, {
      response_status: 422,
      error: null,
      response_body: "unknown\norder",
    }]);
    assert.equal(receiver.arrivals.length, 3);

    const other = await client.webhookEndpoints.create({ url, events: ["transfer.created"] });
    const several = await trigger();
    assert.match(
      several.stderr,
      /^There are several webhook endpoints: name one with --endpoint\n/,
    );
    for (const one of [id, other.id]) assert.ok(several.stderr.includes(`  ${one}  ${url}\n`));
    const wrong = await call(
      ["trigger", "payment.compelted", "--payment", payment, "--endpoint", id],
      env,
      folder,
    );
    assert.equal(wrong.code, 2, wrong.stderr);
    const unknown = await trigger("--endpoint", "whe_unknown");
    assert.match(unknown.stderr, /\(not_found\)\n$/);
  }));

Deno.test("trigger finds the endpoint of listen among others, and shows the response", () =>
  withListenCase(async ({ client, env, folder, listen, receiver }) => {
    const payment = await paymentOf(client);
    const trigger = (...args: string[]) =>
      call(["trigger", EVENT, "--payment", payment, ...args], env, folder);
    const command = await listen("--events", "transfer.created");
    const { id } = await onlyEndpoint(client);
    // Nothing listens there.
    const url = `http://127.0.0.1:${freePort()}/`;
    await client.webhookEndpoints.create({ url, events: ["transfer.created"] });

    receiver.judge = () => new Response("stored", { status: 200 });
    const good = await trigger();
    assert.match(good.stdout, /^whd_\w+ {2}payment\.completed {2}forwarded {2}200\n {2}stored\n$/);
    assert.deepEqual([good.code, good.stderr], [0, ""]);
    receiver.judge = () => new Response("unknown order", { status: 422 });
    const bad = await trigger("--json");
    const { endpoint_id, answer: response } = JSON.parse(bad.stdout);
    assert.deepEqual([bad.code, endpoint_id], [1, id]);
    assert.deepEqual(response, {
      response_status: 422,
      error: null,
      response_body: "unknown order",
    });

    // Nobody forwards the deliveries any more, and the command does not wait.
    await command.end();
    const alone = await trigger();
    assert.ok(
      alone.stdout.endsWith(`  in the inbox of ${id}: no listen runs in this folder\n`),
      alone.stdout,
    );
    assert.equal(alone.code, 0);
    // A killed one leaves its file.
    await (await listen("--events", "transfer.created")).end("SIGKILL");
    assert.equal((await trigger()).code, 0);
  }));

/** Types that no payment by card of a sandbox has: the endpoint gets them by a trigger. */
const TRIGGERED: readonly string[] = ["payment.pending", "webhook_endpoint.disabled", "ping"];

Deno.test("trigger without a payment makes the objects of every event type", () =>
  withServedService(async ({ service, base_url, client }) => {
    assert.deepEqual([...TRIGGER_TYPES].sort(), [...EVENT_TYPES].sort());
    const env = { PAYMENTS_BASE_URL: base_url, PAYMENTS_API_KEY: service.key.text };
    for (const type of TRIGGER_TYPES) {
      const { code, stdout, stderr } = await call(["trigger", type], env, "/nowhere");
      const said = TRIGGERED.includes(type)
        ? `1 pay_\\w+ has no ${type}`
        : `0 evt_\\w+  ${type}  sent to nobody`;
      assert.match(
        `${code} ${stdout}${stderr}`,
        new RegExp(`^${said}\\. There is no webhook endpoint: run listen, or register one\n$`),
      );
    }
    const { id } = await client.webhookEndpoints.create({ delivery: "inbox" });
    for (const type of TRIGGER_TYPES) {
      const { code, stdout, stderr } = await call(["trigger", type, "--json"], env, "/nowhere");
      assert.equal(code, 0, `${type}: ${stdout}${stderr}`);
      const { id: delivery_id, event_type } = JSON.parse(stdout);
      assert.equal(event_type, type);
      const page = await client.webhookEndpoints.inbox(id, { limit: 100 });
      const found = page.data.find((one) => one.id === delivery_id)!;
      const { triggered = false, data: { object } } = JSON.parse(found.body);
      assert.equal(triggered, TRIGGERED.includes(type), type);
      const [kind, status] = type.split(".");
      if (kind === "payment" && status !== "created") assert.equal(object.status, status, type);
      await client.webhookEndpoints.inbox(id, { after: page.next_cursor, limit: 1 });
    }
  }));

Deno.test("trigger without a payment sends the events of the objects in their order", () =>
  withListenCase(async ({ client, env, folder, receiver }) => {
    const trigger = (type: string) => call(["trigger", type], env, folder);
    const url = receiver.url("/hooks");
    const { id } = await client.webhookEndpoints.create({ url });
    const good = await trigger("payment.refunded");
    assert.match(good.stdout, /^whd_\w+ {2}payment\.refunded {2}delivered {2}200\n$/, good.stderr);
    const types = receiver.arrivals.map(({ event }) => event.type);
    assert.deepEqual(types.slice(0, 3), ["payment.created", "payment.completed", "refund.created"]);
    assert.equal(receiver.arrivals.filter(({ event }) => event.type === types.at(-1)).length, 1);

    // The receiver does not take the event before, so it gets no other.
    receiver.judge = ({ event }) => event.type === "payment.created" ? 500 : 200;
    const blocked = await trigger("payment.completed");
    assert.deepEqual([blocked.code, blocked.stdout], [1, ""]);
    assert.match(
      blocked.stderr,
      /^whd_\w+ waits until the endpoint takes an earlier event:\nwhd_\w+ {2}payment\.created .* 500\n$/,
    );
    await client.webhookEndpoints.update(id, { events: ["refund.failed"] });
    assert.equal((await trigger("payment.declined")).code, 0);
    assert.equal(receiver.arrivals.at(-1)!.event.triggered, true);
    const transfer = await trigger("transfer.completed");
    assert.match(transfer.stderr, /^tr_\w+ has the event, but whe_\w+ is not subscribed to /);
    assert.equal(transfer.code, 1);
  }));
