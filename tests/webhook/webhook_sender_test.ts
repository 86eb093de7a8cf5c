/**
 * The webhook sender with misbehaving receivers, over real sockets on loopback. Only the address
 * checks see "public" addresses: the `dial` seam maps them to loopback, and fails the test for any
 * unexpected address.
 */
import assert from "node:assert/strict";
import {
  sendWebhook,
  type WebhookRequest,
  type WebhookResult,
} from "../../shared/delivery/webhook_sender.ts";
import { WebhookConnectionPool } from "../../shared/delivery/webhook_connection.ts";
import { openReceiver, type Respond, say, writeAll } from "../support/webhook/loopback_receiver.ts";
import {
  EXPIRED_CERTIFICATE,
  HOOKS_CERTIFICATE,
  TEST_AUTHORITY,
} from "../support/webhook/test_certificates.ts";
import { ADDRESS_VECTORS, URL_VECTORS } from "../support/core/vectors.ts";

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const PUBLIC = "93.184.216.34";
const FAILED = { outcome: "connection_failed", duration_ms: 0 };
/** Timeouts of attempts that must time out. */
const QUICK = { connect_ms: 600, total_ms: 1_000 };
/** Timeouts of all others. No response takes this long on a busy machine. */
const PATIENT = { connect_ms: 30_000, total_ms: 60_000 };
/** Later than a timeout of QUICK and earlier than a timeout of PATIENT. */
const QUICKLY_MS = 15_000;

/** Asserts a response. The duration is rounded up to 100 ms. */
function assertResponse(
  { duration_ms, ...result }: WebhookResult,
  expected: { status: number; retry_after?: string },
): void {
  assert.deepEqual(result, { outcome: "response", ...expected });
  assert.ok(duration_ms > 0 && duration_ms % 100 === 0, `${duration_ms} ms`);
}

/** A request to a receiver on loopback, which the local start allows. */
function toLoopback(port: number, more: Partial<WebhookRequest> = {}): WebhookRequest {
  const url = `http://127.0.0.1:${port}/hook?x=1`;
  return { url, headers: {}, body: "{}", timeouts: PATIENT, allow_private: true, ...more };
}

/** A request to https://hooks.example.com that arrives at a receiver on loopback. */
function toPublic(port: number, more: Partial<WebhookRequest> = {}): WebhookRequest {
  return {
    url: "https://hooks.example.com/hook",
    headers: {},
    body: "{}",
    timeouts: PATIENT,
    allow_private: false,
    resolve: () => Promise.resolve([PUBLIC]),
    ...more,
    seam: { ca_certs: [TEST_AUTHORITY], dial: dialOnly([PUBLIC], port), ...more.seam },
  };
}

function dialOnly(expected: string[], port: number) {
  return (address: string) => {
    assert.ok(expected.includes(address), `dialled ${address}`);
    return { address: "127.0.0.1", port };
  };
}

async function closedPort(): Promise<number> {
  const receiver = openReceiver(say(OK));
  await receiver.close();
  return receiver.port;
}

/** Sends one request to a receiver with this response, over plain TCP. */
async function sendTo(response: Respond, more: Partial<WebhookRequest> = {}) {
  const receiver = openReceiver(response);
  try {
    return await sendWebhook(toLoopback(receiver.port, more));
  } finally {
    await receiver.close();
  }
}

Deno.test("sendWebhook() sends the headers and the same bytes", async () => {
  const text = "€".repeat(23_333) + "a";
  const body = new TextEncoder().encode(text);
  const receiver = openReceiver(say(OK));
  const headers = { "Payment-Signature": "t=1,v1=ab", "Content-Type": "application/json" };
  const result = await sendWebhook(toLoopback(receiver.port, { headers, body: text }));
  await receiver.close();
  assertResponse(result, { status: 200 });
  const sent = receiver.requests[0]!;
  const end = sent.length - body.length;
  assert.deepEqual(sent.subarray(end), body);
  assert.equal(
    new TextDecoder().decode(sent.subarray(0, end)),
    `POST /hook?x=1 HTTP/1.1\r\nHost: 127.0.0.1:${receiver.port}\r\n` +
      "Payment-Signature: t=1,v1=ab\r\nContent-Type: application/json\r\n" +
      "Content-Length: 70000\r\nConnection: close\r\n\r\n",
  );
});

