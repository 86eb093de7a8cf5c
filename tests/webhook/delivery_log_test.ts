/**
 * The log of deliveries (contract §4, security §2, ADR 0018): the log lines of attempts, and for a
 * sandbox what the newest attempts sent and the beginning of each response. A live environment
 * stores none of these.
 */

import assert from "node:assert/strict";
import { verifyWebhook } from "../../packages/client/webhook_signature.ts";
import type { LogLine } from "../../shared/http/log_line.ts";
import { RELAY_TOKEN, type TestService } from "../support/service/service.ts";
import { addLiveDelivery } from "../support/webhook/live_endpoint.ts";
import { openReceiver, writeAll } from "../support/webhook/loopback_receiver.ts";
import {
  addEndpoint,
  DELIVERIES,
  deliveriesOf,
  ENDPOINTS,
  RETENTION,
  settle,
  TRIGGER,
} from "../support/webhook/recording_receiver.ts";
import {
  AT,
  insertEndpoint,
  makeWaiting,
  NO_DISPATCHER,
  poll,
  resultOf,
} from "../support/webhook/dispatcher_polls.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";
import { until } from "../support/common/until.ts";

const DAY = 86_400_000;
const ONE_EVENT = { events: ["payment.created"] };

webhookCase("no delivery or log has a receiver's response", async (_, service, hooks) => {
  await addEndpoint(service, hooks.url("/"));
  const headers = { "X-Canary": "response-canary" };
  hooks.judge = () => new Response("response-canary-body", { status: 500, headers });
  await service.make({ outcome: "pending" });
  await settle(service);
  // A sandbox keeps the beginning of a response in a table of its own.
  const rows = await service.sql`select t::text as row from pay.webhook_deliveries t`;
  assert.ok(rows.length > 0 && !rows.some(({ row }) => row.includes("canary")));
  assert.ok(!JSON.stringify(await deliveriesOf(service)).includes("canary"));
  assert.ok(!JSON.stringify(service.logs).includes("canary"));
});

webhookCase("each attempt is logged with its event's request", async (_, service, receiver) => {
  const endpoint = await addEndpoint(service, receiver.url("/"), { events: ["payment.completed"] });
  const text = '"request":{"id":"req_of_a_stranger"';
  const paid = await service.pay({ outcome: "success", metadata: { text } });
  const lines = () => service.logs.filter(({ route }) => route === "webhook attempt");
  await until("the attempt is logged", () => lines().length === 1);
  const [delivery] = await deliveriesOf(service, `&payment_id=${paid.body.id}`);
  const [{ time: _time, ms: _ms, ...line }] = lines() as [LogLine];
  assert.deepEqual(line, {
    request_id: paid.headers.get("Request-Id"),
    key_id: null,
    route: "webhook attempt",
    status: 200,
    code: null,
    event_id: delivery.event_id,
    delivery_id: delivery.id,
    endpoint_id: endpoint.id,
    attempt: 1,
  });
});

/** The logged attempts of the only delivery that a query finds. */
async function loggedAttempts(service: TestService, query = "") {
  const [{ id }] = await deliveriesOf(service, query);
  return (await service.get(`${DELIVERIES}/${id}`)).exchanges;
}

webhookCase("a delivery shows what each attempt sent and got", async (t, service, hooks) => {
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

  for (const [i, arrival] of hooks.arrivals.entries()) {
    await t.step(`the request of attempt ${i + 1} is the one that arrived`, async () => {
      const { attempt, request } = exchanges[i];
      assert.deepEqual([attempt, request.url, request.body], [i + 1, url, arrival.text]);
      for (const [name, value] of Object.entries(request.headers)) {
        assert.equal(arrival.headers.get(name), value, name);
      }
      const signature = request.headers["Payment-Signature"];
      await verifyWebhook(request.body, signature, secret, { now_ms: AT + i * 5_000 });
    });
  }
  await t.step("the response begins with its status line, cut after 1 024 bytes", () => {
    const [{ text, truncated }, short] = exchanges.map(({ response }: never) => response);
    assert.match(text, /^HTTP\/1\.1 503 .*\r\n[^]*x-why: busy\r\n[^]*\r\n\r\nno no no /i);
    assert.deepEqual([text.length, truncated], [1024, true]);
    assert.deepEqual([short.text.endsWith("\r\n\r\nthanks"), short.truncated], [true, false]);
  });
  await t.step("a delivery has the log of its newest five attempts", async () => {
    const [{ id }] = await deliveriesOf(service);
    for (let i = 0; i < 5; i++) {
      await service.call("POST", `${DELIVERIES}/${id}/redeliver`);
      await settle(service);
    }
    const logged: { attempt: number }[] = await loggedAttempts(service);
    assert.deepEqual(logged.map(({ attempt }) => attempt), [3, 4, 5, 6, 7]);
    assert.equal(await service.count("attempt_log"), 5);
  });
  await t.step("the attempt of a triggered event is logged, and not in its response", async () => {
    const [{ endpoint_id, payment_id }] = await deliveriesOf(service);
    hooks.judge = () => new Response("wrong secret?", { status: 401 });
    const body = { endpoint_id, event: "ping", payment_id };
    const { event_id, exchanges } = await service.post(TRIGGER, body);
    assert.equal(exchanges, undefined);
    const [{ request, response }] = await loggedAttempts(service, `&event_id=${event_id}`);
    assert.equal(request.body, hooks.arrivals.at(-1)!.text);
    assert.match(response.text, /^HTTP\/1\.1 401 [^]*wrong secret\?$/);
  });
});

