/**
 * Statements whose work could grow with the rows of a tenant: each reads a bounded number of rows,
 * whatever the tenant has. `ROWS=1000000` makes the run whose figures are in
 * docs/decisions/0004-bounded-work.md.
 */

import assert from "node:assert/strict";
import type { ReservedSql } from "postgres";
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
 * that nobody reads, events and idempotency keys.
 */
async function fill(service: TestService, standing: TestKey, inbox_id: string): Promise<void> {
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
      delivery(
        b!,
        STANDING,
        "whd_b",
        `'pending', 1, timestamptz 'infinity',
        timestamptz '2030-01-02T00:00:00Z'`,
      ),
      delivery(c!, inbox_id, "whd_c", "'available', 1, null::timestamptz, null::timestamptz"),
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
      operation(b!, "pc_b", "timestamptz 'infinity', timestamptz '2030-01-02T00:00:00Z'"),
    ],
  );
  await insertRows(
    service,
    "inbox_entries",
    "environment_id, delivery_id, endpoint_id, position",
    [`select ${c}, ${id("whd_c")}, '${inbox_id}', n ${series}`],
  );
  await insertRows(service, "events", "environment_id, id, type, subject_id, created_at, body", [
    `select ${c}, ${id("evt_")}, 'payment.created', ${id("pay_c")}, now(), '{}' ${series}`,
  ]);
  const key = `environment_id, api_key_id, key, fingerprint, request_id, request_line, status, body,
    created_at`;
  await insertRows(
    service,
    "idempotency_keys",
    key,
    [b, c].map((environment) =>
      `select ${environment}, ${id("key_")}, n::text, sha256('x'), ${
        id("req_")
      }, 'POST /', 201, '{}',
      now() ${series}`
    ),
  );
  await service.sql`update pay.webhook_endpoints set inbox_position = ${ROWS}
    where id = ${inbox_id}`;
}

/** A statement, and the most rows that it may read. */
interface Case {
  name: string;
  query: string;
  parameters?: (string | null)[];
  most_rows: number;
  /** Statements before it, for its state. */
  before?: string;
}

/** A statement with its parameters. */
type Call = [query: string, parameters: (string | null)[]];

