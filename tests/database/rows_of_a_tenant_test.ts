/**
 * Statements whose work could grow with the rows of a tenant: each reads a bounded number of rows,
 * whatever the tenant has. `ROWS=1000000` makes the run whose figures are in
 * docs/decisions/0004-bounded-work.md.
 */

import assert from "node:assert/strict";
import type { ReservedSql } from "postgres";
import { openSession } from "../support/database/database.ts";
import { parseApiKey } from "../../shared/core/api_key.ts";
import { rowsRead } from "../support/database/pages_read.ts";
import { startService, type TestKey, type TestService } from "../support/service/service.ts";
import { insertEndpoint, NO_DISPATCHER } from "../support/webhook/dispatcher_polls.ts";

/** Rows of each kind. The default is enough to tell a batch from a scan. */
const ROWS = Number(Deno.env.get("ROWS") ?? 60_000);
/** The longest time of a statement of the functions is 5 s. */
const LONGEST_MS = 4_000;
/** Rows that the statements of a small sandbox read: keys, settings, endpoints. */
const FEW = 1_000;
const BATCH = 1_000;
/** Rows of a kind that retention deletes at a time. */
const PURGED = 3_000;
/**
 * A step reads each delivery and operation that it changes a few times: to find, lock and change
 * it.
 */
const STEP = 2 * 5 * BATCH + FEW;
const CALLED_OFF = 5_000;

/** Waiting endpoints of the two sandboxes with deliveries, and the inbox of the third. */
const RUNNING = `whe_1${"0".repeat(25)}`;
const STANDING = `whe_2${"0".repeat(25)}`;
const INBOX = `whe_3${"0".repeat(25)}`;
/** The environment that a reset makes. */
const FRESH = `env_${"r".repeat(26)}`;

const DUE = "timestamptz '2030-01-02T00:00:00Z'";
const id = (prefix: string) => `'${prefix}' || lpad(n::text, 26, '0')`;

/** Inserts rows without their indexes, which are made again at once. */
async function insertRows(
  { sql }: TestService,
  table: string,
  columns: string,
  selects: readonly string[],
): Promise<void> {
  const indexes = await sql.unsafe<{ name: string; definition: string }[]>(
    `select i.indexrelid::regclass::text as name, pg_get_indexdef(i.indexrelid) as definition
     from pg_index i where i.indrelid = 'pay.${table}'::regclass and not exists (
       select from pg_constraint c where c.conindid = i.indexrelid)`,
  );
  for (const { name } of indexes) await sql.unsafe(`drop index ${name}`);
  for (const select of selects) {
    await sql.unsafe(`insert into pay.${table} (${columns}) ${select}`);
  }
  for (const { definition } of indexes) await sql.unsafe(definition);
  await sql.unsafe(`analyze pay.${table}`);
}

/**
 * Fills three sandboxes. The first has the real clock and the second one that stands; both have
 * deliveries and operations that wait, in the second all for the same time. The third has an inbox
 * that nobody reads, payments with events, and idempotency keys.
 */
async function fill(service: TestService, standing: TestKey): Promise<void> {
  const [a, b, c] = [service.key, standing, service.other].map(({ environment_id }) =>
    `'${environment_id}'`
  );
  const series = `from generate_series(1, ${ROWS}) n`;
  const wait = "now() + interval '1 hour' + n * interval '1 ms'";
  const delivery = (environment: string, endpoint: string, prefix: string, state: string) =>
    `select ${environment}, ${id(prefix)}, ${id("evt_")}, 'payment.created', '${endpoint}',
      ${id(`pay_${prefix.at(-1)}`)}, 1, ${state}, now() ${series}`;
  await insertRows(
    service,
    "webhook_deliveries",
    `environment_id, id, event_id, event_type, endpoint_id, subject_id, sequence, status,
      attempt_count, next_attempt_at, due_at, created_at`,
    [
      delivery(a!, RUNNING, "whd_a", `'pending', 1, ${wait}, null::timestamptz`),
      delivery(b!, STANDING, "whd_b", `'pending', 1, timestamptz 'infinity', ${DUE}`),
      delivery(c!, INBOX, "whd_c", "'available', 1, null::timestamptz, null::timestamptz"),
    ],
  );
  const operation = (environment: string, prefix: string, times: string) =>
    `select ${environment}, ${id(prefix)}, 'sandbox', 'sandbox', 'expire', ${id("pay_")}, 100,
      'EUR', '{}', 'pending', 0, now(), ${times}, true, 'key_', 'req_', false ${series}`;
  await insertRows(
    service,
    "provider_operations",
    `environment_id, id, account_id, connector, op, subject_id, amount_minor, currency, request,
      state, attempts, created_at, next_attempt_at, due_at, may_repeat, api_key_id, request_id,
      decline_is_error`,
    [
      operation(a!, "pc_a", `${wait}, null::timestamptz`),
      operation(b!, "pc_b", `timestamptz 'infinity', ${DUE}`),
    ],
  );
  await insertRows(
    service,
    "inbox_entries",
    "environment_id, delivery_id, endpoint_id, position",
    [`select ${c}, ${id("whd_c")}, '${INBOX}', n ${series}`],
  );
  await insertRows(service, "events", "environment_id, id, type, subject_id, created_at, body", [
    `select ${c}, ${id("evt_")}, 'payment.created', ${id("pay_c")}, now(), '{}' ${series}`,
  ]);
  await insertRows(
    service,
    "payments",
    `environment_id, id, status, amount_minor, amount_refunded, currency, method_kind, sequence,
      created_at, updated_at, body`,
    [`select ${c}, ${
      id("pay_c")
    }, 'pending', 1, 0, 'EUR', 'card', 1, now(), now(), '{}' ${series}`],
  );
  await insertRows(
    service,
    "idempotency_keys",
    `environment_id, api_key_id, key, fingerprint, request_id, request_line, status, body, created_at`,
    [b, c].map((environment) =>
      `select ${environment}, ${id("key_")}, n::text, sha256('x'), ${id("req_")}, 'POST /', 201,
        '{}', now() ${series}`
    ),
  );
  await service.sql`update pay.webhook_endpoints set inbox_position = ${ROWS}
    where id = ${INBOX}`;
}

