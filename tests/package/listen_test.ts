/**
 * `listen`: forwards the deliveries of an inbox to a receiver on this machine, in their order and
 * without a loss, whatever ends or fails. Its options, its JSON, and the arguments that it refuses.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { verifyWebhook } from "../../packages/client/mod.ts";
import { freePort } from "../support/common/free_port.ts";
import { until } from "../support/common/until.ts";
import {
  arrived,
  expectedOf,
  onlyEndpoint,
  pay,
  withListenCase,
} from "../support/package/listen_case.ts";
import { call, launch } from "../support/package/command_line.ts";
import type { Arrival } from "../support/webhook/recording_receiver.ts";
import { openReceiver, say } from "../support/webhook/loopback_receiver.ts";

Deno.test("listen forwards the headers and bytes of the service, and shows the response", () =>
  withListenCase(async ({ client, listen }) => {
    const receiver = openReceiver(say("HTTP/1.1 204 No Content\r\n\r\n"));
    try {
      const url = `http://127.0.0.1:${receiver.port}/hooks?from=sandbox`;
      const command = await listen("--forward-to", url);
      const [, secret] = /Secret for the verification: (whsec_\S+)/.exec(command.stderr())!;
      const [id] = await pay(client, 1);
      await command.printed(/payment\.completed/);
      const created = new RegExp(`^\\d\\d:\\d\\d:\\d\\d  payment\\.created  ${id}  204  \\d+ ms$`);
      assert.match(command.stdout().split("\n")[0]!, created);

      const [text] = receiver.requests.map((bytes) => new TextDecoder().decode(bytes));
      const [head, body] = text!.split("\r\n\r\n") as [string, string];
      const [line, ...lines] = head.split("\r\n");
      assert.equal(line, "POST /hooks?from=sandbox HTTP/1.1");
      const headers = Object.fromEntries(lines.map((header) => header.split(": ")));
      const endpoint = await onlyEndpoint(client);
      const [original] = (await client.webhookEndpoints.inbox(endpoint.id, {
        after: `inb_${endpoint.id.slice(4)}_0`,
      })).data;
      assert.equal(body, original!.body);
      // HTTP itself needs three more headers.
      const added = ["Host", "Content-Length", "Connection"];
      assert.deepEqual(
        Object.keys(headers).filter((name) => !added.includes(name)).sort(),
        Object.keys(original!.headers).sort(),
      );
      for (const name of ["Content-Type", "User-Agent", "Webhook-Id", "Webhook-Attempt"]) {
        assert.equal(headers[name], original!.headers[name], name);
      }
      const event = await verifyWebhook(body, headers["Payment-Signature"]!, secret!);
      assert.equal(event.type, "payment.created");
    } finally {
      await receiver.close();
    }
  }));

Deno.test("listen goes on where it stopped, with the same endpoint and secret", () =>
  withListenCase(async ({ client, folder, listen, receiver }) => {
    const first = await listen();
    const ids = await pay(client, 3);
    await until("all have arrived", () => receiver.arrivals.length === 6);
    assert.equal((await first.end("SIGINT")).code, 0);
    // Nobody listens now.
    ids.push(...await pay(client, 3));
    const second = await listen();
    ids.push(...await pay(client, 1));
    await until("the others have arrived", () => receiver.arrivals.length >= 14);
    assert.equal((await second.end()).code, 0);
    assert.deepEqual(arrived(receiver), expectedOf(ids));
    const secrets = [first, second].map((command) => /whsec_\S+/.exec(command.stderr())![0]);
    assert.equal(secrets[0], secrets[1]);
    await onlyEndpoint(client);
    for await (const { status } of client.webhookDeliveries.list()) {
      assert.equal(status, "delivered");
    }
    // The file has a secret.
    const file = await Deno.stat(join(folder, ".local/listeners.json"));
    assert.equal(file.mode! & 0o777, 0o600);
    assert.equal(await Deno.readTextFile(join(folder, ".local/.gitignore")), "*\n");
  }));

Deno.test("listen finishes the delivery under way when it is stopped, and acknowledges it", () =>
  withListenCase(async ({ client, listen, receiver }) => {
    const first = await listen("--events", "payment.completed");
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    receiver.judge = async () => {
      await released;
      return 200;
    };
    await pay(client, 1);
    await until("it has arrived", () => receiver.arrivals.length === 1);
    const ended = first.end("SIGINT");
    await first.printed(/Ending after the response to this delivery/);
    release();
    assert.equal((await ended).code, 0);
    assert.match(first.stdout(), /payment\.completed {2}pay_\w+ {2}200/);
    const { data } = await client.webhookDeliveries.list();
    assert.deepEqual(data.map(({ status }) => status), ["delivered"]);
  }));

Deno.test("listen loses nothing by kill -9, and repeats at most one delivery", () =>
  withListenCase(async ({ client, listen, receiver }) => {
    const ids: string[] = [];
    const repeated: string[] = [];
    for (let kills = 0; kills < 3; kills++) {
      const command = await listen();
      const before = receiver.arrivals.length;
      ids.push(...await pay(client, 5));
      await until("some have arrived", () => receiver.arrivals.length >= before + 4);
      await command.end("SIGKILL");
    }
    await listen();
    const expected = expectedOf(ids);
    await until("all have arrived", () => new Set(arrived(receiver)).size >= expected.length);
    const seen = new Set<string>();
    for (const event of arrived(receiver)) {
      if (seen.has(event)) repeated.push(event);
      seen.add(event);
    }
    assert.ok(repeated.length <= 3, `${repeated.length} repetitions after 3 kills`);
    assert.deepEqual([...seen], expected);
  }));

Deno.test("listen shows a failure and goes on, and waits for a receiver that does not run", () =>
  withListenCase(async ({ client, listen }) => {
    const port = freePort();
    const command = await listen("--forward-to", `http://127.0.0.1:${port}/`);
    const [id] = await pay(client, 1);
    await command.printed(/waiting for the receiver/);
    const statuses = [500, 302];
    const seen: string[] = [];
    const receiver = Deno.serve({ port, hostname: "127.0.0.1", onListen() {} }, async (request) => {
      seen.push((await request.json()).type);
      return new Response("no such\u001b[2J order\nsecond line", {
        status: statuses[seen.length - 1]!,
        headers: { Location: "/elsewhere" },
      });
    });
    try {
      await command.printed(/302/);
      assert.deepEqual(seen, ["payment.created", "payment.completed"]);
      const [first, second] = command.stdout().split("\n");
      const response = String.raw`  \d+ ms  no such \[2J order second line$`;
      assert.match(first!, new RegExp(`payment\\.created  ${id}  500${response}`));
      assert.match(second!, new RegExp(`payment\\.completed  ${id}  302${response}`));
      // Every response acknowledges the delivery, at the latest when listen ends.
      assert.equal((await command.end()).code, 0);
      for await (const { status } of client.webhookDeliveries.list()) {
        assert.equal(status, "delivered");
      }
    } finally {
      await receiver.shutdown();
    }
  }));

Deno.test("listen outlasts failures of the service", () =>
  withListenCase(async ({ base_url, client, env, listen, receiver }) => {
    let failures = 0;
    // The reads of `listen` meet no declared faults, so a server in front of the service fails.
    const front = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
      const { pathname, search } = new URL(request.url);
      if (pathname.endsWith("/inbox") && failures-- > 0) return new Response(null, { status: 500 });
      return fetch(new URL(pathname + search, base_url), request);
    });
    try {
      const front_url = `http://127.0.0.1:${front.addr.port}${new URL(base_url).pathname}`;
      const command = await listen("--base-url", front_url, "--key", env["PAYMENTS_API_KEY"]!);
      // The client itself makes three attempts.
      failures = 4;
      const ids = await pay(client, 1);
      await command.printed(/Trying again until the service responds/);
      await command.printed(/The service responds again/);
      await until("both have arrived", () => receiver.arrivals.length === 2);
      assert.deepEqual(arrived(receiver), expectedOf(ids));
    } finally {
      await front.shutdown();
    }
  }));

Deno.test("listen and logs tail use up no declared faults", () =>
  withListenCase(async ({ client, env, folder, listen, receiver }) => {
    const fault = await client.sandbox.createFault({
      on: "request",
      fault: "rate_limited",
      where: { method: "GET" },
    });
    await listen();
    const tail = launch(["logs", "tail"], env, folder);
    try {
      const ids = await pay(client, 2);
      await until("all have arrived", () => receiver.arrivals.length === 4);
      assert.deepEqual(arrived(receiver), expectedOf(ids));
      await tail.printed(/(?:.*POST.*\/v1\/payments.*\n){2}/);
    } finally {
      await tail.end("SIGKILL");
    }
    assert.equal((await client.sandbox.retrieveFault(fault.id)).left, 1);
  }));

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
    assert.equal((await command.ended).code, 1);
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

/** Arguments, the exit code and the message. URL is an endpoint that is no inbox. */
const REFUSED: [args: string[], code: number, message: RegExp][] = [
  [[], 2, /^--forward-to is missing/],
  [["--forward-to", "localhost:3000"], 2, /^--forward-to must be a URL such as/],
  [["--forward-to", "http://127.0.0.1:1", "--events", "payment.paid"], 2, /events/],
  [["--forward-to", "http://127.0.0.1:1", "--endpoint", "whe_x", "--events", "*"], 2, /--events/],
  [["--forward-to", "http://127.0.0.1:1", "--key", "sk_test_x"], 2, /--base-url and --key/],
  [["--forward-to", "http://127.0.0.1:1", "--endpoint", "URL"], 1, /\(invalid_state\)/],
];

Deno.test("listen refuses wrong arguments, and then makes no endpoint", (t) =>
  withListenCase(async ({ client, env, folder, receiver }) => {
    const url = receiver.url("/");
    const { id } = await client.webhookEndpoints.create({ url, events: ["ping"] });
    for (const [args, code, message] of REFUSED) {
      await t.step(`listen ${args.join(" ")} exits with ${code}`, async () => {
        const given = args.map((arg) => arg === "URL" ? id : arg);
        const ended = await call(["listen", ...given], env, folder);
        assert.equal(ended.code, code, ended.stdout + ended.stderr);
        assert.match(ended.stderr, message);
        assert.equal((await onlyEndpoint(client)).url, url);
      });
    }
  }));
