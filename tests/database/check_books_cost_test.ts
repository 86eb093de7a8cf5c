/** The joins of `pay.check_books()`: their time grows with the rows, not with the square of them. */

import assert from "node:assert/strict";
import { serviceCase } from "../support/service/service_case.ts";

const ROWS = 10_000;

/** A node of a plan, as `explain (format json)` has it. */
interface Node {
  "Node Type": string;
  Plans?: Node[];
}

/** Nodes that give few rows, or look the rows up. */
const CHEAP = /^(Values|Function|Index|Index Only) Scan$|^Result$|^Limit$/;

serviceCase(
  "no invariant compares each row of a table with each of another",
  async (_, service) => {
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
      [environment_id, ROWS],
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
  },
);

function nodesOf(node: Node): Node[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)];
}

/** Reports whether a join compares more rows than those with equal keys. */
function isQuadratic({ "Node Type": type, Plans = [] }: Node): boolean {
  return type === "Merge Join" || type === "Nested Loop" && !CHEAP.test(Plans[1]!["Node Type"]);
}