/** A statement with its parameters. */
type Call = [query: string, ...parameters: (string | null)[]];
/** A statement, the most rows that it may read, and statements before it, for its state. */
type Case = [name: string, most_rows: number, call: Call, before?: string];

const POLL: Call = [
  `select count(*) from pay.poll_deliveries('[]', '{"endpoints":{},"environments":{},"accounts":{}}',
    64, 16, 64, 64, '{}', now(), now() + interval '25 s')`,
];

function casesOf({ key, other }: TestService, standing: TestKey): Case[] {
  const request = ({ text }: TestKey, version?: number) =>
    JSON.stringify([{
      n: 1,
      key_hash: parseApiKey(text)!.hash,
      scope: null,
      at: version === undefined ? new Date().toISOString() : "2030-01-01T00:00:00.000Z",
      ...(version !== undefined && { version }),
      request_id: `req_${"x".repeat(26)}`,
      idempotency_key: "of the test",
      fingerprint: "00".repeat(32),
      request_line: "POST /",
      status: 200,
      // As the service claims a key whose response the statement makes.
      body: "",
    }]);
  /** The call of a function with a request. */
  const call = (name: string, at: TestKey, ...parameters: (string | null)[]): Call => {
    const places = parameters.map((_, i) => `, $${i + 2}::text`).join("");
    return [`select outcome from pay.${name}($1::text${places})`, request(at), ...parameters];
  };
  const clock = (command: unknown, at = key, version?: number): Call => [
    "select outcome, pg_typeof(body) from pay.set_clock($1::text, $2::text)",
    request(at, version),
    JSON.stringify(command),
  ];
  const step = ({ environment_id }: TestKey): Call => [
    "select state from pay.step_clock($1::text, $2::text, true)",
    environment_id,
    '{"api_key_id":"k","request_id":"r","target":"2030-01-03T00:00:00Z"}',
  ];
  const target = (values: string) =>
    `update pay.sandbox_settings set ${values}
     where environment_id = '${standing.environment_id}'`;
  const recover = (at: TestKey, endpoint_id: string): Call => [
    `select outcome from pay.recover_deliveries(
      $1::text, $2::text, '', '~', null, array['failed'], '{}')`,
    request(at),
    endpoint_id,
  ];
  const change = (at: TestKey, id: string, members: object | null): Call => [
    "select outcome from pay.change_webhook_endpoint($1::text, $2::text, 1, $3)",
    request(at),
    id,
    members && JSON.stringify({
      ...{ id, delivery: "url", url: "https://example.com/", events: ["*"], status: "enabled" },
      ...{ secrets: [], revision: 2, created_at: new Date(), body: "{}", ...members },
    }),
  ];
  const readInbox = (after: string | null): Call => [
    "select outcome from pay.read_inbox($1::text, $2::text, $3::bigint, 100)",
    ...[request(other), INBOX, after],
  ];
  // Counted for the sandbox, not for each of its requests.
  const created = JSON.stringify(Array.from({ length: 32 }, (_, i) => ({
    ...JSON.parse(request(key))[0],
    ...{ n: i + 1, request_id: `req_${i}`, idempotency_key: `created-${i}` },
  })));
  const kept = Math.min(ROWS, 250_001);
  return [
    ["set_clock: freeze", STEP, clock({ mode: "frozen" })],
    ["set_clock: advance", STEP, clock({ advance_s: 1 })],
    ["set_clock: a clock that stands", STEP, clock({ advance_s: 60 }, standing, 1)],
    [
      "step_clock: stops what waits",
      STEP,
      step(key),
      `insert into pay.sandbox_settings (environment_id, version, frozen_at, target_at, is_stopping)
       values ('${key.environment_id}', 1, now(), '2030-01-03T00:00:00Z', true)`,
    ],
    [
      "step_clock: makes due what waits for one time",
      STEP,
      step(standing),
      target("target_at = '2030-01-03T00:00:00Z'"),
    ],
    [
      "step_clock: starts what waits",
      STEP,
      step(standing),
      target("target_at = frozen_at, runs_after = true"),
    ],
    ["reset_sandbox: deliveries", kept + 4 * CALLED_OFF + FEW, call("reset_sandbox", key, FRESH)],
    ["reset_sandbox: events, keys", 4 * kept + FEW, call("reset_sandbox", other, FRESH)],
    [
      "end_sandbox",
      4 * CALLED_OFF + FEW,
      call("end_sandbox", other, key.environment_id),
      `update pay.environments set ends_at = now() + interval '1 day'
         where id = '${key.environment_id}';
       insert into pay.sandboxes (environment_id, id, account, made_by, created_at, expires_at)
       values ('${other.environment_id}', '${key.environment_id}', 'a', '${other.id}', now(),
         now() + interval '1 day')`,
    ],
    [
      "purge: a retired sandbox",
      12 * PURGED + FEW,
      ["select pay.purge()"],
      `update pay.environments set retired_at = now() where id = '${key.environment_id}'`,
    ],
    [
      "purge: keys of sandboxes that are younger than a day, and payments with events",
      3 * PURGED + FEW,
      ["select pay.purge()"],
      // A clock that stands, whose keys are a day old in real time.
      "update pay.sandbox_settings set frozen_at = now() - interval '3 days'",
    ],
    ["recover_deliveries", 20_000 + FEW, recover(other, INBOX)],
    // The count of the backlog, and the first deliveries of the period.
    ["recover_deliveries: with a backlog", 20_000 + 2 * FEW, recover(key, RUNNING)],
    ["commit: with a backlog", FEW, [
      `select outcome from pay.commit('{}', null, $1::text,
        p_events => '{"(1,,payment.created,,,2030-01-01T00:00:00Z,,,,,,)"}')`,
      created,
    ]],
    ["read_pending_quota", 20_000 + 2 * FEW, call("read_pending_quota", key)],
    ["redeliver", 20_000 + FEW, call("redeliver", key, `whd_a${"1".padStart(26, "0")}`, "{}")],
    [
      "change_webhook_endpoint: disable",
      4 * CALLED_OFF + FEW,
      change(key, RUNNING, { status: "disabled" }),
    ],
    ["change_webhook_endpoint: delete", 4 * CALLED_OFF + FEW, change(key, RUNNING, null)],
    ["change_webhook_endpoint: delete an inbox", 6 * CALLED_OFF + FEW, change(other, INBOX, null)],
    ["change_webhook_endpoint: a URL", 6 * CALLED_OFF + FEW, change(other, INBOX, {})],
    ["read_inbox: the first page", FEW, readInbox(null)],
    ["read_inbox: acknowledges all of it", 6 * BATCH + FEW, readInbox(String(ROWS))],
    // The cases before leave entries of their undone batches in the indexes.
    ["poll_deliveries", STEP, POLL],
    [
      "poll_deliveries: cancels the deliveries of a disabled endpoint",
      4 * 2_000 + FEW,
      POLL,
      `update pay.webhook_endpoints set status = 'disabled' where id = '${RUNNING}'`,
    ],
  ];
}

