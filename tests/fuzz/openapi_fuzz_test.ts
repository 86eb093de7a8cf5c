/**
 * Every operation of docs/openapi.json with requests made from its schemas, valid and broken: never a
 * 5xx, and every answer as the document describes it (the check that every call of a test goes through,
 * tests/support/openapi_check.ts). `SEED` repeats a run, `RUNS` sets its length.
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import { serviceCase } from "../http/service_case.ts";
import type { TestService } from "../support/service.ts";
import { brokenText, type Known, valueOf } from "./schema_arbitrary.ts";

const SEED = Number(Deno.env.get("SEED") ?? Date.now() % 2 ** 31);
/** Requests of each operation. */
const RUNS = Number(Deno.env.get("RUNS") ?? 40);
const DOCUMENT = JSON.parse(
  await Deno.readTextFile(new URL("../../docs/openapi.json", import.meta.url)),
);
/** The service's own clock calls these, with a token. */
const INTERNAL = /\/internal\//;
/** Ids that are kept of each kind, for requests that are about something. */
const MAX_IDS = 30;

/** A port of loopback that nobody listens at. */
const NOWHERE = (() => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  listener.close();
  return `http://127.0.0.1:${listener.addr.port}`;
})();

/** Ids of what the fuzz has made so far, by prefix. */
type Pool = Map<string, string[]>;

serviceCase("every operation, fuzzed from the OpenAPI document", async (t, service) => {
  const pool: Pool = new Map();
  await fill(service, pool);
  let accepted = 0;
  let sent = 0;
  for (const [path, methods] of Object.entries<Record<string, unknown>>(DOCUMENT.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      if (INTERNAL.test(path) || !["get", "post", "put", "delete"].includes(method)) continue;
      await t.step(`${method.toUpperCase()} ${path}, seed ${SEED}`, async () => {
        const requests = requestsOf(path, operation, pool);
        await fc.assert(
          fc.asyncProperty(requests, async ({ path, query, body, key, headers }) => {
            const answer = await service.call(method.toUpperCase(), path + query, {
              ...(body !== undefined && { body }),
              ...(key !== null && { idempotency_key: key }),
              headers,
            });
            sent++;
            if (answer.status < 300) accepted++;
            assert.ok(answer.status < 500, answer.text);
            remember(service, pool, answer.text);
          }),
          { numRuns: RUNS, seed: SEED },
        );
      });
    }
  }
  await t.step("a good part of what was sent was accepted", () => {
    assert.ok(accepted > sent / 5, `${accepted} of ${sent}`);
  });
});

interface FuzzedRequest {
  path: string;
  query: string;
  body: string | undefined;
  key: string | null;
  headers: Record<string, string>;
}

/** Requests to an operation. */
// deno-lint-ignore no-explicit-any
function requestsOf(path: string, operation: any, pool: Pool): fc.Arbitrary<FuzzedRequest> {
  const known = knownTexts(pool);
  const schema = operation.requestBody?.content["application/json"].schema;
  const valid = schema ? valueOf(schema, DOCUMENT, known) : fc.constant({});
  const parameters: { name: string; in: string; schema: unknown }[] = (operation.parameters ?? [])
    // deno-lint-ignore no-explicit-any
    .map((named: any) => named.$ref ? DOCUMENT.components.parameters[lastOf(named.$ref)] : named);
  const query = fc.record(
    Object.fromEntries(
      parameters.filter((parameter) => parameter.in === "query").map(({ name, schema }) => [
        name,
        fc.oneof(
          { weight: 4, arbitrary: valueOf(schema, DOCUMENT, known, name).map(String) },
          fc.string({ unit: "grapheme-ascii", maxLength: 20 }),
        ),
      ]),
    ),
    { requiredKeys: [] },
  );
  return fc.record({
    id: idFor(path, pool),
    query: fc.oneof({ weight: 3, arbitrary: fc.constant({}) }, query),
    body: schema || operation.parameters
      ? fc.oneof(
        { weight: 3, arbitrary: valid.map((value) => JSON.stringify(value)) },
        { weight: 2, arbitrary: brokenText(valid) },
      )
      : fc.constant(undefined),
    key: fc.option(fc.constantFrom("fuzz-1", "fuzz-2", "x".repeat(255), "two words", "é"), {
      freq: 4,
    }),
    type: fc.constantFrom(...Array(9).fill("application/json"), "text/plain"),
  }).map(({ id, query, body, key, type }) => {
    const search = new URLSearchParams(query as Record<string, string>).toString();
    const has_body = schema !== undefined && body !== undefined;
    return {
      path: path.replace("{id}", id),
      query: search && `?${search}`,
      body: has_body ? body : undefined,
      // A header takes no other characters at all.
      key: key === "é" ? null : key,
      headers: has_body ? { "Content-Type": type } : {},
    };
  });
}