const utf8 = (text: string) => new TextEncoder().encode(text);
const HEAD = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
const CUT = HEAD.padEnd(1023, "x");
const RESULTS = '"},"outcome":"released","due_at":"x","log_entry":"\\u0000';
/** Each row: the bytes of a response, the text that is shown, if any, and whether it is cut. */
const RESPONSES: [name: string, response: Uint8Array, shown: string | null, truncated?: boolean][] =
  [
    ["with U+0000", utf8(HEAD + "a\0b"), HEAD + "a\uFFFDb"],
    ["that is no UTF-8", new Uint8Array([...utf8(HEAD), 0xff, 0x41]), HEAD + "\uFFFDA"],
    ["that looks like results of the dispatcher", utf8(HEAD + RESULTS), HEAD + RESULTS],
    ["with a character across byte 1 024", utf8(CUT + "€€"), CUT, true],
    ["of exactly 1 024 bytes", utf8(HEAD.padEnd(1024, "x")), HEAD.padEnd(1024, "x")],
    ["that is no HTTP", utf8("SSH-2.0-OpenSSH_9.6\r\n\r\n"), null],
    ["that does not come", utf8(""), null],
  ];

webhookCase("the log shows responses as text", async (t, service) => {
  for (const [name, bytes, shown, truncated = false] of RESPONSES) {
    await t.step(`one ${name}`, async () => {
      const receiver = openReceiver(async (conn) => {
        await writeAll(conn, bytes);
        conn.close();
      });
      const url = `http://127.0.0.1:${receiver.port}/`;
      const { id } = await addEndpoint(service, url, ONE_EVENT);
      await service.make({ outcome: "pending" });
      await settle(service);
      const [delivery] = await deliveriesOf(service, `&endpoint_id=${id}`);
      assert.equal(delivery.status, shown === null ? "pending" : "delivered");
      const [{ request, response }] = await loggedAttempts(service, `&endpoint_id=${id}`);
      assert.equal(request.url, url);
      assert.deepEqual(response, shown === null ? null : { text: shown, truncated });
      await service.call("DELETE", `${ENDPOINTS}/${id}`);
      await receiver.close();
    });
  }
  const rows = await service.sql`select t::text as row from pay.attempt_log t`;
  assert.ok(!rows.some(({ row }) => row.includes("SSH")));
});

const KEPT = { url: "http://127.0.0.1:1/", headers: "{}", response: "HTTP/1.1 200 OK\r\n\r\n" };

webhookCase("pay.poll_deliveries() logs attempts of the sandbox only", async (t, service) => {
  await service.setClock(AT);
  await insertEndpoint(service);
  await makeWaiting(service, 1);
  const log_entry = { ...KEPT, response_truncated: false };
  const [leased] = await poll(service, AT);
  const result = { ...resultOf(leased!, false, AT), log_entry };
  await t.step("not of an attempt that was leased again", async () => {
    const results = [{ ...result, attempt: leased!.attempt - 1 }];
    await poll(service, AT, { results, limit: 0 });
    assert.equal(await service.count("attempt_log"), 0);
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
    assert.equal(await service.count("attempt_log"), 0);
  });
  await t.step("of the newest attempt, also twice", async () => {
    for (let i = 0; i < 2; i++) await poll(service, AT, { results: [result, result], limit: 0 });
    assert.equal(await service.count("attempt_log"), 1);
  });
}, NO_DISPATCHER);

webhookCase("the log of attempts has 7 days of the database's time", async (t, service, hooks) => {
  await addEndpoint(service, hooks.url("/"), ONE_EVENT);
  await service.make({ outcome: "pending" });
  await settle(service);
  await t.step("an advance of the clock leaves it to retention", async () => {
    const body = { advance: (8 * DAY) / 1000 };
    const clock = await service.call("POST", "/api-v1-sandbox/clock", { body });
    assert.deepEqual([clock.status, clock.body.did.purged], [200, 0]);
    assert.equal((await loggedAttempts(service)).length, 1);
  });
  const at_ms = Date.now();
  await service.sql`update pay.attempt_log set stored_at = ${new Date(at_ms)}`;
  const purge = async (later_ms: number) => {
    await service.setClock(at_ms + later_ms);
    return (await service.post(RETENTION, undefined, { key: RELAY_TOKEN })).purged;
  };
  await t.step("retention deletes it then, and not before, without the delivery", async () => {
    assert.deepEqual([await purge(7 * DAY), await service.count("attempt_log")], [0, 1]);
    assert.deepEqual([await purge(7 * DAY + 1), await service.count("attempt_log")], [1, 0]);
    assert.equal((await deliveriesOf(service)).length, 1);
  });
});
