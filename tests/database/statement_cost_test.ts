/**
 * The cost of statements as the number of table and index pages that they read: it does not grow
 * with the rows of the service, also with plans that were cached while the tables were empty and
 * never analyzed. list_rows_test.ts and rows_of_a_tenant_test.ts count rows.
 */

import assert from "node:assert/strict";
import type { ReservedSql } from "postgres";
import { openSession } from "../support/database/database.ts";
import { parseApiKey } from "../../shared/core/api_key.ts";
import type { Database } from "../../shared/store/database.ts";
import { COMMIT } from "../../shared/store/commit_statement.ts";
import { LIST } from "../../shared/store/list_statement.ts";
import { ProviderStore } from "../../shared/store/provider_store.ts";
import { created, parametersOf } from "../support/database/commit_list.ts";
import { fillSandbox } from "../support/database/filled_sandbox.ts";
import { pagesRead, removeDeletedRows, rowsRead } from "../support/database/pages_read.ts";
import { addAccount, completion, reserve } from "../support/database/provider_flow.ts";
import type { TestService } from "../support/service/service.ts";
import { serviceCase } from "../support/service/service_case.ts";
import { insertEndpoint } from "../support/webhook/dispatcher_polls.ts";

/** The number of calls after which a connection uses its cached plan. */
const CALLS = 8;
/** Payments of a sandbox, each with two deliveries; rows of each table of providers. */
const ROWS = 20_000;
/** The endpoint in the first slot. */
const ENDPOINT = `whe_${"0".repeat(26)}`;

/** A test's service and connection. */
interface Case {
  service: TestService;
  connection: ReservedSql;
  /** Inserts `ROWS` rows of the live environment, with SQL over `n`. */
  insert(table: string, columns: string, values: string): Promise<unknown>;
  /** Counts the pages of a statement. */
  pages(query: string, parameters?: (string | null)[]): Promise<number>;
}

/** Registers a test of the pages that statements read. */
function costCase(name: string, run: (t: Deno.TestContext, test: Case) => Promise<void>): void {
  serviceCase(name, async (t, service) => {
    await using connection = await openSession(service.sql);
    await run(t, {
      service,
      connection,
      insert: (table, columns, values) =>
        service.sql.unsafe(
          `insert into pay.${table} (environment_id, ${columns})
           select $1, ${values} from generate_series(1, ${ROWS}) n`,
          [service.live.environment_id],
        ),
      pages: (query, parameters = []) => pagesRead(connection, query, parameters),
    });
  });
}

function assertFew(what: string, pages: number, most: number): void {
  console.log(`${pages} pages for ${what}`);
  assert.ok(pages <= most, `${pages} pages were read for ${what}`);
}

async function often(call: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < CALLS; i++) await call();
}

/** The text of one request for an entry function. */
function requestOf({ key }: TestService, fields: Record<string, unknown>): string {
  const key_hash = parseApiKey(key.text)!.hash;
  return JSON.stringify([{ n: 1, key_hash, scope: null, at: new Date(), ...fields }]);
}

/** Fills the sandbox with payments whose deliveries all wait for one endpoint. */
async function fillOutbox({ sql, key: { environment_id } }: TestService, payments = ROWS) {
  await fillSandbox(sql, environment_id, payments);
  await sql`delete from pay.webhook_deliveries`;
  await sql`
    insert into pay.webhook_deliveries (environment_id, id, event_id, event_type, endpoint_id,
      subject_id, sequence, status, next_attempt_at, created_at)
    select e.environment_id, 'whd_' || substr(e.id, 5), e.id, e.type, ${ENDPOINT}, e.subject_id,
      e.sequence, 'pending', now() - interval '1 hour', e.created_at
    from pay.events e`;
}

costCase("pay.list() finds the blocker of each delivery by its index", async (_, test) => {
  const { service, connection, pages } = test;
  const filters = { endpoint_id: ENDPOINT };
  const request = requestOf(service, { kind: "webhook_deliveries", limit: 100, filters });
  await often(() => pages(LIST, [request, request]));
  await fillOutbox(service, 5_000);
  const [page] = await connection.unsafe<{ data: string }[]>(LIST, [request, request], {
    prepare: true,
  });
  const blocked = JSON.parse(`[${page!.data}]`).filter((one: object) => "blocked_by" in one);
  assert.ok(blocked.length >= 40, `${blocked.length} are blocked`);
  // An item takes an index probe or two. Reading all pending deliveries takes thousands.
  assertFew("100 deliveries", await pages(LIST, [request, request]), 800);
});

