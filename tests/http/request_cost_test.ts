/**
 * The cost of requests. The statements of each are counted at the driver: the round trips to the
 * database are most of the cost of a request. The most expensive requests of each kind, at the
 * limits of their size, take the processor from no other (docs/security.md, "Ways in"). The unit is
 * the processor time of a small create in the same run, about 1 ms.
 */

import assert from "node:assert/strict";
import { generateApiKey } from "../../shared/core/api_key.ts";
import { MAX_URL } from "../../shared/schema/limits.ts";
import { launchServer } from "../support/service/server_process.ts";
import { startService } from "../support/service/service.ts";
import { APPROVED, PAYMENTS, SANDBOX, serviceCase } from "../support/service/service_case.ts";

/** Most processor time of a request, in small creates. */
const MOST = 10;
/** Most of a request that is refused for its key, or unread for the length of its URL. */
const MOST_REFUSED = 2;
const ROUNDS = 3;
/** Requests of a round. */
const REQUESTS = 5;
const BODY = 65_000;
/** The most characters of a URL that Deno's server takes, and a header that it takes. */
const HEAD = 64_000;

type Sent = { path?: string; body?: string; headers?: Record<string, string> };

/** A create with more members. */
function create(members: string): Sent {
  return { body: `{"amount":1000,"currency":"EUR",${members}}` };
}

function repeated(count: number, textOf: (i: number) => string, separator = ","): string {
  return Array.from({ length: count }, (_, i) => textOf(i)).join(separator);
}

function metadata(valueOf: (i: number) => string): Sent {
  return create(`"metadata":{${repeated(50, (i) => `"k${i}":${JSON.stringify(valueOf(i))}`)}}`);
}

/** Different characters, beginning with a code point, in at most so many bytes of UTF-8. */
function characters(from: number, bytes: number): string {
  let text = "";
  for (let code = from; bytes > 3; code++) {
    const character = String.fromCodePoint(code);
    if (!character.isWellFormed()) continue;
    text += character;
    bytes -= new TextEncoder().encode(character).length;
  }
  return text;
}

