/**
 * The log of attempts (contract §4, ADR 0018): a sandbox shows what the newest attempts
 * sent, and the beginning of each response. A live environment stores none.
 */

import assert from "node:assert/strict";
import { verifyWebhook } from "../../packages/client/webhook_signature.ts";
import { makeAttempt } from "../../shared/domain/webhooks/attempt.ts";
import { declare } from "../support/service/declared_faults.ts";
import { assertRefused } from "../support/service/service_case.ts";
import { RELAY_TOKEN, startService, type TestService } from "../support/service/service.ts";
import {
  addLiveDelivery,
  leadingTo,
  openPublicReceiver,
} from "../support/webhook/live_endpoint.ts";
import { openReceiver, say, writeAll } from "../support/webhook/loopback_receiver.ts";
import {
  addEndpoint,
  DELIVERIES,
  deliveriesOf,
  RETENTION,
  settle,
  TRIGGER,
} from "../support/webhook/recording_receiver.ts";
import {
  insertEndpoint,
  makeWaiting,
  NO_DISPATCHER,
  poll,
  resultOf,
} from "../support/webhook/dispatcher_polls.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";

const AT = Date.parse("2026-08-09T10:11:12.013Z");
const DAY = 86_400_000;
const ONE_EVENT = { events: ["payment.created"] };

/** The logged attempts of the only delivery to an endpoint. */
async function loggedAttempts(service: TestService, query = "") {
  const [{ id }] = await deliveriesOf(service, query);
  return (await service.call("GET", `${DELIVERIES}/${id}`)).body.exchanges;
}

async function countOf({ sql }: TestService): Promise<number> {
  return (await sql`select from pay.attempt_log`).length;
}

webhookCase("GET /webhook_deliveries/{id} shows what each attempt sent and got", async (
  t,
  service,
  hooks,
) => {
  await service.setClock(AT);
  const url = hooks.url("/hook?shop=1");
  const { secret } = await addEndpoint(service, url, ONE_EVENT);
  hooks.judge = () =>
    new Response("no ".repeat(400), { status: 503, headers: { "X-Why": "busy" } });
  await service.make({ outcome: "pending" });
  await settle(service);
  hooks.judge = () => new Response("thanks", { status: 200 });
  await service.setClock(AT + 5_000);
  await settle(service);
  const exchanges = await loggedAttempts(service);

  await t.step("one entry for each attempt, oldest first", () => {
    assert.deepEqual(exchanges.map(({ attempt }: { attempt: number }) => attempt), [1, 2]);
  });
  for (const [i, arrival] of hooks.arrivals.entries()) {
    await t.step(`the request of attempt ${i + 1} is the one that arrived`, async () => {
      const { request } = exchanges[i];
      assert.deepEqual([request.url, request.body], [url, arrival.text]);
      for (const [name, value] of Object.entries(request.headers)) {
        assert.equal(arrival.headers.get(name), value, name);
      }
      const signature = request.headers["Payment-Signature"];
      await verifyWebhook(request.body, signature, secret, { now_ms: AT + i * 5_000 });
    });
  }
  await t.step("the response begins with its status line and is cut after 1 024 bytes", () => {
    const { text, truncated } = exchanges[0].response;
    assert.match(text, /^HTTP\/1\.1 503 .*\r\n[^]*x-why: busy\r\n[^]*\r\n\r\nno no no /i);
    assert.deepEqual([text.length, truncated], [1024, true]);
  });
  await t.step("a short response is whole", () => {
    const { text, truncated } = exchanges[1].response;
    assert.deepEqual([text.endsWith("\r\n\r\nthanks"), truncated], [true, false]);
  });
  await t.step("the list shows no logged attempt", async () => {
    const [delivery] = await deliveriesOf(service);
    assert.equal(delivery.exchanges, undefined);
  });
  await t.step("another account sees nothing", async () => {
    const [{ id }] = await deliveriesOf(service);
    const response = await service.call("GET", `${DELIVERIES}/${id}`, { key: service.other.text });
    assertRefused(response, 404, "not_found");
  });
});

webhookCase("an attempt without a response has a null response", async (_, service) => {
  await addEndpoint(service, "http://127.0.0.1:2/", ONE_EVENT);
  await service.make({ outcome: "pending" });
  await settle(service);
  const [{ attempt, request, response }] = await loggedAttempts(service);
  assert.deepEqual([attempt, request.url, response], [1, "http://127.0.0.1:2/", null]);
});

