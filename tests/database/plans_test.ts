/**
 * Plans and the indexes that they use. The plans of statements depend on options of their
 * functions; on_postgres_15.ts checks a whole run for compiled statements.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { cloneDatabase, connect } from "../support/database/database.ts";
import { afterwards } from "../support/database/invariant_breaches.ts";
import { serviceCase } from "../support/service/service_case.ts";

async function withDatabase(work: (sql: postgres.Sql) => Promise<void>): Promise<void> {
  await using database = await cloneDatabase();
  await using sql = connect(database.url);
  await work(sql);
}

/**
 * Calls whose tables are too small in other tests for the planner to need an index, and the indexes
 * that they read in large ones.
 */
const CALLS: [call: string, ...indexes: string[]][] = [
  ["pay_internal.end_watches(null, now(), 10)", "deposit_addresses_watch_until"],
  ["pay_internal.take_sandbox_quota('a', now())", "sandboxes_alive"],
  ["pay_internal.retire_ended_sandboxes(null, now())", "environments_ending"],
  ["pay_internal.purge_sandboxes(null, now(), 10)", "sandboxes_ended"],
  ["pay_internal.free_seed('x', now())", "sandbox_settings_seed_root"],
  ["pay.open_payouts('pac_x')", "chain_payouts_account"],
  ["pay.find_environment('a', true)", "environments_one_live_per_account"],
];

for (const [call, ...indexes] of CALLS) {
  Deno.test(`${call} reads ${indexes.join(" and ")}`, () =>
    withDatabase(async (sql) => {
      const scans = async () => {
        await sql`select pg_stat_force_next_flush()`;
        const rows = await sql<{ name: string; scans: number }[]>`
          select indexrelname as name, idx_scan::int as scans from pg_stat_user_indexes
          where indexrelname = any (${indexes})`;
        return new Map(rows.map(({ name, scans }) => [name, scans]));
      };
      // In place of a large table, whose whole reading the planner avoids.
      await sql`set enable_seqscan = off`;
      const before = await scans();
      await sql.unsafe(`select * from ${call}`);
      const after = await scans();
      assert.deepEqual(indexes.filter((name) => after.get(name) === before.get(name)), []);
    }));
}

Deno.test("pay.read_providers() reads only the operations without a result", () =>
  withDatabase(async (sql) => {
    const environment_id = `env_${"0".repeat(26)}`;
    await sql`select pay.create_environment(${environment_id}, 'a', true, 'a')`;
    await sql`insert into pay.provider_operations (environment_id, id, account_id, connector, op,
        subject_id, amount_minor, currency, request, state, attempts, created_at, first_sent_at,
        next_attempt_at, settled_at, may_repeat, api_key_id, request_id, decline_is_error)
      select ${environment_id}, 'pc_' || n, 'pac_1', 'stripe', 'capture', 'pay_' || n, 1, 'EUR',
        '{}', case when n > 3 then 'settled' else 'pending' end, 1, now(), now(),
        case when n <= 3 then now() end, case when n > 3 then now() end, true, 'key', 'req', false
      from generate_series(1, 20000) n`;
    await sql`analyze pay.provider_operations`;
    const read = async () => {
      await sql`select pg_stat_force_next_flush()`;
      const [row] = await sql`select coalesce(sum(seq_tup_read), 0)::int as all_rows, (
          select idx_scan::int from pg_stat_user_indexes
          where indexrelname = 'provider_operations_unsettled') as scans
        from pg_stat_user_tables where relname = 'provider_operations'`;
      return row!;
    };
    const before = await read();
    const [found] = await sql`select unsettled_operations::int as n from pay.read_providers()`;
    const after = await read();
    assert.equal(found!.n, 3);
    assert.ok(after.scans > before.scans, "the index");
    assert.equal(after.all_rows, before.all_rows, "no reading of the whole table");
  }));

