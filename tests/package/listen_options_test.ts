/** The options of `listen`, its JSON, and the arguments that it refuses. */

import assert from "node:assert/strict";
import { verifyWebhook } from "../../packages/client/mod.ts";
import { until } from "../support/common/until.ts";
import { call } from "../support/package/command_line.ts";
import { onlyEndpoint, pay, withListenCase } from "../support/package/listen_case.ts";
import type { Arrival } from "../support/webhook/recording_receiver.ts";

Deno.test("listen --events changes which events its endpoint gets", () =>
  withListenCase(async ({ client, listen, receiver }) => {
    const first = await listen("--events", "payment.completed, refund.*");
    assert.deepEqual((await onlyEndpoint(client)).events, ["payment.completed", "refund.*"]);
    const [id] = await pay(client, 1);
    await client.payments.refund(id!, { amount: 1 });
    await until("three have arrived", () => receiver.arrivals.length === 3);
    const types = receiver.arrivals.map(({ event }) => event.type);
    assert.deepEqual(types, ["payment.completed", "refund.created", "refund.completed"]);
    await first.end();
    const second = await listen();
    const { id: endpoint_id, events } = await onlyEndpoint(client);
    assert.deepEqual(events, ["*"]);
    await second.end();
    await client.webhookEndpoints.update(endpoint_id, { status: "disabled" });
    await listen();
    assert.equal((await onlyEndpoint(client)).status, "enabled");
  }));

Deno.test("listen --json prints the endpoint, and a line for each delivery", () =>
  withListenCase(async ({ client, listen, receiver, forward_to }) => {
    receiver.judge = () => new Response("stored", { status: 200 });
    const command = await listen("--json");
    const [id] = await pay(client, 1);
    await command.printed(/payment\.completed/);
    const [listener, created] = command.stdout().split("\n").map((line) => JSON.parse(line || "0"));
    const endpoint = await onlyEndpoint(client);
    assert.deepEqual({ ...listener, secret: typeof listener.secret }, {
      object: "listener",
      endpoint_id: endpoint.id,
      secret: "string",
      forward_to,
    });
    const { duration_ms, ...others } = created;
    assert.ok(Number.isInteger(duration_ms));
    const [delivery] = (await client.webhookDeliveries.list({ payment_id: id, limit: 2 })).data
      .filter(({ event_type }) => event_type === "payment.created");
    assert.deepEqual(others, {
      object: "forwarded_delivery",
      id: delivery!.id,
      event_id: delivery!.event_id,
      event_type: "payment.created",
      resource_id: id,
      response_status: 200,
      error: null,
      response_body: "stored",
    });
    assert.equal(command.stderr(), "");
    // The sandbox has ended, or the key was revoked.
    await client.webhookEndpoints.delete(endpoint.id);
    assert.equal(await command.ended(), 1);
    const last = command.stdout().trim().split("\n").at(-1)!;
    assert.equal(JSON.parse(last).error.code, "not_found");
  }));

Deno.test("listen shows neither the password nor the query of its receiver", () =>
  withListenCase(async ({ client, listen, receiver, forward_to }) => {
    const secret = new URL(`${forward_to}?token=hush-query`);
    Object.assign(secret, { username: "hush-user", password: "hush-password" });
    const command = await listen("--forward-to", secret.href);
    assert.ok(command.stderr().includes(`to ${forward_to} (`), command.stderr());
    await pay(client, 1);
    await until("it has arrived", () => receiver.arrivals.length >= 1);
    const endpoint = await onlyEndpoint(client);
    assert.ok(endpoint.description!.endsWith(`listen: ${forward_to}`));
    assert.doesNotMatch(command.stdout() + command.stderr(), /hush/);
    assert.match(receiver.arrivals[0]!.headers.get("Authorization") ?? "", /^Basic /);
  }));

Deno.test("listen --print-secret prints the secret that the deliveries are signed with", () =>
  withListenCase(async ({ client, env, folder, forward_to, listen, receiver }) => {
    const args = ["listen", "--forward-to", forward_to, "--print-secret"];
    const { code, stdout, stderr } = await call(args, env, folder);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^whsec_\S+\n$/);
    assert.equal((await call(args, env, folder)).stdout, stdout);
    const json = await call([...args, "--json"], env, folder);
    assert.equal(`${JSON.parse(json.stdout).secret}\n`, stdout);
    await listen();
    await pay(client, 1);
    await until("one has arrived", () => receiver.arrivals.length >= 1);
    const [{ bytes, headers }] = receiver.arrivals as [Arrival];
    await verifyWebhook(bytes, headers.get("Payment-Signature"), stdout.trim());
  }));

Deno.test("listen --endpoint reads an inbox that somebody has made", () =>
  withListenCase(async ({ client, listen, receiver }) => {
    const { id, secret } = await client.webhookEndpoints.create({
      delivery: "inbox",
      events: ["payment.completed"],
    });
    // It stores nothing, so it needs no data folder. Nobody can make one there.
    const command = await listen("--endpoint", id, "--data-dir", "/proc/none");
    assert.doesNotMatch(command.stderr(), /whsec_/);
    await pay(client, 1);
    await until("it has arrived", () => receiver.arrivals.length === 1);
    const [{ bytes, headers }] = receiver.arrivals as [Arrival];
    await verifyWebhook(bytes, headers.get("Payment-Signature"), secret);
    assert.equal((await client.webhookEndpoints.retrieve(id)).events.length, 1);
  }));

for (
  const [args, code, message] of [
    [[], 2, /^--forward-to is missing/],
    [["--forward-to", "localhost:3000"], 2, /^--forward-to must be a URL such as/],
    [["--forward-to", "http://127.0.0.1:1", "--events", "payment.paid"], 2, /events/],
    [["--forward-to", "http://127.0.0.1:1", "--endpoint", "whe_x", "--events", "*"], 2, /--events/],
    [["--forward-to", "http://127.0.0.1:1", "--key", "sk_test_x"], 2, /--base-url and --key/],
    [["--forward-to", "http://127.0.0.1:1", "--endpoint", "URL"], 1, /\(invalid_state\)/],
  ] as const
) {
  Deno.test(`listen ${args.join(" ")} exits with ${code} and makes no endpoint`, () =>
    withListenCase(async ({ client, env, folder, receiver }) => {
      const url = receiver.url("/");
      const { id } = await client.webhookEndpoints.create({ url, events: ["ping"] });
      const given = args.map((arg) => arg === "URL" ? id : arg);
      const ended = await call(["listen", ...given], env, folder);
      assert.equal(ended.code, code, ended.stdout + ended.stderr);
      assert.match(ended.stderr, message);
      assert.equal((await onlyEndpoint(client)).url, url);
    }));
}