const utf8 = (text: string) => new TextEncoder().encode(text);
const HEAD = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
const HOSTILE: [name: string, response: Uint8Array, shown: string, truncated: boolean][] = [
  ["with U+0000", utf8(HEAD + "a\0b"), HEAD + "a\uFFFDb", false],
  ["that is no UTF-8", new Uint8Array([...utf8(HEAD), 0xff, 0x41]), HEAD + "\uFFFDA", false],
  [
    "that looks like results of the dispatcher",
    utf8(HEAD + '"},"outcome":"released","due_at":"x","log_entry":"\\u0000'),
    HEAD + '"},"outcome":"released","due_at":"x","log_entry":"\\u0000',
    false,
  ],
  [
    "with a character across byte 1 024",
    utf8(HEAD.padEnd(1023, "x") + "€€"),
    HEAD.padEnd(1023, "x"),
    true,
  ],
  ["of exactly 1 024 bytes", utf8(HEAD.padEnd(1024, "x")), HEAD.padEnd(1024, "x"), false],
];
for (const [name, response, shown, truncated] of HOSTILE) {
  webhookCase(`a response ${name} is shown as text`, async (_, service) => {
    const receiver = openReceiver(async (conn) => {
      await writeAll(conn, response);
      conn.close();
    });
    try {
      await addEndpoint(service, `http://127.0.0.1:${receiver.port}/`, ONE_EVENT);
      await service.make({ outcome: "pending" });
      await settle(service);
      const [delivery] = await deliveriesOf(service);
      assert.equal(delivery.status, "delivered");
      const [{ response }] = await loggedAttempts(service);
      assert.deepEqual(response, { text: shown, truncated });
    } finally {
      await receiver.close();
    }
  });
}

webhookCase("a response that is no HTTP is not shown", async (_, service) => {
  const receiver = openReceiver(say("SSH-2.0-OpenSSH_9.6\r\n\r\n"));
  try {
    await addEndpoint(service, `http://127.0.0.1:${receiver.port}/`, ONE_EVENT);
    await service.make({ outcome: "pending" });
    await settle(service);
    assert.equal((await loggedAttempts(service))[0].response, null);
    const rows = await service.sql`select t::text as row from pay.attempt_log t`;
    assert.ok(!rows[0]!.row.includes("SSH"));
  } finally {
    await receiver.close();
  }
});

webhookCase("a delivery has the log of its newest five attempts", async (
  _,
  service,
  hooks,
) => {
  await addEndpoint(service, hooks.url("/"), ONE_EVENT);
  await service.make({ outcome: "pending" });
  await settle(service);
  const [{ id }] = await deliveriesOf(service);
  for (let i = 0; i < 6; i++) {
    await service.call("POST", `${DELIVERIES}/${id}/redeliver`);
    await settle(service);
  }
  const numbers = (await loggedAttempts(service)).map(({ attempt }: { attempt: number }) =>
    attempt
  );
  assert.deepEqual(numbers, [3, 4, 5, 6, 7]);
  assert.equal(await countOf(service), 5);
});

webhookCase("the attempt of a triggered event is logged, and not in its response", async (
  _,
  service,
  hooks,
) => {
  const { id: endpoint_id } = await addEndpoint(service, hooks.url("/"), { events: ["ping"] });
  hooks.judge = () => new Response("wrong secret?", { status: 401 });
  const payment_id = (await service.make({ outcome: "pending" })).body.id;
  const options = { body: { endpoint_id, event: "ping", payment_id }, idempotency_key: "once" };
  const first = await service.call("POST", TRIGGER, options);
  assert.equal(first.body.exchanges, undefined);
  const { exchanges } = (await service.call("GET", `${DELIVERIES}/${first.body.id}`)).body;
  assert.equal(exchanges[0].request.body, hooks.arrivals[0]!.text);
  assert.match(exchanges[0].response.text, /^HTTP\/1\.1 401 [^]*wrong secret\?$/);
  assert.equal((await service.call("POST", TRIGGER, options)).text, first.text);
});

webhookCase("an attempt in the log shows its declared fault", async (_, service, hooks) => {
  await addEndpoint(service, hooks.url("/"), ONE_EVENT);
  await declare(service, { on: "delivery", fault: "wrong_signature" });
  await service.make({ outcome: "pending" });
  await settle(service);
  const [{ request }] = await loggedAttempts(service);
  assert.equal(request.headers["Sandbox-Fault"], "wrong_signature");
  assert.equal(
    request.headers["Payment-Signature"],
    hooks.arrivals[0]!.headers.get("Payment-Signature"),
  );
});

Deno.test("nothing of a live attempt is logged", async () => {
  const receiver = openPublicReceiver();
  receiver.judge = () => new Response("response-canary", { status: 500 });
  const service = await startService(leadingTo(receiver.port));
  try {
    await service.setClock(AT);
    const { id: endpoint_id } = await addEndpoint(service, "https://hooks.example.com/", {}, {
      key: service.live.text,
    });
    const id = await addLiveDelivery(service, endpoint_id, AT);
    await settle(service);
    assert.equal(receiver.arrivals.length, 1);
    const { body } = await service.call("GET", `${DELIVERIES}/${id}`, { key: service.live.text });
    assert.deepEqual([body.attempts.length, body.exchanges], [1, undefined]);
    assert.equal(await countOf(service), 0);
  } finally {
    await Promise.all([service.close(), receiver.close()]);
  }
});