/** Catalogue queries that must find nothing, each with a change that it must find. */
const NOTHING: [what: string, query: string, violation: string][] = [
  [
    // A statement inside takes the setting of the function that was called.
    "an entry function whose statements PostgreSQL can compile",
    `select proname from pg_proc p where pronamespace = 'pay'::regnamespace
     and (has_function_privilege('pay_api', p.oid, 'execute')
       or has_function_privilege('pay_operator', p.oid, 'execute'))
     and not coalesce('jit=off' = any (proconfig), false)`,
    "alter function pay.load reset jit",
  ],
  [
    "a function of the service without settings for its plans",
    `select proname from pg_proc p where pronamespace = 'pay'::regnamespace
     and has_function_privilege('pay_api', p.oid, 'execute')
     and (not coalesce(proconfig::text ~ 'enable_seqscan=', false)
       or not coalesce(proconfig::text ~ 'plan_cache_mode=', false))`,
    "alter function pay.load reset enable_seqscan",
  ],
  [
    "a function for which the planner assumes its default of 1 000 rows",
    `select proname from pg_proc
     where pronamespace in ('pay'::regnamespace, 'pay_internal'::regnamespace) and proretset
     and prorows = 1000`,
    "alter function pay.read_outbox rows 1000",
  ],
  [
    // Each change of the referenced row reads the whole table.
    "a foreign key whose first column begins no index",
    `select conname from pg_constraint c where contype = 'f' and connamespace = 'pay'::regnamespace
     and not exists (select from pg_index x
       where x.indrelid = c.conrelid and x.indpred is null and x.indkey[0] = c.conkey[1])`,
    "drop index pay.api_key_secrets_api_key",
  ],
];

for (const [what, query, violation] of NOTHING) {
  Deno.test(`the catalogue has no violation: ${what}`, () =>
    withDatabase(async (sql) => {
      assert.deepEqual([...await sql.unsafe(query)], []);
      const found = await afterwards(sql, violation, (session) => session.unsafe(query));
      assert.ok(found.length > 0, violation);
    }));
}

Deno.test("pay.health costs less than PostgreSQL compiles", () =>
  withDatabase(async (sql) => {
    const [row] = await sql`explain (format json) select * from pay.health`;
    const cost = row!["QUERY PLAN"][0].Plan["Total Cost"];
    // The default of jit_above_cost.
    assert.ok(cost < 100_000, `cost ${cost}`);
  }));

/** Events with a stored response each. */
const BOOKED = 10_000;

/** A node of a plan, as `explain (format json)` has it. */
interface Node {
  "Node Type": string;
  Plans?: Node[];
}

/** Nodes that give few rows, or look the rows up. */
const CHEAP = /^(Values|Function|Index|Index Only) Scan$|^Result$|^Limit$/;

serviceCase("no invariant compares each row with each of another table", async (_, service) => {
  const { sql, key: { environment_id } } = service;
  // PostgreSQL has no statistics of them.
  await sql.unsafe(
    `with row as (
      select n, substr(pay_internal.id_floor('', now()), 1, 9) || lpad(n::text, 17, '0') as suffix
      from generate_series(1, $2::int) n
    ), keys as (
      insert into pay.idempotency_keys (environment_id, api_key_id, key, fingerprint, request_id,
        status, subject_id, sequence, created_at, request_line)
      select $1, 'key_' || repeat('0', 26), suffix, sha256(suffix::bytea), 'req_' || suffix, 201,
        'pay_' || suffix, 1, now(), 'POST /x'
      from row
    )
    insert into pay.events (environment_id, id, type, subject_id, sequence, created_at, request_id,
      idempotency_key)
    select $1, 'evt_' || suffix, 'payment.created', 'pay_' || suffix, 1, now(), 'req_' || suffix,
      suffix
    from row`,
    [environment_id, BOOKED],
  );
  const names = await sql<{ invariant: string }[]>`
    select invariant from pay_internal.list_invariants() order by 1`;
  const plans = await sql.begin(async (sql) => {
    await sql`set local role pay_owner`;
    await sql`set local jit = off`;
    // The settings of the function.
    await sql`select set_config(split_part(setting, '=', 1), split_part(setting, '=', 2), true)
      from pg_proc p cross join unnest(p.proconfig || '{pay.worker=on}') as s (setting)
      where p.oid = 'pay_internal.find_breaches(text)'::regprocedure
        and setting not like 'search\\_path=%'`;
    return await Promise.all(names.map(async ({ invariant }) => {
      const [row] = await sql.unsafe(`explain (format json)
        select f.* from pay.${invariant} f left join pay.environments e on e.id = f.environment_id
        where e.retired_at is null and e.moving is null`);
      return [invariant, row!["QUERY PLAN"][0].Plan as Node] as const;
    }));
  });
  const costly = plans.flatMap(([invariant, plan]) =>
    nodesOf(plan).filter(isQuadratic).map((node) => `${invariant}: ${node["Node Type"]}`)
  );
  assert.ok(plans.length > 20);
  assert.deepEqual(costly, []);
});

function nodesOf(node: Node): Node[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)];
}

/** Reports whether a join compares more rows than those with equal keys. */
function isQuadratic({ "Node Type": type, Plans = [] }: Node): boolean {
  return type === "Merge Join" || type === "Nested Loop" && !CHEAP.test(Plans[1]!["Node Type"]);
}