const ROWS: [name: string, Sent][] = [
  ["7 000 unknown names", create(repeated(7_000, (i) => `"${(i + 12_960).toString(36)}":1`))],
  ["a name of 64 kB", create(`"${"1 ".repeat(BODY / 2)}":1`)],
  ["a name of combining marks", create(`"${"a\u0301".repeat(BODY / 3)}":1`)],
  ["metadata of 50 × 500 letters", metadata(() => "v".repeat(500))],
  ["metadata of 50 × 500 digits", metadata(() => "1 ".repeat(250))],
  ["metadata of 50 × 500 letters of two bytes", metadata(() => "é".repeat(500))],
  ["metadata of 50 × 500 percent signs", metadata(() => "%31".repeat(166))],
  ["metadata of 50 × 500 combining marks", metadata(() => "\u0301".repeat(500))],
  ["metadata of 50 × 420 digits of other scripts", metadata(() => "४½٤".repeat(140))],
  ["metadata of 50 × 13 UUIDs", metadata(() => `${crypto.randomUUID()} `.repeat(13))],
  ["metadata of 6 000 decimals", create(`"metadata":{"a":[${repeated(16_000, () => "1.5")}]}`)],
  [
    "metadata of long numbers",
    create(`"metadata":{${repeated(490, (i) => `"k${i}":${"1".repeat(16)}.${"1".repeat(20)}`)}}`),
  ],
  ["20 000 empty objects", create(`"metadata":{"a":[${repeated(20_000, () => "{}")}]}`)],
  [
    "deep lists",
    create(`"metadata":{"a":[${repeated(2_400, () => "[[[[[[[[[[[[1]]]]]]]]]]]]")}]}`),
  ],
  ["a description of digits", create(`"description":"${"4-".repeat(BODY / 2)}"`)],
  ["a description of long groups", create(`"description":"${"4a".repeat(BODY / 2)}"`)],
  ["a description of escapes", create(`"description":"${"\\u0031".repeat(BODY / 6)}"`)],
  ["a description of encoded digits", create(`"description":"${"%2531".repeat(BODY / 5)}"`)],
  ["a description of 18 000 characters", create(`"description":"1${characters(0x80, BODY)}"`)],
  [
    "a description of 16 000 characters of four bytes",
    create(
      `"description":"1${characters(0x10000, BODY)}"`,
    ),
  ],
  ["an e-mail address of 64 kB", create(`"customer":{"email":"${"a.".repeat(BODY / 2)}"}`)],
  ["lines before a fault", { body: `{${"\n".repeat(BODY)}x` }],
  ["spaces", { body: `{"amount":1000,"currency":"EUR"}`.padEnd(BODY) }],
  ["no JSON", { body: "x".repeat(BODY) }],
  ["8 000 query parameters", { path: `?${repeated(8_000, (i) => `a${i}=1`, "&")}` }],
  ["a query of digits", { path: `?search=${"4".repeat(HEAD)}` }],
  ["a query of encoded characters", { path: `?search=${"%E2%82%AC".repeat(HEAD / 9)}` }],
  ["a query of the most characters", { path: `?search=${"4-".repeat(4_000)}` }],
  ["a path of 32 000 steps", { path: "/a".repeat(HEAD / 2) }],
  ["a path of the most characters", { path: "/a".repeat(4_000) }],
  ["an idempotency key of 64 kB", { headers: { "Idempotency-Key": "4".repeat(HEAD) } }],
  ["a fault of 64 kB", { headers: { "Sandbox-Fault": "delay ".repeat(HEAD / 6) } }],
  ["32 000 addresses", { headers: { "X-Forwarded-For": "1,".repeat(HEAD / 2) } }],
  ["a place in a trace of 64 kB", { headers: { traceparent: "00-".repeat(HEAD / 3) } }],
  ["a media type of 64 kB", { body: "{}", headers: { "Content-Type": "a ".repeat(HEAD / 2) } }],
  ["90 headers", {
    headers: Object.fromEntries(Array.from({ length: 90 }, (_, i) => [`x-${i}`, "a".repeat(700)])),
  }],
];

/** The processor time that a process has used, in milliseconds. */
function processorTime(pid: number): number {
  let total = 0;
  for (const { name } of Deno.readDirSync(`/proc/${pid}/task`)) {
    total += Number(Deno.readTextFileSync(`/proc/${pid}/task/${name}/schedstat`).split(" ")[0]);
  }
  return total / 1e6;
}

Deno.test({
  name: "no request costs much more than a small create",
  ignore: Deno.build.os !== "linux",
  async fn(t) {
    await using service = await startService();
    const { key: { text: key }, database } = service;
    const options = { lease_ms: 30_000, request_log: true };
    const server = await launchServer(database.functions_url, options);
    const send = async (text: string, { path = "", body, headers }: Sent) => {
      const response = await fetch(server.base_url + PAYMENTS + path, {
        method: path === "" ? "POST" : "GET",
        headers: {
          Authorization: `Bearer ${text}`,
          "Content-Type": "application/json",
          ...headers,
        },
        ...(path === "" && { body: body ?? `{"amount":1000,"currency":"EUR"}` }),
      });
      await response.body?.cancel();
      return response.status;
    };
    const costOf = async (text: string, sent: Sent): Promise<[number, number]> => {
      let status = 0;
      for (let i = 0; i < 5; i++) status = await send(text, sent);
      // The least of some rounds, because other processes on the machine make a round dearer.
      const costs: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const before = processorTime(server.pid);
        for (let i = 0; i < REQUESTS; i++) await send(text, sent);
        costs.push((processorTime(server.pid) - before) / REQUESTS);
      }
      return [Math.min(...costs), status];
    };
    try {
      for (let i = 0; i < 200; i++) await send(key, {});
      const [unit] = await costOf(key, {});
      for (const [name, sent] of ROWS) {
        await t.step(name, async () => {
          const [cost, status] = await costOf(key, sent);
          assert.ok([200, 201, 400, 404, 415].includes(status), String(status));
          const is_long = (sent.path?.length ?? 0) > MAX_URL;
          assert.ok(
            cost <= (is_long ? MOST_REFUSED : MOST) * unit,
            `${status}: ${cost} ms, a small create ${unit} ms`,
          );
          const [refused, code] = await costOf(generateApiKey("test"), sent);
          assert.equal(code, 401);
          assert.ok(refused <= MOST_REFUSED * unit, `401: ${refused} ms`);
        });
      }
    } finally {
      await server.kill();
    }
  },
});

