/**
 * Logs and stored data: a log line has the fields of its allow-list and no others. Confidential
 * values of a request appear in no log, and tables contain only those that the service stores.
 */

import assert from "node:assert/strict";
import { generateApiKey } from "../../shared/core/api_key.ts";
import { ApiError, tryAgain } from "../../shared/core/errors.ts";
import { failedPoll } from "../../shared/http/log_line.ts";
import type { CallOptions, TestService } from "../support/service/service.ts";
import { mutatingRoutes, pathOf, ROUTES } from "../support/http/routes.ts";
import { paymentIn, PAYMENTS, serviceCase } from "../support/service/service_case.ts";
import { dumpTables } from "../support/database/table_dump.ts";

/** Confidential values of a merchant's requests. The test searches for each of them. */
const CANARY = {
  // The first is a valid number that is not a test card, the second is a test card.
  card: "4539578763621486",
  test_card: "4242424242424242",
  cvc: "7351",
  iban: "NL91ABNA0417164300",
  email: "canary.person@mail.example",
  name: "Canary Person",
  idempotency_key: "canary-idempotency-key",
  description: "canary description",
  url: "https://canary.example/hook",
};

const CARD = { number: CANARY.test_card, exp_month: 12, exp_year: 2034, cvc: CANARY.cvc };
// American Express has a CVC of four digits, which occurs in other numbers less often than three.
const AMEX = { ...CARD, number: "378282246310005" };
const PERSON = { email: CANARY.email, name: CANARY.name };
const GOOD = { amount: 1000, currency: "EUR", customer: PERSON, description: CANARY.description };

/** Bodies with canaries. Some are accepted, others are refused. */
const BODIES: unknown[] = [
  { ...GOOD, card: AMEX },
  { ...GOOD, card: CARD },
  { ...GOOD, card: { ...CARD, number: CANARY.card } },
  { ...GOOD, card: { ...AMEX, exp_year: 2001 } },
  { ...GOOD, iban: CANARY.iban },
  { ...GOOD, iban: { iban: CANARY.iban, holder_name: CANARY.name } },
  { ...GOOD, iban: `${CANARY.iban}0` },
  { ...GOOD, note: CANARY.card },
  { ...GOOD, [CANARY.card]: CANARY.cvc },
  { ...GOOD, outcome: CANARY.email },
  { to: CANARY.email },
  { url: CANARY.url, metadata: { note: CANARY.description } },
  { endpoint_id: CANARY.email, event: CANARY.iban, payment_id: CANARY.card },
  `{"a":"${CANARY.card}","a":"${CANARY.iban}"}`,
  `{"${CANARY.card}":{"${CANARY.email}":x}}`,
  CANARY.card,
];

function newIdempotencyKey(): string {
  return `${CANARY.idempotency_key}-${crypto.randomUUID()}`;
}

/** A request of every kind that the edge refuses. */
function refusals(service: TestService, key: string): CallOptions[] {
  return [
    { key, headers: { "Idempotency-Key": `${newIdempotencyKey()} ${CANARY.card}` } },
    { key, headers: { "Content-Type": `text/plain; ${CANARY.email}` } },
    { key, headers: { Origin: `https://${CANARY.card}.example` } },
    {
      key,
      headers: { "Request-Id": CANARY.card, "User-Agent": CANARY.email, Referer: CANARY.url },
    },
    {
      key,
      headers: { Cookie: CANARY.card, "X-Client-Info": CANARY.card, traceparent: CANARY.card },
    },
    { key, headers: { "X-Forwarded-For": CANARY.card, "X-Request-Id": CANARY.card } },
    { key: `${key}${CANARY.card}` },
    { key: generateApiKey("test") },
    { key: service.live.text },
    { key: null, headers: { Authorization: `Basic ${CANARY.card}` } },
  ];
}

/**
 * Sends the canaries on every route: in every body, in every kind of refusal, in path and query.
 */