/** Runs a case on the rows of the file, and undoes it. */
async function runCase(
  session: ReservedSql,
  [, , [query, ...parameters], before]: Case,
): Promise<{ rows: number; ms: number }> {
  const began = performance.now();
  let prepared_ms = 0;
  const { rows } = await rowsRead(session, query, parameters, async () => {
    if (before !== undefined) await session.unsafe(before);
    prepared_ms = performance.now() - began;
  });
  return { rows, ms: performance.now() - began - prepared_ms };
}

Deno.test(`each statement reads a bounded number of a tenant's ${ROWS} rows`, async (t) => {
  await using service = await startService(NO_DISPATCHER);
  const { sql } = service;
  await using session = await openSession(sql);
  const [made] = await sql`select pay.create_environment(
    'env_' || repeat('b', 26), 'a third account', false, 'standing'), 'env_' || repeat('b', 26) as id`;
  const standing = await service.issueKey(made!.id);
  await sql`insert into pay.sandbox_settings (environment_id, version, frozen_at)
    values (${standing.environment_id}, 1, '2030-01-01T00:00:00Z')`;
  await insertEndpoint(service, 1);
  await insertEndpoint(service, 2, { environment_id: standing.environment_id });
  await insertEndpoint(service, 3, { environment_id: service.other.environment_id, url: null });
  const began = performance.now();
  await fill(service, standing);
  console.log(`filled in ${Math.round(performance.now() - began)} ms`);
  for (const one of casesOf(service, standing)) {
    const [name, most_rows] = one;
    await t.step(name, async () => {
      const { rows, ms } = await runCase(session, one);
      console.log(`| ${name} | ${rows} | ${Math.round(ms)} ms |`);
      assert.ok(rows <= most_rows, `${rows} rows, not ${most_rows} at most`);
      assert.ok(ms < LONGEST_MS, `${ms} ms`);
    });
  }
});
