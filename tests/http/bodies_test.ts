/**
 * Request bodies: refused JSON on every mutating route (strict_json_test.ts has all vectors), the
 * size limit to the byte, media types and encodings. The database admits and counts a request
 * before the service reads a body above 4 096 bytes, and accounts take turns at parsing such bodies
 * (contract §6, security §2).
 */

import assert from "node:assert/strict";
import { generateApiKey } from "../../shared/core/api_key.ts";
import { createPaymentsFunction } from "../../shared/functions/payments_function.ts";
import { LARGE_BODIES } from "../../shared/jobs/places.ts";
import { SMALL_BODY_BYTES } from "../../shared/schema/limits.ts";
import { NeedsInternals } from "../support/service/needs_internals.ts";
import { IS_REMOTE } from "../support/service/product.ts";
import type { TestResponse, TestService } from "../support/service/service.ts";
import { mutatingRoutes, pathOf } from "../support/http/routes.ts";
import { assertRefused, PAYMENTS, serviceCase } from "../support/service/service_case.ts";
import { rowCounts } from "../support/database/payment_records.ts";
import { bytesOf, JSON_VECTORS } from "../support/core/vectors.ts";

/** The maximum size of a body in bytes (security design §2). */
const LIMIT = 65_536;
const CHUNK = 1_024;
const RATE = 5;
const START = Date.parse("2030-01-01T00:00:00Z");

/** JSON that is no object. */
const NOT_OBJECTS = ["null", "true", "1", '"{}"', "[]", '[{"amount":1}]'];

serviceCase("a body of invalid JSON, or of no object", async (t, service) => {
  const before = await rowCounts(service);
  const refused = JSON_VECTORS.filter((vector) =>
    vector.expect === "refuse" && bytesOf(vector).length > 0
  );
  // All routes have the same reader, so some vectors show that a route uses it.
  const bodies: [body: Uint8Array | string, param?: string][] = [
    ...refused.filter((_, index) => index % 30 === 0)
      .map((vector) => [bytesOf(vector), vector.param || undefined] as [Uint8Array, string?]),
    ...NOT_OBJECTS.map((text) => [text] as [string]),
  ];
  assert.ok(bodies.length > NOT_OBJECTS.length + 5);
  for (const route of mutatingRoutes()) {
    await t.step(`${route[0]} ${route[1]} is 400`, async () => {
      for (const [body, param] of bodies) {
        const idempotency_key = crypto.randomUUID();
        const response = await service.call(route[0], pathOf(route), { body, idempotency_key });
        assertRefused(response, "invalid_json", param);
      }
    });
  }
  await t.step("none of them stores anything", async () => {
    assert.deepEqual(await rowCounts(service), before);
  });
});

/** Sends a body as a stream, which has no Content-Length. Returns the bytes that were taken too. */
async function stream(
  service: TestService,
  chunks: Iterable<Uint8Array>,
  key = service.key.text,
): Promise<TestResponse & { taken: number }> {
  const iterator = chunks[Symbol.iterator]();
  let taken = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const { value, done } = iterator.next();
      if (done) return controller.close();
      taken += value.length;
      controller.enqueue(value);
    },
  });
  const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
  const request = new Request(`http://localhost${PAYMENTS}`, { method: "POST", headers, body });
  const response = await createPaymentsFunction(service.deps)(request);
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: JSON.parse(text),
    taken,
  };
}

function* inChunks(bytes: Uint8Array, size: number): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.slice(at, at + size);
}

/** Spaces without an end. */
function* endless(): Generator<Uint8Array> {
  for (;;) yield new Uint8Array(CHUNK).fill(0x20);
}

/** A valid create, padded with spaces to a length in bytes. */
function padded(length: number): Uint8Array {
  return new TextEncoder().encode(`{"amount":1,"currency":"EUR"}`.padEnd(length));
}