async function sendEverywhere(service: TestService, key: string): Promise<void> {
  const { id } = await paymentIn(service, "completed");
  for (const route of mutatingRoutes().filter(([, path]) => !path.endsWith("/reset"))) {
    for (const body of BODIES) {
      const idempotency_key = newIdempotencyKey();
      await service.call(route[0], pathOf(route, id), { key, idempotency_key, body });
    }
    for (const options of refusals(service, key)) {
      await service.call(route[0], pathOf(route, id), { ...options, body: BODIES[0] });
    }
  }
  for (const route of ROUTES.filter(([, path]) => !path.endsWith("/reset"))) {
    for (const text of Object.values(CANARY).map(encodeURIComponent)) {
      await service.call(route[0], `${pathOf(route, text)}?${text}=${text}&reference=${text}`, {
        key,
      });
    }
  }
  for (const method of ["GET", "POST", CANARY.card, key.replaceAll("_", "-")]) {
    await service.call(method, `/api-v1-payments/v1/${CANARY.card}`, { key });
    await service.call(method, `${PAYMENTS}/${CANARY.iban}/${CANARY.cvc}`, { key });
  }
}

const FIELDS = ["time", "request_id", "key_id", "route", "status", "ms", "code"];
/** The route in the log line of a webhook attempt, and the fields that only this line has. */
const ATTEMPT = "webhook attempt";
const ATTEMPT_FIELDS = ["event_id", "delivery_id", "endpoint_id", "attempt"];
const TEMPLATES = new Set([
  ...ROUTES.map(([, path]) =>
    path.replace(
      /:[a-z]+/,
      path.includes("/idempotency_keys/")
        ? ":key"
        : path.includes("/customers/")
        ? ":customer"
        : ":id",
    )
  ),
  "/api-v1-payments/health",
  "/api-v1-sandbox/health",
  "unknown",
]);