const SAVE = {
  ...{ card: { token: "pm_card_visa" }, save: "off_session" },
  customer: { id: "u1", email: "ada@example.com" },
};

serviceCase("round trips to the database by request", async (t, service) => {
  const V1 = "/api-v1-payments/v1";
  const body = { amount: 1, currency: "EUR" };
  const paid = `${PAYMENTS}/${(await service.pay(APPROVED.card)).body.id}`;
  const pending = `${PAYMENTS}/${(await service.pay()).body.id}`;
  const instrument = (await service.pay(SAVE)).body.instrument_id;
  const refund = (await service.post(`${paid}/refund`, { amount: 1 })).id;
  const advance = paid.replace(PAYMENTS, `${SANDBOX}/payments`) + "/advance";
  const cases: [name: string, method: string, path: string, body: unknown, statements: number][] = [
    ["create", "POST", PAYMENTS, body, 1],
    ["sandbox create", "POST", `${SANDBOX}/payments`, body, 1],
    ["get", "GET", paid, undefined, 1],
    ["list", "GET", PAYMENTS, undefined, 1],
    ["refund", "POST", `${paid}/refund`, { amount: 1 }, 2],
    ["advance", "POST", advance, { to: "chargeback" }, 2],
    ["cancel", "POST", `${pending}/cancel`, undefined, 2],
    ["get refund", "GET", `${V1}/refunds/${refund}`, undefined, 1],
    ["list refunds", "GET", `${paid}/refunds`, undefined, 1],
    ["ledger entries", "GET", `${V1}/ledger_entries`, undefined, 1],
    ["refused body", "POST", PAYMENTS, {}, 1],
    ["unknown route", "GET", `${V1}/nothing`, undefined, 1],
    ["save", "POST", PAYMENTS, { ...body, ...SAVE }, 1],
    ["use", "POST", PAYMENTS, { ...body, instrument, off_session: true }, 2],
    ["list instruments", "GET", `${V1}/instruments`, undefined, 1],
    ["get instrument", "GET", `${V1}/instruments/${instrument}`, undefined, 1],
    ["end of an instrument", "DELETE", `${V1}/instruments/${instrument}`, undefined, 1],
    ["reset", "POST", `${SANDBOX}/reset`, undefined, 1],
  ];
  for (const [name, method, path, body, statements] of cases) {
    await t.step(`${name} takes ${statements}`, async () => {
      service.forgetStatements();
      await service.call(method, path, { body, idempotency_key: crypto.randomUUID() });
      service.assertStatements(statements);
    });
  }
  await t.step("a create without an instrument reads none, and shows so in 60 bytes", async () => {
    const locked = Promise.withResolvers<void>();
    const done = Promise.withResolvers<void>();
    const lock = service.sql.begin(async (sql) => {
      await sql`lock table pay.instruments in access exclusive mode`;
      locked.resolve();
      await done.promise;
    });
    await locked.promise;
    try {
      const { status, body, text } = await service.pay(APPROVED.card);
      assert.equal(status, 201, text);
      const { instrument_id: _, off_session: __, ...others } = body;
      assert.ok(text.length - JSON.stringify(others).length <= 60, text);
    } finally {
      done.resolve();
      await lock;
    }
  });
  await t.step("a replay takes 1", async () => {
    await service.pay({}, { idempotency_key: "again" });
    service.forgetStatements();
    const replay = await service.pay({}, { idempotency_key: "again" });
    assert.equal(replay.headers.get("Idempotent-Replayed"), "true");
    service.assertStatements(1);
  });
});