/** The number of deliveries of a poll. */
const EACH = 16;

interface Leased {
  environment_id: string;
  id: string;
  attempt: number;
  leased_until: string;
}

costCase("pay.poll_deliveries() reads few pages with a large backlog", async (_, test) => {
  const { service, connection, pages } = test;
  const poll = `select environment_id, id, attempt, leased_until from pay.poll_deliveries(
    p_results => $1::text, p_capacity => '{}', p_limit => $2::int, p_per_endpoint => $2::int,
    p_per_environment => $2::int, p_per_account => $2::int, p_poison_ahead => '{}', p_at => now(),
    p_leased_until => now() + interval '25 s')`;
  const result = { outcome: "delivered", next_attempt_at: null, record: "{}" };
  const parameters = (leased: readonly Leased[]) => {
    const ended = leased.map((delivery) => ({ ...delivery, ...result }));
    return [JSON.stringify({ ended, released: [], log_entries: [] }), String(EACH)];
  };
  const { environment_id } = service.key;
  const leased_until = new Date().toISOString();
  let leased: Leased[] = [{ environment_id, id: "whd_none", attempt: 1, leased_until }];
  const take = () => connection.unsafe<Leased[]>(poll, parameters(leased), { prepare: true });
  await often(async () => assert.equal((await take()).length, 0));
  await fillOutbox(service);
  await insertEndpoint(service);
  leased = [];
  await often(async () => leased = await take());
  assert.equal(leased.length, EACH);
  // Fifty pages for each recorded and leased delivery. Reading all pending ones takes 4 500.
  assertFew(`a poll of ${EACH}`, await pages(poll, parameters(leased)), 1_500);
});

/** As many as an environment has slots for, and the deliveries that they may lease together. */
const ENDPOINTS = 64;
const OF_ALL = 64;
/** Rows for each endpoint. If each read all that one alone may lease, it would be 4 300. */
const MAX_ROWS_EACH = 256;

serviceCase("pay.poll_deliveries() reads few rows of many endpoints", async (_t, service) => {
  const { sql, key: { environment_id } } = service;
  await fillSandbox(sql, environment_id, 100);
  await sql`delete from pay.webhook_deliveries`;
  for (let slot = 0; slot < ENDPOINTS; slot++) await insertEndpoint(service, slot);
  await sql`
    insert into pay.webhook_deliveries (environment_id, id, event_id, event_type, endpoint_id,
      subject_id, sequence, status, next_attempt_at, created_at)
    select e.environment_id, 'whd_' || md5(t.id || e.id), e.id, e.type, t.id, e.subject_id,
      e.sequence, 'pending', now() - interval '1 hour', e.created_at
    from pay.events e cross join pay.webhook_endpoints t`;
  await sql`analyze pay.webhook_deliveries`;
  await using connection = await openSession(sql);
  const poll = `select pay.poll_deliveries(p_results => '{}', p_capacity => '{}',
    p_limit => 1024, p_per_endpoint => $1::int, p_per_environment => $1::int,
    p_per_account => $1::int, p_poison_ahead => '{}', p_at => now(),
    p_leased_until => now() + interval '25 s')`;
  const { rows } = await rowsRead(connection, poll, [String(OF_ALL)]);
  assert.ok(rows <= ENDPOINTS * MAX_ROWS_EACH, `${rows} rows were read`);
  const leased = await connection.unsafe(poll, [String(OF_ALL)]);
  assert.ok(leased.length >= OF_ALL, `${leased.length} were leased`);
});