function casesOf(
  { key, other }: TestService,
  standing: TestKey,
  { stopped, inbox_id, inbox_revision }: {
    stopped: string;
    inbox_id: string;
    inbox_revision: number;
  },
): Case[] {
  const request = ({ text }: TestKey, version?: string) =>
    JSON.stringify([{
      n: 1,
      key_hash: parseApiKey(text)!.hash,
      scope: null,
      at: version === undefined ? new Date().toISOString() : "2030-01-01T00:00:00.000Z",
      ...(version !== undefined && { version: Number(version) }),
      request_id: `req_${"x".repeat(26)}`,
      idempotency_key: "of the test",
      fingerprint: "00".repeat(32),
      request_line: "POST /",
      status: 200,
      // As the service claims a key whose response the statement makes.
      body: "",
    }]);
  const clock = (at: TestKey, command: unknown, version?: string): Call => [
    "select outcome, pg_typeof(body) from pay.set_clock($1::text, $2::text)",
    [request(at, version), JSON.stringify(command)],
  ];
  const step = ({ environment_id }: TestKey): Call => [
    "select state from pay.step_clock($1::text, $2::text, true)",
    [environment_id, '{"api_key_id":"k","request_id":"r","target":"2030-01-03T00:00:00Z"}'],
  ];
  const target = (at: TestKey, values: string) =>
    `update pay.sandbox_settings set ${values} where environment_id = '${at.environment_id}'`;
  const reset = (at: TestKey): Call => [
    "select outcome from pay.reset_sandbox($1::text, $2::text)",
    [request(at), `env_${"r".repeat(26)}`],
  ];
  const recover = (at: TestKey, endpoint_id: string): Call => [
    `select outcome from pay.recover_deliveries(
      $1::text, $2::text, '', '~', null, array['failed'], '{}')`,
    [request(at), endpoint_id],
  ];
  const change = (
    at: TestKey,
    endpoint_id: string,
    revision: number,
    text: string | null,
  ): Call => [
    "select outcome from pay.change_webhook_endpoint($1::text, $2::text, $3::int, $4)",
    [request(at), endpoint_id, revision as never, text],
  ];
  const readInbox = (after: string | null): Call => [
    "select outcome from pay.read_inbox($1::text, $2::text, $3::bigint, 100)",
    [request(other), inbox_id, after],
  ];
  const inbox = {
    id: inbox_id,
    delivery: "url",
    url: "https://example.com/",
    events: ["*"],
    status: "enabled",
    secrets: [],
    revision: inbox_revision + 1,
    created_at: new Date(),
    body: "{}",
  };
  const named = (name: string, [query, parameters]: Call, most_rows: number): Case => ({
    name,
    query,
    parameters,
    most_rows,
  });
  const retire = `update pay.environments set ends_at = now() + interval '1 day'
      where id = '${key.environment_id}';
    insert into pay.sandboxes (environment_id, id, account, made_by, created_at, expires_at)
    values ('${other.environment_id}', '${key.environment_id}', 'a', '${other.id}', now(),
      now() + interval '1 day')`;
  const POLL = `select count(*) from pay.poll_deliveries('[]',
    '{"endpoints":{},"environments":{},"accounts":{}}', 64, 16, 64, 64, '{}', now(),
    now() + interval '25 s')`;
  return [
    named("set_clock: freeze", clock(key, { mode: "frozen" }), STEP),
    named("set_clock: advance", clock(key, { advance_s: 1 }), STEP),
    named("set_clock: a clock that stands", clock(standing, { advance_s: 60 }, stopped), STEP),
    {
      ...named("step_clock: stops what waits", step(key), STEP),
      before: `insert into pay.sandbox_settings
          (environment_id, version, frozen_at, target_at, is_stopping)
        values ('${key.environment_id}', 1, now(), '2030-01-03T00:00:00Z', true)`,
    },
    {
      ...named("step_clock: makes due what waits for one time", step(standing), STEP),
      before: target(standing, "target_at = '2030-01-03T00:00:00Z'"),
    },
    {
      ...named("step_clock: starts what waits", step(standing), STEP),
      before: target(standing, "target_at = frozen_at, runs_after = true"),
    },
    named(
      "reset_sandbox: deliveries that wait",
      reset(key),
      Math.min(ROWS, 250_001) + 4 * CALLED_OFF + FEW,
    ),
    named(
      "reset_sandbox: events, keys and deliveries",
      reset(other),
      3 * Math.min(ROWS, 250_001) + FEW,
    ),
    {
      name: "end_sandbox",
      query: "select outcome from pay.end_sandbox($1::text, $2::text)",
      parameters: [request(other), key.environment_id],
      most_rows: 4 * CALLED_OFF + FEW,
      before: retire,
    },
    {
      name: "purge: a retired sandbox",
      query: "select pay.purge()",
      most_rows: 12 * PURGED + FEW,
      before: `update pay.environments set retired_at = now() where id = '${key.environment_id}'`,
    },
    {
      name: "purge: keys of sandboxes that are younger than a day",
      query: "select pay.purge()",
      most_rows: 3 * PURGED + FEW,
      // A clock that stands, whose keys are a day old in real time.
      before: `update pay.sandbox_settings set frozen_at = now() - interval '3 days'`,
    },
    named("recover_deliveries", recover(other, inbox_id), 20_000 + FEW),
    // The count of the backlog, and the first deliveries of the period.
    named(
      "recover_deliveries: in a sandbox with a backlog",
      recover(key, RUNNING),
      20_000 + 2 * FEW,
    ),
    {
      name: "commit: in a sandbox with a backlog",
      query: `select outcome from pay.commit($1::text)`,
      parameters: [
        `{"requests":${request(key)},
          "events":[{"n":1,"type":"payment.created","created_at":"2030-01-01T00:00:00Z"}]}`,
      ],
      most_rows: FEW,
    },
    {
      name: "read_pending_quota",
      query: "select outcome from pay.read_pending_quota($1::text)",
      parameters: [request(key)],
      most_rows: 20_000 + 2 * FEW,
    },
    {
      name: "redeliver",
      query: "select outcome from pay.redeliver($1::text, $2::text, '{}')",
      parameters: [request(key), `whd_a${"1".padStart(26, "0")}`],
      most_rows: 20_000 + FEW,
    },
    named(
      "change_webhook_endpoint: disable",
      change(
        key,
        RUNNING,
        1,
        JSON.stringify({ ...inbox, id: RUNNING, status: "disabled", revision: 2 }),
      ),
      4 * CALLED_OFF + FEW,
    ),
    named("change_webhook_endpoint: delete", change(key, RUNNING, 1, null), 4 * CALLED_OFF + FEW),
    named(
      "change_webhook_endpoint: delete an inbox",
      change(other, inbox_id, inbox_revision, null),
      6 * CALLED_OFF + FEW,
    ),
    named(
      "change_webhook_endpoint: an inbox gets a URL",
      change(other, inbox_id, inbox_revision, JSON.stringify(inbox)),
      6 * CALLED_OFF + FEW,
    ),
    named("read_inbox: the first page", readInbox(null), FEW),
    named("read_inbox: acknowledges all of it", readInbox(String(ROWS)), 6 * BATCH + FEW),
    // The cases before leave entries of their undone batches in the indexes.
    { name: "poll_deliveries", query: POLL, most_rows: STEP },
    {
      name: "poll_deliveries: cancels the deliveries of a disabled endpoint",
      query: POLL,
      most_rows: 4 * 2_000 + FEW,
      before: `update pay.webhook_endpoints set status = 'disabled' where id = '${RUNNING}'`,
    },
  ];
}

/** Runs a case on the rows of the file, and undoes it. */
async function runCase(
  session: ReservedSql,
  { query, parameters = [], before }: Case,
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
  const service = await startService(NO_DISPATCHER);
  const { sql } = service;
  const session = await sql.reserve();
  try {
    const [made] = await sql`select pay.create_environment(
      'env_' || repeat('b', 26), 'a third account', false, 'standing'), 'env_' || repeat('b', 26) as id`;
    const standing = await service.issueKey(made!.id);
    await sql`insert into pay.sandbox_settings (environment_id, version, frozen_at)
      values (${standing.environment_id}, 1, '2030-01-01T00:00:00Z')`;
    const inbox_id = `whe_3${"0".repeat(25)}`;
    await insertEndpoint(service, 1);
    await insertEndpoint(service, 2, { environment_id: standing.environment_id });
    await insertEndpoint(service, 3, {
      environment_id: service.other.environment_id,
      url: null,
    });
    const began = performance.now();
    await fill(service, standing, inbox_id);
    console.log(`filled in ${Math.round(performance.now() - began)} ms`);
    for (const one of casesOf(service, standing, { stopped: "1", inbox_id, inbox_revision: 1 })) {
      await t.step(one.name, async () => {
        const { rows, ms } = await runCase(session, one);
        console.log(`| ${one.name} | ${rows} | ${Math.round(ms)} ms |`);
        assert.ok(rows <= one.most_rows, `${rows} rows, not ${one.most_rows} at most`);
        assert.ok(ms < LONGEST_MS, `${ms} ms`);
      });
    }
  } finally {
    session.release();
    await service.close();
  }
});