/** http_response_test.ts has all forms of a response. */
Deno.test("sendWebhook() returns a redirect and its Retry-After, and does not follow it", async () => {
  const canary = openReceiver(say(OK));
  const result = await sendTo(say(
    `HTTP/1.1 307 Go\r\nLocation: http://127.0.0.1:${canary.port}/internal\r\n` +
      "Retry-After: 120\r\nContent-Length: 0\r\n\r\n",
  ));
  await canary.close();
  assertResponse(result, { status: 307, retry_after: "120" });
  assert.equal(canary.connections, 0);
});

const FAILURES: [name: string, response: Respond][] = [
  ["closed without a byte", (conn) => conn.close()],
  ["closed inside the head", async (conn, request) => {
    await say("HTTP/1.1 200 OK\r\nContent-")(conn, request);
    conn.close();
  }],
  ["another protocol", say("SSH-2.0-OpenSSH_9.9\r\n\r\n")],
  ["header bomb", say("HTTP/1.1 200 OK\r\n" + "X-Bomb: aaaaaaaaaaaaaaaa\r\n".repeat(50_000))],
];
for (const [name, response] of FAILURES) {
  Deno.test(`sendWebhook() ${name}: connection_failed`, async () => {
    assert.deepEqual(await sendTo(response), FAILED);
  });
}

Deno.test("sendWebhook() returns the status of an endless body, after at most 16 KiB", async () => {
  let written = 0;
  const result = await sendTo(async (conn, request) => {
    await say("HTTP/1.1 200 OK\r\n\r\n")(conn, request);
    for (const block = new Uint8Array(65536);;) written += await conn.write(block);
  });
  assertResponse(result, { status: 200 });
  assert.ok(written < 32 << 20, `the receiver could write ${written} bytes`);
});

/** Writes a byte at a time, until the sender closes the connection. */
const drip = (beginning: string): Respond => async (conn) => {
  await writeAll(conn, new TextEncoder().encode(beginning));
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    await writeAll(conn, new TextEncoder().encode("a"));
  }
};
/** Slow responses, and the status; null: a timeout. */
const SLOW: [name: string, response: Respond, status: number | null][] = [
  ["never responds", async (conn) => void await conn.read(new Uint8Array(1)), null],
  ["slow headers", drip("HTTP/1.1 200 OK\r\nX: "), null],
  ["a body that stalls", say("HTTP/1.1 202 OK\r\nContent-Length: 9\r\n\r\n"), 202],
  ["a slow body", drip("HTTP/1.1 202 OK\r\nContent-Length: 1000\r\n\r\n"), 202],
];
for (const [name, response, status] of SLOW) {
  Deno.test(`sendWebhook() ${name}: ${status ?? "timeout"} within total_ms`, async () => {
    const started = performance.now();
    const result = await sendTo(response, { timeouts: QUICK });
    if (status !== null) assertResponse(result, { status });
    else assert.deepEqual(result, { outcome: "timeout", duration_ms: QUICK.total_ms });
    assert.ok(performance.now() - started < QUICKLY_MS);
  });
}

Deno.test("sendWebhook() verifies the certificate for the host name", async () => {
  const receiver = openReceiver(say(OK), HOOKS_CERTIFICATE);
  const result = await sendWebhook(toPublic(receiver.port));
  await receiver.close();
  assertResponse(result, { status: 200 });
  assert.match(new TextDecoder().decode(receiver.requests[0]!), /\nHost: hooks\.example\.com\r/);
});

for (const [address, outcome] of [["127.0.0.1", "response"], ["127.0.0.2", "connection_failed"]]) {
  Deno.test(`sendWebhook() https://${address} checks the certificate: ${outcome}`, async () => {
    const receiver = openReceiver(say(OK), HOOKS_CERTIFICATE, address);
    const result = await sendWebhook({
      ...toLoopback(receiver.port, { seam: { ca_certs: [TEST_AUTHORITY] } }),
      url: `https://${address}:${receiver.port}/`,
    });
    await receiver.close();
    assert.equal(result.outcome, outcome);
  });
}

