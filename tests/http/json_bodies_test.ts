/**
 * Request bodies: every vector of refused JSON on one route and some on every mutating route, the
 * size limit to the byte, media types and encodings. Every refused body is a 4xx and stores nothing.
 */

import assert from "node:assert/strict";
import { createPaymentsFunction } from "../../shared/functions/payments_function.ts";
import type { TestResponse, TestService } from "../support/service/service.ts";
import { assertError } from "../support/http/error_envelope.ts";
import { type ListedRoute, mutatingRoutes, pathOf } from "../support/http/routes.ts";
import { PAYMENTS, serviceCase } from "../support/service/service_case.ts";
import { rowCounts } from "../support/database/payment_records.ts";
import { bytesOf, JSON_VECTORS } from "../support/core/vectors.ts";

/** The maximum size of a body in bytes (security design §2). */
const LIMIT = 65_536;

serviceCase("a body of invalid JSON", async (t, service) => {
  const before = await rowCounts(service);
  const refused = JSON_VECTORS.filter((vector) =>
    vector.expect === "refuse" && bytesOf(vector).length > 0
  );
  assert.ok(refused.length > 150);
  // All routes have the same reader, so some vectors show that a route uses it.
  const some = refused.filter((_, index) => index % 20 === 0);
  for (const [index, route] of mutatingRoutes().entries()) {
    const vectors = index === 0 ? refused : some;
    await t.step(`${route[0]} ${route[1]}: ${vectors.length} vectors are 400`, async () => {
      for (const vector of vectors) {
        const response = await service.call(route[0], pathOf(route), {
          body: bytesOf(vector),
          idempotency_key: crypto.randomUUID(),
        });
        assertError(response, "invalid_json", vector.param || null);
      }
    });
  }
  await t.step("none of them stores anything", async () => {
    assert.deepEqual(await rowCounts(service), before);
  });
});

serviceCase("a body of valid JSON", async (t, service) => {
  const path = `${PAYMENTS}/pay_${"0".repeat(26)}/cancel`;
  for (const vector of JSON_VECTORS.filter(({ expect }) => expect === "accept")) {
    await t.step(`${vector.name} is parsed`, async () => {
      const response = await service.call("POST", path, { body: bytesOf(vector) });
      const is_object = /^\s*\{/.test(vector.text ?? "");
      if (!is_object) return assertError(response, "invalid_json", null);
      // The body is parsed. Then the payment does not exist, or a field is refused, such as a long
      // number.
      assert.ok(
        ["not_found", "invalid_parameter"].includes(response.body.error.code),
        response.text,
      );
    });
  }
});

/** Sends a body as a stream, which has no Content-Length. */
async function stream(
  service: TestService,
  body: ReadableStream<Uint8Array>,
): Promise<TestResponse> {
  const response = await createPaymentsFunction(service.deps)(
    new Request(`http://localhost${PAYMENTS}`, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${service.key.text}`,
        "Content-Type": "application/json",
      },
      body,
    }),
  );
  const { status, headers } = response;
  const text = await response.text();
  return { status, headers, text, body: JSON.parse(text) };
}

/** Splits the bytes into chunks of a size. */
function inChunks(bytes: Uint8Array, size: number): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) controller.close();
      else controller.enqueue(bytes.slice(at, at += size));
    },
  });
}

/** A valid create, padded with spaces to a length in bytes. */
function padded(length: number): Uint8Array {
  return new TextEncoder().encode(`{"amount":1,"currency":"EUR"}`.padEnd(length));
}

const LENGTHS: [length: number, status: number][] = [
  [LIMIT - 1, 201],
  [LIMIT, 201],
  [LIMIT + 1, 413],
  [2 * LIMIT, 413],
];

serviceCase("the size of a body", async (t, service) => {
  for (const [length, status] of LENGTHS) {
    for (const chunk of [null, 1 << 20, LIMIT, 4_096, 1_000]) {
      const how = chunk === null ? "in one piece" : `streamed in chunks of ${chunk}`;
      await t.step(`${length} bytes ${how}: ${status}`, async () => {
        const response = chunk === null
          ? await service.call("POST", PAYMENTS, { body: padded(length) })
          : await stream(service, inChunks(padded(length), chunk));
        assert.equal(response.status, status, response.text.slice(0, 200));
        if (status === 413) assertError(response, "payload_too_large", null);
      });
    }
  }
  await t.step("reading of an endless body stops at the limit", async () => {
    let given = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        given += 4_096;
        controller.enqueue(new Uint8Array(4_096).fill(0x20));
      },
    });
    const response = await stream(service, body);
    assertError(response, "payload_too_large", null);
    assert.ok(given <= 2 * LIMIT, `${given} bytes were taken`);
  });
  for (const length of [LIMIT + 1, 1e9, Number.MAX_SAFE_INTEGER]) {
    await t.step(`a Content-Length of ${length} is refused before the body is read`, async () => {
      const headers = { "Content-Length": String(length) };
      assertError(await service.pay({}, { headers }), "payload_too_large", null);
    });
  }
  for (const announced of ["1", "0", "", " ", "-1", "x"]) {
    await t.step(`a Content-Length of "${announced}" does not raise the limit`, async () => {
      const headers = { "Content-Length": announced };
      const response = await service.call("POST", PAYMENTS, { body: padded(LIMIT + 1), headers });
      assertError(response, "payload_too_large", null);
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
  ["Content-Type", "multipart/form-data; boundary=x", false],
  ["Content-Type", "text/json", false],
  ["Content-Type", "text/plain", false],
  ["Content-Type", "*/*", false],
  ["Content-Type", "", false],
  ["Content-Encoding", "identity", true],
  ["Content-Encoding", "Identity", true],
  ["Content-Encoding", "gzip", false],
  ["Content-Encoding", "br", false],
  ["Content-Encoding", "deflate", false],
  ["Content-Encoding", "identity, gzip", false],
  ["Content-Encoding", "gzip, identity", false],
];

serviceCase("the media type of a body", async (t, service) => {
  const body = { amount: 1, currency: "EUR" };
  for (const [header, value, taken] of MEDIA) {
    await t.step(`${header}: ${value} is ${taken ? "accepted" : "refused"}`, async () => {
      const response = await service.call("POST", PAYMENTS, { body, headers: { [header]: value } });
      if (taken) assert.equal(response.status, 201, response.text);
      else assertError(response, "unsupported_media_type", null);
    });
  }
  await t.step("an absent body needs no media type", async () => {
    for (const value of ["text/plain", ""]) {
      const headers = { "Content-Type": value };
      assert.equal((await service.call("POST", "/api-v1-sandbox/reset", { headers })).status, 200);
    }
  });
});

const NOT_OBJECTS = ["null", "true", "1", '"{}"', "[]", "[{}]", '[{"amount":1}]'];

serviceCase("a body that is not an object", async (t, service) => {
  for (const route of mutatingRoutes() as ListedRoute[]) {
    await t.step(`${route[0]} ${route[1]} refuses each kind with 400`, async () => {
      for (const body of NOT_OBJECTS) {
        assertError(await service.call(route[0], pathOf(route), { body }), "invalid_json", null);
      }
    });
  }
});