costCase("pay.read_inbox() reads few pages of a large inbox", async (_, test) => {
  const { service, connection, pages } = test;
  const read = `select outcome, body from pay.read_inbox(
    p_request => $1::text, p_id => $2::text, p_after => $3::text::bigint, p_most => 10)`;
  const parameters = (after: number | null) => [
    requestOf(service, {}),
    ENDPOINT,
    after === null ? null : String(after),
  ];
  const page = async (after: number | null) => {
    const [row] = await connection.unsafe(read, parameters(after), { prepare: true });
    return row!.outcome === "ok" ? JSON.parse(row!.body) : row!.outcome;
  };
  await often(async () => assert.equal(await page(null), "not_found"));
  await fillOutbox(service);
  await insertEndpoint(service, 0, { url: null });
  // About thirty pages for each delivery that the read adds to the inbox.
  assertFew("adding 1 000 deliveries", await pages(read, parameters(null)), 50_000);
  let position = 0;
  await often(async () => {
    const found = await page(position);
    assert.equal(found.data.length, 10);
    position = found.position;
  });
  // Leaves nothing to add, so that the rest is the cost of the read.
  await service.sql`delete from pay.webhook_deliveries where status = 'pending'`;
  await removeDeletedRows(service.sql, "pay.webhook_deliveries");
  // Thirty pages for each delivery of a read. Reading all 40 000 takes some 5 000.
  assertFew("reading and acknowledging 10", await pages(read, parameters(position)), 400);
});

/** Reading all rows of a table once takes more than 300 pages, an index of it more than 150. */
const FEW = 250;
const OPERATION = `id, account_id, connector, op, subject_id, amount_minor, currency, request,
  attempts, created_at, may_repeat, api_key_id, request_id, decline_is_error, provider_reference,
  state, settled_at, next_attempt_at`;
/** A settled operation of a payment. */
const operationOf = (account_id: string, connector: string, provider_reference: string) =>
  `'pc_' || n, '${account_id}', '${connector}', 'authorize', 'pay_' || n, 1, 'EUR', '{}', 1, now(),
   true, 'key_1', 'req_1', true, ${provider_reference}`;
const EVENT = `account_id, reference, op, state, amount_minor, currency, happened_at, received_at,
  body, subject_id, outcome, handled_at`;

async function insertPayments({ insert }: Case, method_kind: string): Promise<void> {
  await insert(
    "payments",
    `id, status, amount_minor, amount_refunded, currency, method_kind, sequence, created_at,
     updated_at, body`,
    `'pay_' || n, 'pending', 1, 0, 'EUR', '${method_kind}', 1, now(), now(), '{}'`,
  );
}

costCase("pay.record() reads few pages of many rows", async (_, test) => {
  const { service: { sql, live }, insert, pages } = test;
  const account_id = await addAccount(sql, live.environment_id);
  let read = 0;
  const store = new ProviderStore(
    {
      async attempt(text: string, parameters: (string | null)[]) {
        read = await pages(text, parameters);
        return [{ n: 1, outcome: "recorded", is_settled: true, deliveries: "0" }];
      },
    } as unknown as Database,
  );
  const record = async () => await store.record([completion(await reserve(sql, live))]);
  await often(record);
  await insert(
    "provider_events",
    EVENT,
    `'${account_id}', 'pi_' || n || ':succeeded', 'authorize', 'succeeded', 1, 'EUR', now(), now(),
     '{}', null, 'ignored', now()`,
  );
  await insertPayments(test, "card");
  await insert(
    "provider_operations",
    `${OPERATION}, first_sent_at`,
    `${operationOf(account_id, "stripe", "null")},
     case n % 2 when 0 then 'pending' else 'settled' end, case n % 2 when 1 then now() end,
     case n % 2 when 0 then now() end, now()`,
  );
  await record();
  assertFew("a record", read, FEW);
});

costCase("pay.store_provider_events() reads few of many operations", async (t, test) => {
  const { service: { sql, live }, pages } = test;
  const account_id = await addAccount(sql, live.environment_id);
  const fill = (from: number, to: number, reference: string) =>
    sql.unsafe(
      `insert into pay.provider_operations (environment_id, ${OPERATION})
       select $1, ${operationOf(account_id, "stripe", reference)}, 'settled', now(), null
       from generate_series(${from}, ${to}) n`,
      [live.environment_id],
    );
  let events = 0;
  const store = (provider_reference: string | null) => {
    const event = { reference: `e_${++events}`, op: "authorize", state: "succeeded" };
    const money = { amount_minor: 1, currency: "EUR", at: new Date().toISOString() };
    return pages("select pay.store_provider_events($1::text, $2::text)", [
      account_id,
      JSON.stringify([{ ...event, ...money, provider_reference }]),
    ]);
  };
  await often(() => store("pi_1"));
  // Statistics of a time at which few operations had an object of their own.
  await fill(1, 100, "'pi_1'");
  await sql`analyze pay.provider_operations`;
  await fill(101, ROWS, "'pi_' || n");
  for (const provider_reference of [`pi_${ROWS}`, "unknown", null]) {
    await t.step(`for an event of ${provider_reference}`, async () => {
      assertFew(`an event of ${provider_reference}`, await store(provider_reference), FEW);
    });
  }
});