serviceCase("the size of a body", async (t, service) => {
  const lengths = [[LIMIT - 1, 201], [LIMIT, 201], [LIMIT + 1, 413], [2 * LIMIT, 413]] as const;
  for (const [length, status] of lengths) {
    for (const chunk of [null, 1 << 20, LIMIT, 4_096, 1_000]) {
      const how = chunk === null ? "in one piece" : `streamed in chunks of ${chunk}`;
      await t.step(`${length} bytes ${how}: ${status}`, async () => {
        const response = chunk === null
          ? await service.call("POST", PAYMENTS, { body: padded(length) })
          : await stream(service, inChunks(padded(length), chunk));
        assert.equal(response.status, status, response.text.slice(0, 200));
        if (status === 413) assertRefused(response, "payload_too_large");
      });
    }
  }
  for (const length of [LIMIT + 1, 1e9, Number.MAX_SAFE_INTEGER]) {
    await t.step(`a Content-Length of ${length} is refused before the body is read`, async () => {
      const headers = { "Content-Length": String(length) };
      assertRefused(await service.pay({}, { headers }), "payload_too_large");
    });
  }
  for (const announced of ["1", "0", "", " ", "-1", "x"]) {
    await t.step(`a Content-Length of "${announced}" does not raise the limit`, async () => {
      const headers = { "Content-Length": announced };
      const response = await service.call("POST", PAYMENTS, { body: padded(LIMIT + 1), headers });
      assertRefused(response, "payload_too_large");
    });
  }
});

/** A header of a valid create, and whether the request is accepted. */
const MEDIA: [header: string, value: string, taken: boolean][] = [
  ["Content-Type", "application/json", true],
  ["Content-Type", "application/json; charset=utf-8", true],
  ["Content-Type", 'application/json;charset="UTF-8"', true],
  ["Content-Type", "APPLICATION/JSON", true],
  ["Content-Type", "application/json ", true],
  ["Content-Type", "application/json; charset=latin1", false],
  ["Content-Type", "application/json; charset=utf-16", false],
  ["Content-Type", "application/json; boundary=x", false],
  ["Content-Type", "application/json, text/plain", false],
  ["Content-Type", "application/jsonp", false],
  ["Content-Type", "application/problem+json", false],
  ["Content-Type", "application/x-www-form-urlencoded", false],
  ["Content-Type", "text/json", false],
  ["Content-Type", "*/*", false],
  ["Content-Type", "", false],
  ["Content-Encoding", "identity", true],
  ["Content-Encoding", "Identity", true],
  ["Content-Encoding", "gzip", false],
  ["Content-Encoding", "identity, gzip", false],
  ["Content-Encoding", "gzip, identity", false],
];

serviceCase("the media type of a body", async (t, service) => {
  const body = { amount: 1, currency: "EUR" };
  for (const [header, value, taken] of MEDIA) {
    await t.step(`${header}: ${value} is ${taken ? "accepted" : "refused"}`, async () => {
      const response = await service.call("POST", PAYMENTS, { body, headers: { [header]: value } });
      if (taken) assert.equal(response.status, 201, response.text);
      else assertRefused(response, "unsupported_media_type");
    });
  }
  await t.step("an absent body needs no media type", async () => {
    for (const value of ["text/plain", ""]) {
      const headers = { "Content-Type": value };
      await service.post("/api-v1-sandbox/reset", undefined, { headers });
    }
  });
});

serviceCase("a caller who is refused sends no large body", async (t, service) => {
  if (IS_REMOTE) throw new NeedsInternals("the bytes that are read");
  await service.setClock(START);
  const { environment_id } = service.key;
  const narrow = await service.issueKey(environment_id, { scopes: ["ledger:read"] });
  const busy = await service.issueKey(environment_id);
  const known = await service.issueKey(environment_id);
  await service.call("GET", PAYMENTS, { key: known.text });
  await service.sql`update pay.api_key_secrets set revoked_at = now()
    where api_key_id = ${known.id}`;
  for (let i = 0; i < 2 * RATE; i++) await service.call("GET", PAYMENTS, { key: busy.text });
  // One chunk is taken before the function runs.
  const small = SMALL_BODY_BYTES + 2 * CHUNK;
  const rows: [name: string, key: string, status: number, most: number][] = [
    ["a made-up key", generateApiKey("test"), 401, CHUNK],
    ["no key", "none", 401, CHUNK],
    ["a revoked key that the isolate knew", known.text, 401, small],
    ["a key without the scope", narrow.text, 403, small],
    ["a key above its rate", busy.text, 429, small],
    ["a valid key", service.key.text, 413, LIMIT + 2 * CHUNK],
  ];
  for (const [name, key, expected, most] of rows) {
    await t.step(`${name}: ${expected}, and at most ${most} bytes are read`, async () => {
      const { status, taken } = await stream(service, endless(), key);
      assert.equal(status, expected);
      assert.ok(taken <= most, `${taken} bytes`);
    });
  }
}, { rate_limit: RATE });

