/**
 * Every reader of untrusted input takes linear time.
 *
 * Each reader gets generated hostile texts (support/hostile_text.ts) of growing length. One that takes
 * noticeable time is compared with a shorter text of the same shape (growth.ts).
 */

import assert from "node:assert/strict";
import { RESPONSE_BYTES_MAX } from "../../shared/delivery/http_response.ts";
import { createDependencies } from "../../shared/functions/dependencies.ts";
import { createPaymentsFunction } from "../../shared/functions/payments_function.ts";
import { findSlowText, type Reader } from "../support/core/growth.ts";
import { HEAD_BYTES, KEY, type NamedReader, READERS, requested } from "../support/core/readers.ts";

/** HOSTILE_SEED selects other texts. */
const SEED = Number(Deno.env.get("HOSTILE_SEED") ?? 1);

for (const reader of READERS) {
  Deno.test(`${reader.name} takes linear time`, async () => {
    assert.equal(await findSlowText(reader, SEED), null);
  });
}

Deno.test("createPaymentsFunction() takes linear time for addresses and headers", async () => {
  const dependencies = createDependencies({
    // No request has a valid key, so no request uses the database.
    database_url: "postgres://nobody@127.0.0.1:1/none",
    base_url: "http://127.0.0.1:1/functions/v1",
    allowed_origins: ["http://localhost:*", "https://console.example.com"],
    log: () => {},
  });
  const serve = createPaymentsFunction(dependencies);
  const places: [name: string, samples: string[], makeRequest: (text: string) => Request][] = [
    [
      "path",
      ["v1/payments/pay_01arz3/refund?limit=1", "v1//%2e%2e/a;b"],
      (text) => requested(text),
    ],
    [
      "Authorization",
      [`Bearer ${KEY}x`],
      (text) => requested("v1/payments", "Authorization", text),
    ],
    ["Origin", ["http://localhost:3000"], (text) => requested("v1/payments", "Origin", text)],
    [
      "X-Forwarded-For",
      ["203.0.113.9, 198.51.100.7"],
      (text) => requested("v1/payments", "X-Forwarded-For", text),
    ],
    [
      "Accept-Encoding",
      ["gzip;q=0.5, br"],
      (text) => requested("openapi.json", "Accept-Encoding", text),
    ],
    ["If-None-Match", ['"a", W/"b"'], (text) => requested("openapi.json", "If-None-Match", text)],
  ];
  try {
    for (const [name, samples, makeRequest] of places) {
      const reader: Reader = {
        samples,
        longest: HEAD_BYTES,
        prepare: makeRequest,
        read: async (request: Request) => await (await serve(request)).text(),
      };
      const slow = await findSlowText(reader, SEED);
      assert.equal(slow, null, `${name}: ${slow}`);
    }
  } finally {
    await dependencies.close();
  }
});

/** Readers that are slow on purpose. The measurement must find them. */
const CARELESS: NamedReader[] = [
  {
    name: "an expression with adjacent repetitions",
    samples: ["a: b c \t"],
    longest: RESPONSE_BYTES_MAX,
    read: (text: string) => /^([a-z]+):[ \t]*(.*?)[ \t]*$/i.exec(text),
  },
  {
    name: "a loop that restarts at each character",
    samples: ["4242 4242"],
    longest: RESPONSE_BYTES_MAX,
    read(text: string) {
      let sum = 0;
      for (let from = 0; from < text.length; from++) {
        for (let at = from; text.charCodeAt(at) >= 48; at++) sum += at;
      }
      return sum;
    },
  },
];
for (const reader of CARELESS) {
  Deno.test(`the measurement finds ${reader.name}`, async () => {
    assert.notEqual(await findSlowText(reader, SEED), null);
  });
}