costCase("pay.commit() reads no endpoints of other sandboxes", async (_, test) => {
  const { service: { sql, key }, pages } = test;
  const create = () =>
    pages(COMMIT, parametersOf([{ change: created(), key: key.text }]) as (string | null)[]);
  await often(create);
  await sql`select pay.create_environment('env_' || lpad(n::text, 26, '0'), 'a' || n, false, 'a' || n)
    from generate_series(1, 1000) n`;
  await sql`insert into pay.webhook_endpoints
    (environment_id, id, slot, url, delivery, events, status, secrets, revision, created_at, body)
    select 'env_' || lpad(n::text, 26, '0'), 'whe_' || slot, slot, 'http://127.0.0.1:1/', 'url', '{*}', 'enabled',
      '[{"version":1,"salt":"00","expires_at":null}]', 1, now(), '{}'
    from generate_series(1, 1000) n, generate_series(0, 15) slot`;
  assertFew("a create beside 16 000 endpoints", await create(), FEW);
});

/** Addresses of a page, and the pages that the lookup of one row reads. */
const ADDRESSES = 100;
const PAGES_EACH = 15;

costCase("an import reads few pages for each entry at its end", async (t, test) => {
  const { service: { sql, live }, connection, insert, pages } = test;
  const account_id = await addAccount(sql, live.environment_id);
  const [file, before] = ["f".repeat(64), "e".repeat(64)];
  await sql`
    insert into pay.bank_files (environment_id, account_id, sha256, name, imported_at)
    values (${live.environment_id}, ${account_id}, ${file}, 'f', now() - interval '1 day')`;
  const STEPS: [call: string, parameters: string[]][] = [
    ["pay.end_bank_file($1::text, $2::text, $3::text)", [
      account_id,
      file,
      '{ "kind": "camt.054" }',
    ]],
    ["pay.bank_file_state($1::text, $2::text)", [account_id, file]],
  ];
  const step = ([call, parameters]: typeof STEPS[number]) =>
    pages(`select * from ${call}`, parameters);
  for (const each of STEPS) await often(() => step(each));
  for (const [first, sha256] of [[ROWS, before], [0, file]] as const) {
    await insert(
      "bank_entries",
      `account_id, id, sha256, details_sha256, booked_on, amount_minor, currency, seen_in`,
      `'${account_id}', 'e' || n + ${first}, '${sha256}', '${sha256}', now(), 1, 'EUR', 2`,
    );
  }
  await insert(
    "provider_events",
    EVENT,
    `'${account_id}', 'e' || n || ':1', 'authorize', 'succeeded', 1, 'EUR', now(), now(), '{}', null,
     null, null`,
  );
  for (const statistics of ["without", "with"]) {
    if (statistics === "with") await sql`analyze pay.bank_entries, pay.provider_events`;
    for (const each of STEPS) {
      const name = `${each[0]} ${statistics} statistics`;
      await t.step(name, async () => assertFew(name, await step(each), ROWS * PAGES_EACH));
    }
  }
  const [total] = await sql`select provider_minor::int from pay.provider_totals`;
  assert.deepEqual({ ...total }, { provider_minor: 2 * ROWS });
  const [state] = await connection`select * from pay.bank_file_state(${account_id}, ${file})`;
  assert.deepEqual({ ...state }, { waiting: String(ROWS), booked: "0", exceptions: "0" });
});