serviceCase("canaries on every route and in every error", async (t, service) => {
  const { text: key, id: key_id } = await service.issueKey(service.key.environment_id);
  service.logs.length = 0;
  await sendEverywhere(service, key);
  await service.call("GET", "/api-v1-payments/health", { key: null });
  await service.call("GET", "/api-v1-sandbox/health", { key: null });

  await t.step("log lines have the allowed fields and no others", () => {
    assert.ok(service.logs.length > 1_000);
    const attempts = service.logs.filter(({ route }) => route === ATTEMPT);
    assert.ok(attempts.length > 0);
    for (const line of attempts) {
      assert.deepEqual(Object.keys(line), [...FIELDS, ...ATTEMPT_FIELDS]);
      assert.match(line.request_id!, /^req_[0-9a-z]{26}$/);
      assert.match(
        `${line.event_id} ${line.delivery_id} ${line.endpoint_id} ${line.attempt}`,
        /^evt_[0-9a-z]{26} whd_[0-9a-z]{26} whe_[0-9a-z]{26} \d+$/,
      );
    }
    for (const line of service.logs) {
      if (line.route === ATTEMPT) continue;
      assert.deepEqual(Object.keys(line), FIELDS);
      assert.match(line.time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      assert.match(line.request_id!, /^req_[0-9a-z]{26}$/);
      assert.match(line.key_id ?? "key_", /^key_[0-9a-z]*$/);
      const [method, template, ...more] = line.route.split(" ");
      assert.match(method!, /^(GET|POST|PUT|DELETE|PATCH|HEAD|OPTIONS|other)$/);
      assert.ok(TEMPLATES.has(template!) && more.length === 0, line.route);
      assert.ok(line.ms >= 0 && line.status >= 200);
      assert.equal(line.code === null, line.status < 400);
    }
  });
  await t.step("log lines name the admitted key by its id", () => {
    const named = new Set(service.logs.map((line) => line.key_id));
    assert.deepEqual([...named].sort(), [key_id, service.key.id, service.live.id, null].sort());
  });
  await t.step("no log line contains a canary", () => {
    // Random parts of ids contain the four digits as well.
    const lines = JSON.stringify(service.logs).replaceAll(/_[0-9a-z]{26}"/g, '_…"');
    assert.deepEqual(found(lines, { ...CANARY, key, key_in_dashes: key.replaceAll("_", "-") }), []);
  });
  await t.step("tables contain only the canaries that the service stores", async () => {
    await service.deps.request_log.flush();
    assert.ok(await service.count("requests") > 1_000);
    const dump = await dumpTables(service);
    const { card, test_card, cvc, iban } = CANARY;
    assert.deepEqual(found(dump, { card, test_card, iban, key, amex: AMEX.number }), []);
    // Ids and times contain the four digits as well, so the test looks for them as a number of
    // their own.
    assert.doesNotMatch(dump, new RegExp(`"cvc(?!"*:"*…")|[":' ]${cvc}[",' ]`));
    // The dump contains the stored canaries, which shows that the search works.
    const kept = { email: CANARY.email, key: CANARY.idempotency_key, url: CANARY.url };
    assert.equal(found(dump, kept).length, Object.keys(kept).length);
    assert.match(dump, /"last4\W+4300\W/);
  });
  await t.step("only columns with bodies contain an e-mail address", async () => {
    const columns = await service.sql<{ table: string; column: string }[]>`
      select table_name as table, column_name as column from information_schema.columns
      where table_schema = 'pay' and data_type in ('text', 'ARRAY', 'json')`;
    const holding = new Set<string>();
    for (const { table, column } of columns) {
      const rows = await service.sql.unsafe(
        `select from pay.${table} where position($1 in ${column}::text) > 0 limit 1`,
        [CANARY.email],
      );
      if (rows.count > 0) holding.add(column);
    }
    assert.deepEqual([...holding].sort(), ["body", "request_body", "response_body"]);
  });
}, { request_log: true });

/** The names of the texts that `where` contains, in any case and grouping. */
function found(where: string, texts: Record<string, string>): string[] {
  const plain = where.toLowerCase().replaceAll(/[\s-]/g, "");
  return Object.entries(texts)
    .filter(([, text]) => plain.includes(text.toLowerCase().replaceAll(/[\s-]/g, "")))
    .map(([name]) => name);
}

serviceCase("a failed poll is logged under the name of its loop", async (_, service) => {
  for (const name of ["lease_provider_work", "poll_deliveries"]) {
    await service.sql.unsafe(`alter function pay.${name} rename to test_${name}`);
  }
  await service.deps.provider_worker.notify();
  await service.deps.webhooks!.dispatcher.notify();
  const failed = service.logs.map(({ route, status, code, fault }) => [
    route,
    status,
    code,
    fault?.split(" ").slice(0, 2).join(" "),
  ]);
  assert.deepEqual(failed, [
    ["provider worker", 500, "internal_error", "PostgresError 42883"],
    ["dispatcher", 500, "internal_error", "PostgresError 42883"],
  ]);
});

Deno.test("failedPoll() tells a database that is away from a fault", () => {
  const driver = (code: string) => Object.assign(new Error("hidden"), { code });
  const away = Object.assign(tryAgain("service_unavailable", "hidden"), {
    cause: driver("ECONNREFUSED"),
  });
  for (
    const [error, ...expected] of [
      [away, 503, "service_unavailable", "Error ECONNREFUSED"],
      [driver("57P01"), 503, "service_unavailable", "Error 57P01"],
      [driver("42883"), 500, "internal_error", "Error 42883"],
      [new ApiError("internal_error", "hidden"), 500, "internal_error", "ApiError internal_error"],
    ] as const
  ) {
    const { status, code, fault } = failedPoll("dispatcher", 0, error);
    assert.deepEqual([status, code, fault], expected);
  }
});