serviceCase("a replay counts if its body is large", async (t, service) => {
  for (const [i, has_length] of [false, true].entries()) {
    for (const bytes of [SMALL_BODY_BYTES, SMALL_BODY_BYTES + 1]) {
      await t.step(`${bytes} bytes, ${has_length ? "with" : "without"} a length`, async () => {
        const options = {
          body: padded(bytes),
          idempotency_key: `${i}-${bytes}`,
          headers: has_length ? { "Content-Length": String(bytes) } : {},
        };
        const at_ms = START + (i * SMALL_BODY_BYTES + bytes) * 100_000;
        await service.setClock(at_ms);
        const first = await service.call("POST", PAYMENTS, options);
        assert.equal(first.headers.get("RateLimit"), `"default";r=${2 * RATE - 1};t=2`);
        await service.setClock(at_ms + 10_000);
        const again = await service.call("POST", PAYMENTS, options);
        assert.equal(again.text, first.text);
        const left = 2 * RATE - (bytes > SMALL_BODY_BYTES ? 1 : 0);
        assert.equal(again.headers.get("RateLimit"), `"default";r=${left};t=2`);
      });
    }
  }
}, { rate_limit: RATE });

serviceCase("accounts take turns at large bodies", async (_, service) => {
  const large = { body: padded(60_000) };
  const other = { ...large, key: service.other.text };
  await service.pay();
  await service.pay({}, { key: service.other.text });
  const ended: string[] = [];
  const send = async (name: string, options: typeof large) => {
    const { status } = await service.call("POST", PAYMENTS, options);
    if (status === 201) ended.push(name);
    return status;
  };
  const count = 4 * LARGE_BODIES.waiting_of_owner;
  const flood = Array.from({ length: count }, () => send("flood", large));
  const [small, first] = await Promise.all([
    service.pay({}, { key: service.other.text }),
    send("other", other),
  ]);
  assert.deepEqual([small.status, first], [201, 201]);
  const before = ended.indexOf("other");
  const statuses = await Promise.all(flood);
  const done = statuses.filter((status) => status === 201).length;
  // Some have their turns while the others arrive.
  assert.ok(done <= 1.5 * LARGE_BODIES.waiting_of_owner, `${done} of ${count} were parsed`);
  // 503: on a busy machine a turn can come too late.
  const refused = statuses.filter((status) => status === 429).length;
  const late = statuses.filter((status) => status === 503).length;
  assert.deepEqual([refused + late, late < refused], [count - done, true]);
  assert.ok(before <= 3, `${before} of the flood were parsed before that of another account`);
});

/** Requests whose body has fewer bytes than its headers say. */
const FRAMINGS: [name: string, header: string, body: string][] = [
  ["Content-Length", "Content-Length: 100", `{"a":`],
  ["chunks", "Transfer-Encoding: chunked", `5\r\n{"a":\r\n`],
];

serviceCase("a body over a socket that ends early or is refused", async (t, service) => {
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    createPaymentsFunction(service.deps),
  );
  try {
    for (const [name, header, body] of FRAMINGS) {
      await t.step(name, async () => {
        const { port } = server.addr as Deno.NetAddr;
        using connection = await Deno.connect({ hostname: "127.0.0.1", port });
        const head = [
          "POST /api-v1-payments/v1/payments HTTP/1.1",
          "Host: localhost",
          `Authorization: Bearer ${service.key.text}`,
          "Content-Type: application/json",
          header,
        ].join("\r\n");
        await connection.write(new TextEncoder().encode(`${head}\r\n\r\n${body}`));
        await connection.closeWrite();
        await new Response(connection.readable).text().catch(() => "");
        const line = service.logs.at(-1);
        assert.deepEqual([line?.status, line?.code], [400, "invalid_json"]);
      });
    }
    const narrow = await service.issueKey(service.key.environment_id, { scopes: ["ledger:read"] });
    const refused = [[413, LIMIT + 1, service.key], [403, SMALL_BODY_BYTES + 1, narrow]] as const;
    for (const [expected, bytes, { text }] of refused) {
      await t.step(`${bytes} bytes: ${expected}, and the client keeps its connection`, async () => {
        const { port } = server.addr as Deno.NetAddr;
        const { status, headers, body } = await fetch(`http://127.0.0.1:${port}${PAYMENTS}`, {
          method: "POST",
          headers: { Authorization: `Bearer ${text}` },
          body: new Blob([new Uint8Array(bytes)]),
        });
        await body?.cancel();
        assert.deepEqual([status, headers.get("Connection")], [expected, null]);
      });
    }
  } finally {
    await server.shutdown();
  }
});