costCase("pay.watched_deposits() reads few pages for each address", async (_, test) => {
  const { service: { sql, live }, insert, pages } = test;
  const settings = { xpub: "xpub" };
  const account_id = await addAccount(sql, live.environment_id, { connector: "evm", settings });
  const read = () =>
    pages("select * from pay.watched_deposits($1::text, null, $2::text::integer)", [
      account_id,
      String(ADDRESSES),
    ]);
  await often(read);
  await insertPayments(test, "stablecoin");
  await insert(
    "provider_operations",
    OPERATION,
    `${operationOf(account_id, "evm", "'0x' || n")}, 'settled', now(), null`,
  );
  await insert(
    "provider_events",
    EVENT,
    `'${account_id}', '0x' || n || ':opened', 'authorize', 'pending', 1, 'EUR', now(), now(), '{}',
     'pay_' || n, 'applied', now()`,
  );
  await insert(
    "deposit_addresses",
    "account_id, operation_id, payment_id, xpub_index, expires_at, watch_until",
    `'${account_id}', 'pc_' || n, 'pay_' || n, n, now(), now() + interval '1 day'`,
  );
  assertFew(`${ADDRESSES} addresses`, await read(), ADDRESSES * PAGES_EACH);
});

/** Instruments of a sandbox, and those that a batch ends or deletes. */
const INSTRUMENTS = 100_000;
const BATCH = 10;
const ADMITTED =
  `array(select r from jsonb_populate_recordset(null::pay.admission, $1::text::jsonb) r)`;

costCase("instruments: a check, an end and retention read few pages", async (t, test) => {
  const { service: { sql, key: { environment_id, id: api_key_id } }, pages } = test;
  const found = JSON.stringify([{ n: 1, outcome: "ok", api_key_id, environment_id }]);
  const check = (row: Record<string, unknown>) => {
    const checked = { n: 1, at: new Date(), ibans: ["k:1"], sequence: 1, ...row };
    return pages(
      `select pay_internal.check_instruments(pay_internal.requests_of('[{"n":1}]'),
        $2::text::jsonb, ${ADMITTED})`,
      [found, JSON.stringify([checked])],
    );
  };
  const retention = (name: string) => () =>
    pages(`select pay_internal.${name}($1::text, now(), ${BATCH})`, [environment_id]);
  const end = (id: string) => () =>
    pages(
      "select pay_internal.end_instrument(row(1, $1, null, '0')::pay_internal.caller, $2, 'deleted', now())",
      [environment_id, id],
    );
  const CALLS: [name: string, call: () => Promise<number>, most: number][] = [
    ["a save", () => check({ act: "save", customer_id: "u1" }), 150],
    [
      "a mandate",
      () => check({ act: "mandate", mandate_id: "m-7", mandate_sequence: "recurring" }),
      40,
    ],
    ["a use", () => check({ act: "use", id: "ins_7" }), 40],
    ["an end", end("ins_8"), 100],
    ["idle ends", retention("end_idle_instruments"), 100 * BATCH],
    ["a purge", retention("purge_instruments"), 50 * BATCH],
  ];
  // As in the entry functions.
  await test.connection`set enable_seqscan = off`;
  for (const [, call] of CALLS) await often(call);
  await sql`
    insert into pay.instruments (environment_id, id, status, customer_id, method_kind, usage,
      is_kept, mandate_id, signed_at, iban, test_behaviour, payment_id, idle_at, touched_at,
      sequence, created_at, updated_at)
    select ${environment_id}, 'ins_' || n, 'active', 'u' || n % 2500, 'sepa', 'off_session', true,
      'M-' || n, '2026-01-01', 'k:1', 'approve', 'pay_' || n,
      now() + (n - 50) * interval '1 hour', now() + (n - 2592050) * interval '1 second', 1, now(), now()
    from generate_series(1, ${INSTRUMENTS}) n`;
  for (const statistics of ["without", "with"]) {
    if (statistics === "with") await sql`analyze pay.instruments`;
    for (const [name, call, most] of CALLS) {
      await t.step(`${name} ${statistics} statistics`, async () => {
        assertFew(name, await call(), most);
      });
    }
  }
  const [left] = await sql`
    select count(*)::int as all, count(*) filter (where status = 'ended')::int as ended
    from pay.instruments`;
  assert.deepEqual({ ...left }, { all: INSTRUMENTS - 2 * BATCH, ended: 1 + 2 * BATCH });
});