for (const livemode of [false, true]) {
  Deno.test(`makeAttempt() asks for the response only of a sandbox: ${!livemode}`, async () => {
    let requested: number | undefined;
    const attempt = {
      event_id: "evt_1",
      body: "{}",
      url: "https://hooks.example.com/",
      number: 1,
      secrets: ["whsec_" + btoa("s".repeat(32))],
      allow_private: false,
      livemode,
      signed_ms: AT,
    };
    const { log_entry } = await makeAttempt(attempt, AT, ({ response_bytes }) => {
      requested = response_bytes;
      return Promise.resolve({ outcome: "timeout", duration_ms: 100 });
    });
    assert.deepEqual([requested, log_entry === null], livemode ? [undefined, true] : [1024, false]);
  });
}

const KEPT = { url: "http://127.0.0.1:1/", headers: "{}", response: "HTTP/1.1 200 OK\r\n\r\n" };

webhookCase("pay.poll_deliveries() logs only attempts that belong to the sandbox", async (
  t,
  service,
) => {
  await service.setClock(AT);
  await insertEndpoint(service);
  await makeWaiting(service, 1);
  const log_entry = { ...KEPT, response_truncated: false };
  const [leased] = await poll(service, AT);
  const result = { ...resultOf(leased!, false, AT), log_entry };
  await t.step("not of an attempt that was leased again", async () => {
    const results = [{ ...result, attempt: leased!.attempt - 1 }];
    await poll(service, AT, { results, limit: 0 });
    assert.equal(await countOf(service), 0);
  });
  await t.step("not of a live environment", async () => {
    const live_id = await addLiveDelivery(service, "whe_live", AT);
    const leased_until = new Date(AT + 60_000).toISOString();
    await service.sql`update pay.webhook_deliveries
      set attempt_count = 1, leased_until = ${leased_until} where id = ${live_id}`;
    const { environment_id } = service.live;
    const results = [{ ...result, id: live_id, environment_id, leased_until }];
    await poll(service, AT, { results, limit: 0 });
    const [row] = await service.sql`
      select attempts from pay.webhook_deliveries where id = ${live_id}`;
    assert.equal(row!.attempts.length, 1);
    assert.equal(await countOf(service), 0);
  });
  await t.step("an unknown delivery is left out", async () => {
    await poll(service, AT, { results: [{ ...result, id: "whd_none" }], limit: 0 });
    assert.equal(await countOf(service), 0);
  });
  await t.step("of the newest attempt, also twice", async () => {
    for (let i = 0; i < 2; i++) await poll(service, AT, { results: [result, result], limit: 0 });
    assert.equal(await countOf(service), 1);
  });
}, NO_DISPATCHER);

webhookCase("the log of attempts has 7 days of the database's time", async (t, service, hooks) => {
  await addEndpoint(service, hooks.url("/"), ONE_EVENT);
  await service.make({ outcome: "pending" });
  await settle(service);
  const at_ms = Date.now();
  await service.sql`update pay.attempt_log set stored_at = ${new Date(at_ms)}`;
  const purge = async (later_ms: number) => {
    await service.setClock(at_ms + later_ms);
    return (await service.call("POST", RETENTION, { key: RELAY_TOKEN })).body.purged;
  };
  await t.step("retention leaves them until then", async () => {
    assert.equal(await purge(7 * DAY), 0);
    assert.equal(await countOf(service), 1);
  });
  await t.step("and deletes them then, without the delivery", async () => {
    assert.equal(await purge(7 * DAY + 1), 1);
    assert.equal(await countOf(service), 0);
    assert.equal((await deliveriesOf(service)).length, 1);
  });
});

webhookCase(
  "an advance of the clock leaves the log of attempts to retention",
  async (_, service, hooks) => {
    await addEndpoint(service, hooks.url("/"), ONE_EVENT);
    await service.make({ outcome: "pending" });
    await settle(service);
    const clock = await service.call("POST", "/api-v1-sandbox/clock", {
      body: { advance: (8 * DAY) / 1000 },
    });
    assert.deepEqual([clock.status, clock.body.did.purged], [200, 0]);
    assert.equal((await loggedAttempts(service)).length, 1);
  },
);

webhookCase("a reset removes the log of attempts", async (_, service, hooks) => {
  await addEndpoint(service, hooks.url("/"), ONE_EVENT);
  await service.make({ outcome: "pending" });
  await settle(service);
  const [{ id }] = await deliveriesOf(service);
  await service.call("POST", "/api-v1-sandbox/reset");
  assertRefused(await service.call("GET", `${DELIVERIES}/${id}`), 404, "not_found");
  await service.call("POST", RETENTION, { key: RELAY_TOKEN });
  assert.equal(await countOf(service), 0);
});
