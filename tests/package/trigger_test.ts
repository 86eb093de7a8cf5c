/** `trigger`: which endpoint it chooses, and which answer it shows. */

import assert from "node:assert/strict";
import type { PaymentsClient } from "../../client/mod.ts";
import { freePort } from "../support/common/free_port.ts";
import { call } from "../support/package/command_line.ts";
import { onlyEndpoint, withListenCase } from "../support/package/listen_case.ts";

const EVENT = "payment.completed";

async function paymentOf(client: PaymentsClient): Promise<string> {
  return (await client.payments.create({ amount: 1, currency: "EUR", outcome: "success" })).id;
}

Deno.test("trigger sends the event to the only endpoint and shows its answer", () =>
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

Deno.test("trigger finds the endpoint of listen among others, and shows what its receiver answered", () =>
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
    assert.match(good.stdout, /^whd_\w+ {2}payment\.completed {2}\w+ {2}200\n {2}stored\n$/);
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
    assert.match(
      alone.stdout,
      / {2}available {2}in the inbox, and no listen runs in this folder\n$/,
    );
    assert.equal(alone.code, 0);
    // A killed one leaves its file.
    await (await listen("--events", "transfer.created")).end("SIGKILL");
    assert.equal((await trigger()).code, 0);
  }));
