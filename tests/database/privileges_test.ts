/**
 * Privileges in the schemas `pay` and `pay_internal`, from the catalogue and by attempts: the
 * tables belong to a role that nobody can become, the two callers may execute only their entry
 * functions, and only the owner may use `pay_internal`.
 */

import assert from "node:assert/strict";
import { connect } from "../support/database/database.ts";
import { afterwards } from "../support/database/invariant_breaches.ts";
import { projectFiles, readProjectFile } from "../support/documents/project_files.ts";
import { environmentColumn, startTenants } from "../support/service/tenants.ts";

/** Functions that only the operator's commands call, through the service's store of files. */
const CALLED_BY_OPERATOR = [
  "approve_bank_order",
  "begin_bank_file",
  "end_bank_file",
  "list_bank_orders",
  "store_bank_rows",
];
/** The functions that the service calls: those in its files, and the one of its ticker. */
const ENTRY_FUNCTIONS = await Promise.all(
  (await projectFiles([".ts"], ["shared/"])).map(readProjectFile),
).then((texts) => {
  const called = texts.flatMap((text) => [...text.matchAll(/\bpay\.(\w+)\(/g)]);
  const names = new Set(called.map(([, name]) => name!)).add("note_breaches_hourly");
  return [...names].filter((name) => !CALLED_BY_OPERATOR.includes(name)).sort();
});
/** Functions that the operator's commands call. */
const OPERATOR_FUNCTIONS = [
  "add_provider_account",
  "approve_bank_order",
  "bank_file_state",
  "bank_orders_to_export",
  "begin_bank_file",
  "change_merchant",
  "change_provider_settings",
  "check_books",
  "configure_relay",
  "count_sealed_texts",
  "create_api_key",
  "create_environment",
  "disable_provider_account",
  "dismiss_provider_event",
  "due_wake",
  "end_archive",
  "end_bank_file",
  "end_bank_order",
  "export_payouts",
  "expose",
  "find_bank_orders",
  "find_bank_references",
  "find_environment",
  "forget_breaches",
  "list_api_keys",
  "list_archives",
  "list_bank_exports",
  "list_bank_orders",
  "list_final_events",
  "list_provider_accounts",
  "list_reported_events",
  "list_sealed_texts",
  "list_unsettled_operations",
  "note_archive",
  "note_bank_export",
  "note_breaches",
  "note_wake",
  "open_payouts",
  "purge",
  "read_archive",
  "read_books",
  "read_cron",
  "read_outbox",
  "read_payer_details",
  "read_provider_operation",
  "read_provider_subject",
  "read_providers",
  "read_reported_events",
  "read_sealed_texts",
  "read_server",
  "read_service",
  "read_wakes",
  "recent_wakes",
  "reconcile",
  "record",
  "reread_account",
  "revoke_api_key",
  "rotate_api_key",
  "set_bridge_hash",
  "settle_entry_details",
  "split_bank_entry",
  "store_bank_exports",
  "store_bank_rows",
  "store_sealed_texts",
  "sum_archive",
  "unexpose",
  "wake_dispatcher",
  "write_search_words",
];
/**
 * The search_path of every function. Temporary tables come last (security design §1).
 */
const PINNED_PATH = "search_path=pg_catalog, pg_temp";
/** SQL for the oids of the schemas. */
const OURS = `('pay'::regnamespace, 'pay_internal'::regnamespace)`;
/** SQL for the oids of the tables that not all tenants share. Their rows can be moved alone. */
const TENANTS = `(select oid from pg_class where relnamespace = 'pay'::regnamespace
  and relkind in ('r', 'p') and relname not in ('environments', 'api_keys', 'api_key_secrets',
    'settings', 'dispatcher_wakes', 'xpub_counters', 'signer_nonces'))`;

/** Catalogue queries that must find nothing, each with a change that it must find. */
const NOTHING: [what: string, query: string, violation: string][] = [
  [
    "a role of the service that can log in or bypass row-level security",
    `select rolname from pg_roles where rolname in ('pay_owner', 'pay_api', 'pay_operator', 'pay_reader')
     and (rolcanlogin or rolsuper or rolbypassrls or rolcreaterole or rolcreatedb
       or rolreplication)`,
    "alter role pay_owner bypassrls",
  ],
  [
    // From PostgreSQL 16 on, the role that creates a role may grant it. This is stored as a
    // membership by which it neither inherits the role's privileges nor becomes the role.
    "a member of pay_owner or pay_reader, or a role that they belong to",
    `select * from pg_auth_members m
     where ('pay_owner'::regrole in (roleid, member) or 'pay_reader'::regrole in (roleid, member))
     and coalesce((to_jsonb(m) ->> 'inherit_option')::boolean
       or (to_jsonb(m) ->> 'set_option')::boolean, true)`,
    "grant pay_owner to pay_api",
  ],
  [
    "a role that pay_api or pay_operator belongs to",
    `select * from pg_auth_members where member in ('pay_api'::regrole, 'pay_operator'::regrole)`,
    "grant pay_operator to pay_api",
  ],
  [
    "a relation that another role owns",
    `select relname from pg_class
     where relnamespace in ${OURS} and relowner <> 'pay_owner'::regrole`,
    "alter table pay.refunds owner to pay_operator",
  ],
  [
    "a function that another role owns",
    `select proname from pg_proc
     where pronamespace in ${OURS} and proowner <> 'pay_owner'::regrole`,
    "alter function pay_internal.admit owner to pay_operator",
  ],
  [
    "a schema that another role owns",
    `select * from pg_namespace
     where oid in ${OURS} and nspowner <> 'pay_owner'::regrole`,
    "alter schema pay_internal owner to pay_operator",
  ],
  [
    "a table without forced row-level security",
    `select relname from pg_class where relnamespace = 'pay'::regnamespace
     and relkind in ('r', 'p') and not (relrowsecurity and relforcerowsecurity)`,
    "alter table pay.refunds no force row level security",
  ],
  [
    "a table without a policy",
    `select relname from pg_class c where relnamespace = 'pay'::regnamespace
     and relkind in ('r', 'p') and not exists (select from pg_policy where polrelid = c.oid)`,
    "drop policy rate_counters_of_environment on pay.rate_counters",
  ],
  [
    "a policy for anyone but pay_owner",
    `select polname from pg_policy where polroles <> array['pay_owner'::regrole::oid]`,
    "create policy all_of_it on pay.refunds using (true)",
  ],
  [
    "a view that runs with its owner's rights",
    `select relname from pg_class where relnamespace in ${OURS} and relkind = 'v'
     and not coalesce('security_invoker=true' = any (reloptions), false)`,
    "create view pay.mine as select * from pay.refunds",
  ],
  [
    "a privilege on a table for anyone but its owner",
    `select relname, a.grantee from pg_class c, aclexplode(c.relacl) a
     where relnamespace in ${OURS} and a.grantee <> c.relowner
       and (relkind, a.grantee, a.privilege_type) <> ('v', 'pay_operator'::regrole, 'SELECT')`,
    "grant references on pay.refunds to pay_api",
  ],
  [
    "a privilege on a column",
    `select attrelid::regclass, attname from pg_attribute a join pg_class c on c.oid = a.attrelid
     where c.relnamespace in ${OURS} and a.attacl is not null`,
    "grant select (id) on pay.refunds to public",
  ],
  [
    "a function that everyone may execute",
    `select proname from pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
     where pronamespace in ${OURS} and a.grantee = 0`,
    "create function pay_internal.mine() returns int language sql return 1",
  ],
  [
    "a function of pay that only its owner may execute",
    `select proname from pg_proc p where pronamespace = 'pay'::regnamespace
     and not exists (select from aclexplode(p.proacl) a where a.grantee <> p.proowner)`,
    "revoke execute on function pay.balance from pay_api",
  ],
  [
    "a function of pay_internal that another role may execute, or that has its owner's rights",
    `select proname from pg_proc p where pronamespace = 'pay_internal'::regnamespace
     and (prosecdef or exists (select from aclexplode(p.proacl) a where a.grantee <> p.proowner))`,
    "alter function pay_internal.admit security definer",
  ],
  [
    "a table in pay_internal",
    `select relname from pg_class where relnamespace = 'pay_internal'::regnamespace
     and relkind not in ('v', 'c')`,
    "create table pay_internal.mine (id int)",
  ],
  [
    "a function without the pinned search_path",
    `select proname, proconfig from pg_proc where pronamespace in ${OURS}
     and not coalesce('${PINNED_PATH}' = any (proconfig), false)`,
    "alter function pay.load set search_path = ''",
  ],
  [
    "an entry function that runs with its caller's rights",
    // wake_dispatcher posts with the rights of the job that calls it, and reads through due_wake.
    // read_cron and read_wakes have the rights of their caller. expose and unexpose make a schema,
    // which only the role that deploys can.
    `select proname from pg_proc p where pronamespace = 'pay'::regnamespace and not prosecdef
     and proname not in ('wake_dispatcher', 'read_cron', 'read_wakes', 'expose', 'unexpose')
     and exists (select from aclexplode(p.proacl) a where a.grantee <> p.proowner)`,
    "alter function pay.load security invoker",
  ],
  [
    "a privilege on the schema beyond usage by the two callers",
    `select a.grantee, a.privilege_type from pg_namespace n, aclexplode(n.nspacl) a
     where oid in ${OURS} and a.grantee <> n.nspowner
       and (nspname <> 'pay' or a.privilege_type <> 'USAGE' or a.grantee not in ('pay_api'::regrole, 'pay_operator'::regrole) or a.is_grantable)`,
    "grant usage on schema pay_internal to pay_api",
  ],
  [
    "a key of tenants' data that does not begin with environment_id",
    `select conname from pg_constraint c
     join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
     where c.conrelid in ${TENANTS} and c.contype in ('p', 'u', 'f', 'x')
       and a.attname <> 'environment_id'`,
    "alter table pay.refunds add unique (id, environment_id)",
  ],
  [
    "a reference to tenants' data that does not begin with environment_id",
    `select conname from pg_constraint c
     join pg_attribute a on a.attrelid = c.confrelid and a.attnum = c.confkey[1]
     where c.conrelid in ${TENANTS} and c.confrelid in ${TENANTS}
       and a.attname <> 'environment_id'`,
    `alter table pay.payments add unique (id, environment_id);
     alter table pay.refunds add foreign key (payment_id, environment_id)
       references pay.payments (id, environment_id)`,
  ],
  [
    "a unique index of tenants' data that does not begin with environment_id",
    `select indexrelid::regclass from pg_index i
     join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
     where i.indrelid in ${TENANTS} and i.indisunique and a.attname <> 'environment_id'`,
    "create unique index on pay.refunds (id, environment_id)",
  ],
  [
    "a table of tenants' data without a primary key",
    `select t.oid from unnest(array${TENANTS}) t (oid)
     where not exists (select from pg_constraint where conrelid = t.oid and contype = 'p')`,
    "alter table pay.payments drop constraint payments_pkey",
  ],
  [
    "a foreign key of tenants' data to a row that every request shares",
    `select conname from pg_constraint where connamespace = 'pay'::regnamespace and contype = 'f'
     and conrelid::regclass::text not in
         ('pay.api_keys', 'pay.api_key_secrets', 'pay.provider_methods')`,
    "alter table pay.refunds add foreign key (environment_id) references pay.environments",
  ],
];

/** Statements that pay_api may not execute: insufficient_privilege. */
const FORBIDDEN: [what: string, statement: string][] = [
  ["becoming the owner", "set role pay_owner"],
  ["becoming the operator", "set role pay_operator"],
  ["a table in the schema", "create table pay.mine (id int)"],
  ["a use of pay_internal", "select pay_internal.server_time()"],
  ["a function in the schema", "create function pay.mine() returns int language sql return 1"],
  ["changing a function", "alter function pay.load set search_path = public"],
  ["dropping a policy", "drop policy payments_of_environment on pay.payments"],
  [
    "a trigger",
    "create trigger mine after insert on pay.payments execute function pay_internal.admit()",
  ],
  ["the table of migrations", "select * from supabase_migrations.schema_migrations"],
];

Deno.test("privileges in the schema pay", async (t) => {
  await using tenants = await startTenants();
  const { service, tables } = tenants;
  await using functions = connect(service.database.functions_url);
  const catalogue = (text: string) => service.sql.unsafe(text);
  const refused = (statement: string) =>
    assert.rejects(functions.unsafe(statement), { code: "42501" }, statement);
  for (const [what, query, violation] of NOTHING) {
    await t.step(`the catalogue has no violation: ${what}`, async () => {
      assert.deepEqual([...await catalogue(query)], []);
      const found = await afterwards(service.sql, violation, (session) => session.unsafe(query));
      assert.ok(found.length > 0, violation);
    });
  }
  for (
    const [role, entries] of [
      ["pay_api", ENTRY_FUNCTIONS],
      ["pay_operator", OPERATOR_FUNCTIONS],
    ] as const
  ) {
    await t.step(`${role} may execute only ${entries.join(", ")}`, async () => {
      const rows = await catalogue(`select proname from pg_proc
        where pronamespace = 'pay'::regnamespace
          and has_function_privilege('${role}', oid, 'execute')
        order by proname collate "C"`);
      assert.deepEqual(rows.map(({ proname }) => proname), entries);
    });
  }
  for (const table of tables) {
    await t.step(`pay_api is refused every use of ${table}`, async () => {
      await refused(`select from pay.${table}`);
      await refused(`insert into pay.${table} default values`);
      await refused(`update pay.${table} set ${environmentColumn(table)} = ''`);
      await refused(`delete from pay.${table}`);
      await refused(`truncate pay.${table}`);
      await refused(`do 'begin lock table pay.${table} in access share mode; end'`);
      await refused(`copy pay.${table} to stdout`);
    });
  }
  const rows = await catalogue(`select pronamespace::regnamespace || '.' || proname as name,
      pronargs, prokind
    from pg_proc
    where pronamespace in ${OURS} and prorettype <> 'trigger'::regtype`);
  for (const { name, pronargs, prokind } of rows) {
    if (ENTRY_FUNCTIONS.includes(String(name).replace("pay.", ""))) continue;
    const args = Array.from({ length: Number(pronargs) }, () => "null").join(", ");
    await t.step(
      `pay_api is refused ${name}()`,
      () => refused(`${prokind === "p" ? "call" : "select"} ${name}(${args})`),
    );
  }
  for (const [what, statement] of FORBIDDEN) {
    await t.step(`pay_api is refused ${what}`, () => refused(statement));
  }
});
