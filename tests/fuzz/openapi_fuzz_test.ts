/**
 * Requests to every operation of docs/openapi.json, made from its schemas: valid, mixed and broken.
 * No response is a 5xx, and every response matches the document
 * (tests/support/service/openapi_check.ts checks every call of a test). Each operation accepts at
 * least one request. `SEED` chooses other requests, `RUNS` sets their number.
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import { serviceCase } from "../support/service/service_case.ts";
import { RELAY_TOKEN, type TestService } from "../support/service/service.ts";
import { brokenText, type Known, valueOf } from "../support/fuzz/schema_arbitrary.ts";
import { soundBody } from "../support/fuzz/sound_body.ts";
import { freePort } from "../support/common/free_port.ts";

const SEED = Number(Deno.env.get("SEED") ?? 1);
/** The number of requests to each operation. */
const RUNS = Number(Deno.env.get("RUNS") ?? 25);
const DOCUMENT = JSON.parse(
  await Deno.readTextFile(new URL("../../docs/openapi.json", import.meta.url)),
);
/** The maximum number of rounds for an operation until it accepts a request. */
const ROUNDS = 10;
/** Callers of these routes need the relay token. */
const INTERNAL = /\/internal\//;
/** The number of ids to remember of each kind, for requests on existing resources. */
const MAX_IDS = 30;

const SECURE_CARD = { number: "4000 0025 0000 3155", exp_month: 12, exp_year: 2034, cvc: "123" };
const DISPUTED_CARD = { ...SECURE_CARD, number: "4000 0000 0000 0259" };
const SAVED = {
  ...{ card: { token: "pm_card_visa" }, save: "off_session" },
  customer: { id: "c1", email: "c@example.com" },
};
/** An idempotency key that a request has used. */
const KNOWN_KEY = "known";

/** A port of loopback without a listener. */
const NOWHERE = `http://127.0.0.1:${freePort()}`;

/** The ids of the resources that the test has created so far, by prefix. */
type Pool = Map<string, string[]>;

serviceCase("docs/openapi.json describes every response to fuzzed requests", async (t, service) => {
  const seeded = await service.call("POST", "/api-v1-sandbox/sandboxes", {
    body: { seed: "fuzz" },
  });
  const pool: Pool = new Map();
  // A read leaves the resources to the next operation.
  let is_full = false;
  for (const [path, methods] of Object.entries<Record<string, unknown>>(DOCUMENT.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      if (!["get", "post", "put", "delete"].includes(method)) continue;
      await t.step(`${method.toUpperCase()} ${path}, seed ${SEED}`, async () => {
        let accepted = 0;
        // Only a seeded sandbox has a transcript.
        const caller = path.endsWith("/transcript") ? seeded.body.test_key : null;
        const requests = requestsOf(path, operation, pool);
        const property = fc.asyncProperty(
          requests,
          async ({ path, query, body, key, token, headers }) => {
            const response = await service.call(method.toUpperCase(), path + query, {
              ...(body !== undefined && { body }),
              ...(key !== null && { idempotency_key: key }),
              ...((token ?? caller) !== null && { key: token ?? caller }),
              headers,
            });
            if (response.status < 300) accepted++;
            assert.ok(response.status < 500, response.text);
            // A declared fault would hit the next requests.
            if (path.endsWith("/faults") && response.status === 201) {
              await service.call("DELETE", `/api-v1-sandbox/faults/${response.body.id}`);
            }
            remember(service, pool, response.text);
          },
        );
        for (let round = 0; accepted === 0 && round < ROUNDS; round++) {
          if (!is_full) {
            pool.clear();
            await fill(service, pool);
          }
          await fc.assert(property, { numRuns: RUNS, seed: SEED + round });
          is_full = method === "get" && accepted > 0;
        }
        assert.ok(accepted > 0, "nothing was accepted");
      });
    }
  }
}, { request_log: true });

interface FuzzedRequest {
  path: string;
  query: string;
  body: string | undefined;
  key: string | null;
  /** The token in place of the API key; null: the API key. */
  token: string | null;
  headers: Record<string, string>;
}

/** Requests to an operation. */
// deno-lint-ignore no-explicit-any
function requestsOf(path: string, operation: any, pool: Pool): fc.Arbitrary<FuzzedRequest> {
  const known = knownTexts(pool);
  const schema = operation.requestBody?.content["application/json"].schema;
  const mixed = schema ? valueOf(schema, DOCUMENT, known) : fc.constant({});
  const sound = soundBody(operation.operationId, mixed);
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
        { weight: 3, arbitrary: sound.map((value) => JSON.stringify(value)) },
        { weight: 1, arbitrary: mixed.map((value) => JSON.stringify(value)) },
        { weight: 2, arbitrary: brokenText(sound) },
      )
      : fc.constant(undefined),
    // Mostly a new key, because a used one leads to a replay or a conflict.
    key: fc.oneof(
      { weight: 6, arbitrary: fc.uuid() },
      { weight: 2, arbitrary: fc.constant(null) },
      fc.constantFrom("fuzz-1", "fuzz-2", "x".repeat(255), "two words", "é"),
    ),
    token: INTERNAL.test(path)
      ? fc.constantFrom(...Array(4).fill(RELAY_TOKEN), null, "", "x")
      : fc.constant(null),
    type: fc.constantFrom(...Array(9).fill("application/json"), "text/plain"),
  }).map(({ id, query, body, key, token, type }) => {
    const search = new URLSearchParams(query as Record<string, string>).toString();
    const has_body = schema !== undefined && body !== undefined;
    return {
      path: path.replace("{id}", id).replace("{key}", id === "x" ? "unknown" : KNOWN_KEY),
      query: search && `?${search}`,
      body: has_body ? body : undefined,
      // A header cannot contain other characters.
      key: key === "é" ? null : key,
      token,
      headers: has_body ? { "Content-Type": type } : {},
    };
  });
}