/** The failures that a tenant can cause, and the change of the request for each. */
const REFUSALS: [
  name: string,
  change: (port: number) => Partial<WebhookRequest>,
  certificate?: typeof HOOKS_CERTIFICATE,
][] = [
  ["expired certificate", () => ({}), EXPIRED_CERTIFICATE],
  ["certificate of another host", () => ({ url: "https://other.example.com/" })],
  ["untrusted certificate", (port) => ({ seam: { ca_certs: [], dial: dialOnly([PUBLIC], port) } })],
  ["no such name", () => ({ resolve: () => Promise.reject(new Error("NXDOMAIN")) })],
  ["name without addresses", () => ({ resolve: () => Promise.resolve([]) })],
  ["resolver that never responds", () => ({
    resolve: () => new Promise(() => {}),
    timeouts: { connect_ms: 50, total_ms: 100 },
  })],
  ["loopback", () => ({ resolve: () => Promise.resolve(["127.0.0.1"]) })],
  ["a second, private address", () => ({ resolve: () => Promise.resolve([PUBLIC, "10.0.0.1"]) })],
  ["a public and an IPv4-mapped address", () => ({
    resolve: () => Promise.resolve([PUBLIC, "::ffff:127.0.0.1"]),
  })],
  ["an address in another notation", () => ({ resolve: () => Promise.resolve(["127.1"]) })],
  ["a name in place of an address", () => ({ resolve: () => Promise.resolve(["localhost"]) })],
  ["a host of the service", () => ({ own_hosts: ["hooks.example.com"] })],
];
for (const [name, change, certificate = HOOKS_CERTIFICATE] of REFUSALS) {
  Deno.test(`sendWebhook() ${name}: connection_failed, the receiver gets no request`, async () => {
    const receiver = openReceiver(say(OK), certificate);
    const result = await sendWebhook(toPublic(receiver.port, change(receiver.port)));
    await receiver.close();
    assert.deepEqual(result, FAILED);
    assert.equal(receiver.requests.length, 0);
  });
}

Deno.test("sendWebhook() plain text instead of TLS: connection_failed", async () => {
  const listener = Deno.listen({ port: 0, hostname: "127.0.0.1" });
  const work = (async () => {
    const conn = await listener.accept();
    await say("HTTP/1.1 200 OK\r\n\r\n")(conn, new Uint8Array());
    while (await conn.read(new Uint8Array(4096)).catch(() => null) !== null);
    conn.close();
  })();
  assert.deepEqual(await sendWebhook(toPublic((listener.addr as Deno.NetAddr).port)), FAILED);
  await work;
  listener.close();
});

Deno.test("sendWebhook() closed port: connection_failed", async () => {
  assert.deepEqual(await sendWebhook(toLoopback(await closedPort())), FAILED);
});

/** Deno 2.1 leaks a TLS socket that is destroyed during the handshake (ADR 0016). */
const KEEPS_STALLED_TLS = Deno.version.deno.startsWith("2.1.");

Deno.test({
  name: "sendWebhook() stalled TLS handshake: connection_failed within connect_ms",
  sanitizeResources: !KEEPS_STALLED_TLS,
  fn: stalledHandshake,
});

async function stalledHandshake() {
  const listener = Deno.listen({ port: 0, hostname: "127.0.0.1" });
  const accepted = listener.accept();
  const timeouts = { ...PATIENT, connect_ms: 200 };
  const started = performance.now();
  const { port } = listener.addr as Deno.NetAddr;
  assert.deepEqual(await sendWebhook(toPublic(port, { timeouts })), FAILED);
  assert.ok(performance.now() - started < QUICKLY_MS);
  (await accepted).close();
  listener.close();
}

Deno.test("sendWebhook() does not follow a name that changes, and reuses no idle connection", async () => {
  const pool = new WebhookConnectionPool();
  const receiver = openReceiver(say(OK), HOOKS_CERTIFICATE);
  const told = [[PUBLIC], [PUBLIC], ["10.0.0.1"]];
  const request = toPublic(receiver.port, { pool, resolve: () => Promise.resolve(told.shift()!) });
  const outcomes = [];
  for (let i = 0; i < 3; i++) outcomes.push((await sendWebhook(request)).outcome);
  pool.close();
  await receiver.close();
  assert.deepEqual(outcomes, ["response", "response", "connection_failed"]);
  assert.equal(receiver.connections, 1);
  assert.equal(receiver.requests.length, 2);
});

Deno.test("sendWebhook() tries the second address if the first does not respond", async () => {
  const receiver = openReceiver(say(OK), HOOKS_CERTIFICATE);
  const closed = await closedPort();
  const dialled: string[] = [];
  const result = await sendWebhook(toPublic(receiver.port, {
    resolve: () => Promise.resolve(["2606:4700:4700::1111", PUBLIC]),
    seam: {
      dial: (address) => {
        dialled.push(address);
        return { address: "127.0.0.1", port: address === PUBLIC ? closed : receiver.port };
      },
    },
  }));
  await receiver.close();
  assert.equal(result.outcome, "response");
  assert.deepEqual(dialled, [PUBLIC, "2606:4700:4700::1111"]);
});