/** Texts that the schemas cannot describe. Nothing here leads anywhere. */
function knownTexts(pool: Pool): Known {
  const idOf = (prefix: string) =>
    fc.nat().map((n) => {
      const ids = pool.get(prefix) ?? [];
      return ids[n % ids.length] ?? `${prefix}_${"0".repeat(26)}`;
    });
  return {
    currency: fc.constantFrom("EUR", "usd", "USDC", "JPY", "XXX"),
    number: fc.constantFrom("4242 4242 4242 4242", "4000000000000002", "4000002500003155", "4111"),
    exp_year: fc.constantFrom(2034, 2034, 2020),
    cvc: fc.constantFrom("123", "1234", "12"),
    address: fc.constantFrom(
      "0x000000000000000000000000000000000000dEaD",
      "0x0000000000000000000000000000000000000BAD",
      "0x12",
    ),
    iban: fc.oneof(
      fc.constantFrom<unknown>("DE89370400440532013000", "GB82WEST12345698765432", "DE00"),
      fc.constant({ iban: "DE00000000000000000099" }),
    ),
    wallet: fc.constantFrom<unknown>("0x000000000000000000000000000000000000dEaD", {
      address: "0x0000000000000000000000000000000000000BAD",
      network: "base",
    }),
    url: fc.constantFrom(`${NOWHERE}/hook`, `${NOWHERE}/other`, "ftp://x", ""),
    endpoint_id: idOf("whe"),
    payment_id: idOf("pay"),
    event_id: idOf("evt"),
    transfer_id: idOf("tr"),
    transaction_id: idOf("txn"),
  };
}

/** An id for the path: mostly one of the right kind that is there. */
function idFor(path: string, pool: Pool): fc.Arbitrary<string> {
  const kind = ID_KINDS.find(([part]) => path.includes(part))?.[1] ?? "pay";
  return fc.record({
    n: fc.nat(),
    odd: fc.constantFrom(...Array(6).fill(null), "x", "pay_", "%00"),
  })
    .map(({ n, odd }) => {
      const ids = pool.get(kind) ?? [];
      return odd ?? ids[n % ids.length] ?? `${kind}_${"0".repeat(26)}`;
    });
}

const ID_KINDS: [part: string, kind: string][] = [
  ["/refunds/{id}", "re"],
  ["/transfers/{id}", "tr"],
  ["/webhook_endpoints/{id}", "whe"],
  ["/webhook_deliveries/{id}", "whd"],
  ["/events/{id}", "evt"],
  ["/api_keys/{id}", "key"],
];

/** Something of each kind, so that the first requests find something. */
async function fill(service: TestService, pool: Pool): Promise<void> {
  const url = `${NOWHERE}/first`;
  const made = [
    await service.call("POST", "/api-v1-payments/v1/webhook_endpoints", { body: { url } }),
    await service.make({ amount_minor: 1_000_000, outcome: "success" }),
    await service.make({ outcome: "refunded" }),
    await service.make({ outcome: "pending" }),
    await service.call("POST", "/api-v1-payments/v1/api_keys", { body: { name: "fuzz" } }),
    await service.call("POST", "/api-v1-payments/v1/transfers", {
      body: { amount: 5, currency: "EUR", destination: { iban: "GB82WEST12345698765432" } },
    }),
    await service.call("GET", "/api-v1-payments/v1/refunds"),
    await service.call("GET", "/api-v1-payments/v1/webhook_deliveries"),
  ];
  for (const { status, text } of made) {
    assert.ok(status < 300, text);
    remember(service, pool, text);
  }
}

/** Ids in an answer; the caller's own key is none to be revoked. */
function remember({ key }: TestService, pool: Pool, text: string): void {
  for (const [id, prefix] of text.matchAll(/\b([a-z]{2,4})_[0-9a-z]{26}\b/g)) {
    if (id === key.id) continue;
    const ids = pool.get(prefix!) ?? [];
    if (!ids.includes(id)) pool.set(prefix!, [...ids, id].slice(-MAX_IDS));
  }
}

function lastOf(ref: string): string {
  return ref.split("/").at(-1)!;
}