/** Texts that the schemas cannot describe. No address here has a listener. */
function knownTexts(pool: Pool): Known {
  const idOf = (prefix: string) =>
    fc.nat().map((n) => {
      const ids = pool.get(prefix) ?? [];
      return ids[n % ids.length] ?? `${prefix}_${"0".repeat(26)}`;
    });
  return {
    currency: fc.constantFrom("EUR", "usd", "USDC", "JPY", "XXX"),
    number: fc.constantFrom(
      ...["4242 4242 4242 4242", "4000000000000002", "4000002500003155"],
      ...["4100000000000019", "4111"],
    ),
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
    instrument: idOf("ins"),
    instrument_id: idOf("ins"),
    checkout_id: idOf("chk"),
    event_id: idOf("evt"),
    transfer_id: idOf("tr"),
    transaction_id: idOf("txn"),
  };
}

/** An id for the path, mostly an existing one of the right kind. */
function idFor(path: string, pool: Pool): fc.Arbitrary<string> {
  const kind = ID_KINDS.find(([part]) => path.includes(part))?.[1] ?? "pay";
  return fc.record({
    n: fc.nat(),
    odd: fc.constantFrom(...Array(9).fill(null), "x", "pay_", "%00"),
  })
    .map(({ n, odd }) => {
      const ids = pool.get(kind) ?? [];
      return odd ?? ids[n % ids.length] ?? `${kind}_${"0".repeat(26)}`;
    });
}

const ID_KINDS: [part: string, kind: string][] = [
  ["/refunds/{id}", "re"],
  ["/instruments/{id}", "ins"],
  ["/checkouts/{id}", "chk"],
  ["/transfers/{id}", "tr"],
  ["/webhook_endpoints/{id}", "whe"],
  ["/webhook_deliveries/{id}", "whd"],
  ["/events/{id}", "evt"],
  ["/api_keys/{id}", "key"],
  ["/disputes/{id}", "dp"],
  ["/sandboxes/{id}", "env"],
  ["/faults/{id}", "flt"],
  ["/requests/{id}", "req"],
];

/** Resets the sandbox and creates a resource of each kind, so that requests find something. */
async function fill(service: TestService, pool: Pool): Promise<void> {
  const V1 = "/api-v1-payments/v1";
  const post = (path: string, body?: unknown) => service.call("POST", path, { body });
  const made = [
    await post("/api-v1-sandbox/reset", { webhook_endpoints: true }),
    await post(`${V1}/webhook_endpoints`, { delivery: "inbox" }),
    await post(`${V1}/webhook_endpoints`, { url: `${NOWHERE}/first` }),
    await post(`${V1}/webhook_endpoints`, { url: `${NOWHERE}/second` }),
    await service.make({ amount_minor: 1_000_000, outcome: "success" }),
    await service.make({ outcome: "refunded" }),
    await service.make({ outcome: "pending" }, { idempotency_key: KNOWN_KEY }),
    ...await Promise.all(Array.from({ length: 6 }, () => service.pay({ card: DISPUTED_CARD }))),
    await post("/api-v1-sandbox/sandboxes", { name: "fuzz" }),
    // It waits for an event that no request makes.
    await post("/api-v1-sandbox/faults", {
      on: "delivery",
      fault: "duplicate",
      where: { event_type: "webhook_endpoint.disabled" },
    }),
    ...await Promise.all(Array.from({ length: 3 }, () => service.make({ outcome: "pending" }))),
    ...await Promise.all(
      Array.from({ length: 6 }, () => service.make({ outcome: "success", capture: "manual" })),
    ),
    ...await Promise.all(Array.from({ length: 6 }, () => service.pay({ card: SECURE_CARD }))),
    ...await Promise.all(Array.from({ length: 3 }, () => service.pay(SAVED))),
    ...await Promise.all(
      Array.from({ length: 6 }, () => post(`${V1}/checkouts`, { amount: 5, currency: "EUR" })),
    ),
    ...await Promise.all(
      ["instant", "manual", "manual"].map((settlement) =>
        post(`${V1}/transfers`, {
          amount: 5,
          currency: "EUR",
          settlement,
          destination: { iban: "GB82WEST12345698765432" },
        })
      ),
    ),
    await service.call("GET", `${V1}/refunds`),
    await service.call("GET", `${V1}/webhook_deliveries`),
    await service.call("GET", `${V1}/events`),
    await service.call("GET", `${V1}/disputes`),
    await service.call("GET", "/api-v1-sandbox/requests"),
  ];
  for (const { status, text } of made) {
    assert.ok(status < 300, text);
    remember(service, pool, text);
  }
  // Earlier requests have revoked most keys, and a sandbox has at most 100 others.
  const { body } = await service.call("GET", `${V1}/api_keys?limit=100`);
  const keys = body.data.filter((key: { id: string; revoked_at: string | null }) =>
    key.id !== service.key.id && key.revoked_at === null
  );
  if (keys.length === 0) keys.push((await post(`${V1}/api_keys`, { name: "fuzz" })).body);
  remember(service, pool, JSON.stringify(keys));
}

/** Stores the ids of a response, except the caller's own key, which no request may revoke. */
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