const REUSES: [name: string, response: string, connections: number][] = [
  ["length", OK, 1],
  ["Connection: close", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", 3],
];
for (const [name, response, connections] of REUSES) {
  Deno.test(`sendWebhook() three sends, ${name}: ${connections} connection(s)`, async () => {
    const pool = new WebhookConnectionPool();
    const receiver = openReceiver(say(response));
    for (let i = 0; i < 3; i++) {
      const result = await sendWebhook(toLoopback(receiver.port, { pool }));
      assert.equal(result.outcome, "response");
    }
    pool.close();
    await receiver.close();
    assert.equal(receiver.connections, connections);
    assert.equal(receiver.requests.length, 3);
    const text = new TextDecoder().decode(receiver.requests[0]!);
    assert.match(text, /\r\nConnection: keep-alive\r\n/);
  });
}

Deno.test("sendWebhook() waits a second for the rest of a response that has begun", async () => {
  const started = performance.now();
  const result = await sendTo(async (conn) => {
    await say("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")(conn, new Uint8Array());
    while (await conn.write(new Uint8Array(1)).catch(() => 0) > 0) {
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  });
  assertResponse(result, { status: 200 });
  assert.ok(performance.now() - started < QUICKLY_MS);
});

Deno.test("sendWebhook() replaces a closed idle connection and sends once", async () => {
  const pool = new WebhookConnectionPool();
  let responses = 0;
  const receiver = openReceiver(async (conn, request) => {
    // Closes the connection at its second request, as in a race.
    if (++responses === 2) conn.close();
    else await say(OK)(conn, request);
  });
  const results = [];
  for (let i = 0; i < 2; i++) results.push(await sendWebhook(toLoopback(receiver.port, { pool })));
  pool.close();
  await receiver.close();
  assert.deepEqual(results.map(({ outcome }) => outcome), ["response", "response"]);
  assert.equal(receiver.connections, 2);
});

Deno.test("sendWebhook() ignores a response that was sent before its request", async () => {
  const pool = new WebhookConnectionPool();
  const first_has_ended = Promise.withResolvers<void>();
  const ahead_is_sent = Promise.withResolvers<void>();
  let responses = 0;
  const receiver = openReceiver(async (conn, request) => {
    await say(OK)(conn, request);
    if (++responses > 1) return;
    await first_has_ended.promise;
    await say("HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n")(conn, request);
    ahead_is_sent.resolve();
  });
  await sendWebhook(toLoopback(receiver.port, { pool }));
  first_has_ended.resolve();
  await ahead_is_sent.promise;
  // Bytes sent on loopback arrive before the responses of a later exchange.
  assertResponse(await sendTo(say(OK)), { status: 200 });
  const second = await sendWebhook(toLoopback(receiver.port, { pool }));
  pool.close();
  await receiver.close();
  assertResponse(second, { status: 200 });
});

Deno.test("sendWebhook() calls no refused URL of the vectors", async () => {
  for (const vector of URL_VECTORS) {
    if (vector.result === "ok" || vector.result === "own_host") continue;
    const result = await sendWebhook({
      url: vector.url,
      headers: {},
      body: "{}",
      allow_private: vector.allow_private ?? false,
      resolve: (host) => assert.fail(`resolved ${host} of ${vector.url}`),
      seam: { dial: (address) => assert.fail(`dialled ${address} of ${vector.url}`) },
    });
    assert.deepEqual(result, FAILED);
  }
});

Deno.test("sendWebhook() calls no name with a refused address of the vectors", async () => {
  for (const { ip, result } of ADDRESS_VECTORS) {
    for (const allow_private of [false, true]) {
      if (result === "public" || (result === "private" && allow_private)) continue;
      const request = toPublic(1, { allow_private, resolve: () => Promise.resolve([PUBLIC, ip]) });
      const seam = { dial: (address: string) => assert.fail(`dialled ${address} beside ${ip}`) };
      assert.deepEqual(await sendWebhook({ ...request, seam }), FAILED);
    }
  }
});

const BAD_HEADERS: [name: string, value: string][] = [
  ["X-Id", "a\r\nX-Injected: 1"],
  ["X-Id", "a\nb"],
  ["X-Id", "\0"],
  ["X-Id", "zoë"],
  ["X Id", "a"],
  ["X-Id: a\r\nY", "a"],
  ["Host", "internal"],
  ["content-length", "0"],
  ["Transfer-Encoding", "chunked"],
];
for (const [name, value] of BAD_HEADERS) {
  Deno.test(`sendWebhook() header ${JSON.stringify([name, value])} throws`, async () => {
    await assert.rejects(sendWebhook(toLoopback(3000, { headers: { [name]: value } })), TypeError);
  });
}
