/**
 * `deno task cells` moves an account while it is written to: nothing that was acknowledged is lost,
 * each webhook arrives once, and the account is in one cell.
 */

import assert from "node:assert/strict";
import type postgres from "postgres";
import { tenantTables } from "../../apps/operator/cells_database.ts";
import { switchLabels } from "../../apps/operator/cells_proxy.ts";
import { testWith } from "../support/common/programs.ts";
import { openTwoCells, type TwoCells } from "../support/cells/cell_servers.ts";
import { can_mount, mountSmallDisk } from "../support/common/small_disk.ts";
import { pause, until } from "../support/common/until.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { findHaproxy } from "../support/proxy/haproxy.ts";
import { keyedCall } from "../support/service/keyed_call.ts";
import { openRecorder } from "../support/webhook/recording_receiver.ts";

const PAYMENTS = "/functions/v1/api-v1-payments/v1";
const SANDBOX = "/functions/v1/api-v1-sandbox";
const CREATE = [`${PAYMENTS}/payments`, {
  amount: 1999,
  currency: "EUR",
  outcome: "success",
}] as const;
const MIB = 2 ** 20;
/** Nothing listens there. */
const AWAY = "postgres://127.0.0.1:9/none";

/** Sends a request through the proxy, again while the response is 503 as an integration does. */
async function send(
  { proxy }: TwoCells,
  key: string,
  method: string,
  path: string,
  body?: unknown,
  idempotency_key: string = crypto.randomUUID(),
) {
  for (;;) {
    const keyed = method === "POST" && { idempotency_key };
    const { status, headers, text } = await keyedCall(proxy.origin, method, path, {
      ...{ key, body },
      ...keyed,
    });
    if (status !== 503) return { status, text, idempotency_key };
    assert.equal(headers.get("Retry-After"), "1", text);
    await pause(100);
  }
}

/** The state of the environments of the account in a cell. */
async function stateOf(sql: postgres.Sql): Promise<string> {
  const rows = await sql<{ state: string }[]>`
    select distinct coalesce(moving, 'open') as state from pay.environments where account = 'acme'`;
  return rows.map(({ state }) => state).join() || "nothing";
}

const SIGNER = "0x000000000000000000000000000000000000dEaD";
const OPERATION = "op_" + "0".repeat(26);
const CHAIN = "pac_" + "0".repeat(26);
const UNUSED_CHAIN = "pac_" + "1".repeat(26);
const OTHER_CHAIN = "pac_" + "3".repeat(26);
/** Keys that have given no address and no nonce yet. */
const UNUSED = { xpub: "xpub2", signer_address: "0x000000000000000000000000000000000000bEEF" };

/** Adds a chain to the live environment of an account. */
async function addChain(
  sql: postgres.Sql,
  id: string,
  account: string,
  settings: Record<string, string>,
  methods = ["stablecoin"],
): Promise<void> {
  const stored = { network: "ethereum", rpc_urls: "http://127.0.0.1:9,http://localhost:9" };
  await sql.begin(async (sql) => {
    await sql`select pay.add_provider_account(${id}, e.id, 'evm', ${methods},
      ${JSON.stringify({ ...stored, ...settings })}, null, ${[]})
      from pay.environments e where e.account = ${account} and e.livemode`;
    // No node responds, and a drain would wait for the reading.
    await sql`update pay.provider_cursors set polled_at = now() + interval '1 hour'`;
  });
}

/** Gives the account a chain that has given seven addresses and eight nonces, and one without. */
async function countChain(sql: postgres.Sql): Promise<void> {
  await addChain(sql, CHAIN, "acme", { xpub: "xpub1", signer_address: SIGNER });
  await addChain(sql, UNUSED_CHAIN, "acme", { ...UNUSED, network: "base" }, []);
  await sql`insert into pay.xpub_counters (xpub, next_index) values ('xpub1', 7)`;
  await sql`insert into pay.signer_nonces (chain_id, signer, next_nonce) values (1, ${SIGNER}, 8)`;
}

/** The rows of the account, by their tables, as a backup of its cell has them. */
async function backUp({ sql, url }: TwoCells["a"]): Promise<Map<string, string[]>> {
  const rows = new Map<string, string[]>();
  for (const { name } of await tenantTables({ sql, url, side: "source" })) {
    const found = await sql.unsafe<{ row: string }[]>(
      `select t::text as row from pay.${name} t
       join pay.environments e on e.id = t.environment_id and e.account = 'acme'`,
    );
    rows.set(name, found.map(({ row }) => row));
  }
  return rows;
}

/** Writes these rows, without the triggers that a restore does not run either. */
async function restore(sql: postgres.Sql, backup: Map<string, string[]>): Promise<void> {
  await sql.begin(async (sql) => {
    await sql`set local session_replication_role = replica`;
    for (const [name, rows] of backup) {
      await sql.unsafe(
        `insert into pay.${name} select (r.text::pay.${name}).* from unnest($1::text[]) r (text)`,
        [rows],
      );
    }
  });
}

async function countersOf(sql: postgres.Sql) {
  const [row] = await sql`
    select x.next_index::integer, n.next_nonce::integer,
      x.left_at is not null and n.left_at is not null as has_left
    from pay.xpub_counters x, pay.signer_nonces n
    where x.xpub = 'xpub1' and n.signer = ${SIGNER}`;
  return { ...row };
}

/** Writes an operation that a request has under way at a provider. */
async function sendOperation(sql: postgres.Sql): Promise<void> {
  await sql`
    insert into pay.provider_operations (environment_id, id, account_id, connector, op, subject_id,
      amount_minor, currency, request, state, attempts, created_at, next_attempt_at, leased_until,
      may_repeat, api_key_id, request_id, decline_is_error)
    select e.id, ${OPERATION}, ${CHAIN}, 'evm', 'transfer', 'tr_none', 1, 'USDC',
      '{}', 'pending', 1, now(), now(), 'infinity', false, 'key_none', 'req_none', false
    from pay.environments e where e.account = 'acme' and e.livemode`;
}

testWith("haproxy", await findHaproxy() !== null, "an account moves to another cell", async (t) => {
  await using open = new AsyncDisposableStack();
  const cells = await openTwoCells(open);
  const { a, b } = cells;
  const receiver = open.use(openRecorder());
  const key = await a.makeKey("acme", "sk7f");
  const live_key = await a.makeKey("acme", "sk7f", true);
  await b.makeKey("other", "sk8q");
  await countChain(a.sql);
  // As the account left it here when it moved away before.
  await b.sql`insert into pay.xpub_counters values ('xpub1', 2, now())`;
  await b.sql`insert into pay.signer_nonces values (1, ${SIGNER}, 3, now())`;
  const saving = { ...CREATE[1], card: { token: "pm_card_visa" }, save: "off_session" };
  const { text } = await send(cells, key, "POST", CREATE[0], {
    ...{ ...saving, customer: { id: "c1", email: "c@example.com" } },
  });
  const saved = JSON.parse(text);
  /** A payment by an instrument, which moves with its account. */
  const USE = [CREATE[0], {
    ...{ amount: 1999, currency: "EUR", instrument: saved.instrument_id, off_session: true },
  }] as const;
  await send(cells, key, "POST", `${PAYMENTS}/webhook_endpoints`, {
    url: receiver.url("/hook"),
    events: ["payment.completed"],
  });
  /** The idempotency keys of the payments that were acknowledged. */
  const paid = new Map<string, string>();
  const pay = async () => {
    const { status, text, idempotency_key } = await send(cells, key, "POST", ...USE);
    assert.equal(status, 201, text);
    paid.set(JSON.parse(text).id, idempotency_key);
  };
  await Promise.all(Array.from({ length: 39 }, pay));
  const makeSandbox = async (body: unknown = {}) => {
    const made = await send(cells, key, "POST", `${SANDBOX}/sandboxes`, body);
    assert.equal(made.status, 201, made.text);
    return JSON.parse(made.text) as { id: string; test_key: string };
  };
  const { test_key: sandbox_key } = await makeSandbox();
  const { test_key: seeded_key } = await makeSandbox({ seed: "moved" });
  const move = cells.moveTo(b, "acme");
  const { map_file, socket } = cells.proxy;
  const abort = [...move.slice(0, 2), "abort", "--account", "acme"];
  const runs = async (args: readonly string[], code: number, output: RegExp) => {
    const ended = await cells.run(args);
    assert.match(ended.output, output);
    assert.equal(ended.code, code);
  };
  const tellsStatus = async (expected: string | RegExp) => {
    const { output } = await cells.run([...abort.slice(0, 2), "status"]);
    if (typeof expected === "string") assert.equal(output, expected);
    else assert.match(output, expected);
  };
  /** The command with another value of a flag or of a variable. */
  const but = (name: string, value: string) =>
    move.map((each, i) => {
      if (move[i - 1] === name) return value;
      return each.startsWith(`${name}=`) ? `${name}=${value}` : each;
    });

  await t.step("a wrong move is refused", async () => {
    const twice = await Deno.makeTempFile();
    await Deno.writeTextFile(twice, "sk7f a\nsk7f b\n");
    const absent = await Deno.makeTempFile();
    await Deno.writeTextFile(absent, "sk7f a\nsk9c c\n");
    await Promise.all([
      runs(but("CELLS_TO_URL", a.url), 1, /are on one server/),
      runs(but("CELLS_TO_URL", new URL("/template1", a.url).href), 1, /are on one server/),
      ...[[], ["--run"]].map((run) =>
        runs([...but("CELLS_TO_URL", AWAY), ...run], 1, /^CELLS_TO_URL does not respond: \w+/)
      ),
      runs(but("CELLS_TO_URL", "http://b"), 2, /CELLS_TO_URL must be a URL/),
      runs(but("CELLS_TO_URL", ""), 2, /Set CELLS_TO_URL /),
      runs([...move, "--to", AWAY], 2, /Unknown option '--to'/),
      runs(["list", "--map", twice], 2, /Line 2/),
      runs(["list", "--map", absent], 0, /^sk7f {9}a\nsk9c {9}c\n$/),
      runs(["list", "--map", map_file, "--socket", socket], 0, /^sk7f {9}a\nsk8q {9}b\n$/),
      runs(["list", "--map", absent, "--socket", socket], 1, /^The proxy has .* "cell_c": add/),
    ]);
    await runs(but("--account", "nobody"), 2, /"nobody" does not exist at the source/);
    await runs(but("--account", "other"), 2, /"other" is at the target already/);
    await runs(but("--cell", "c"), 1, /no backend "cell_c"/);
    await runs(but("--map", "/nowhere"), 2, /--map \/nowhere cannot be read/);
    await runs(but("--map", twice), 2, /Line 2 of the map: the label "sk7f" is in line 1 too/);
    await Promise.all([twice, absent].map((file) => Deno.remove(file)));
    await b.sql`insert into supabase_migrations.schema_migrations values ('99999999999999')`;
    await runs(move, 1, /different migrations/);
    await b
      .sql`delete from supabase_migrations.schema_migrations where version = '99999999999999'`;
    await a.makeKey("neighbour", "sk7f");
    await runs(move, 1, /"neighbour" at the source has keys with the same label/);
    await a.sql`delete from pay.api_key_secrets where account = 'neighbour'`;
    await b.makeKey("rival", "sk7f");
    await runs(move, 1, /"rival" at the target has keys with the same label/);
    await b.sql`delete from pay.api_key_secrets where account = 'rival'`;
    await runs(abort, 2, /No move of --account "acme"/);
    await a.sql`update pay.environments set moving = 'arriving' where account = 'acme'`;
    await runs(move, 1, /"acme" has not arrived at the source yet/);
    await a.sql`update pay.environments set moving = null where account = 'acme'`;
  });
  await t.step("without --run nothing changes", async () => {
    const { code, output } = await cells.run(move);
    assert.equal(code, 0, output);
    assert.match(output, /account "acme", 4 environments, labels sk7f → b\n/);
    assert.match(output, /payments: 40\n[^]*same WEBHOOK_MASTER_SECRET\nNothing was changed/);
    assert.equal(await stateOf(b.sql), "nothing");
    assert.equal((await a.sql`select from pg_publication`).length, 0);
  });
  await t.step("a key that another account counts stands in the way, and is named", async () => {
    const keys_of = (sql: postgres.Sql, settings: Record<string, string>) =>
      sql`update pay.provider_accounts set settings = settings || ${sql.json(settings)}
        where id = ${OTHER_CHAIN}`;
    await b.makeKey("other", "sk8q", true);
    await addChain(b.sql, OTHER_CHAIN, "other", { xpub: UNUSED.xpub });
    await runs(move, 1, /"other" at the target uses the same extended public key or signer/);
    await keys_of(b.sql, { signer_address: UNUSED.signer_address.toLowerCase() });
    const twice = "both cells count it, and give the same addresses or nonces twice";
    await tellsStatus(
      "No account is moving\n" +
        `${UNUSED.signer_address.toLowerCase()}: ${twice}\n${UNUSED.xpub}: ${twice}\n`,
    );
    await keys_of(b.sql, { xpub: "xpub4", signer_address: "0x4" });
    await tellsStatus("No account is moving\n");
  });
  /** With a sandbox that ends soon. */
  const environments = await a.sql<Record<string, unknown>[]>`
    select * from pay.environments where account = 'acme'`;
  const backup = await backUp(a);
  await t.step("a copy with a fault and an abort leave it in its cell", async () => {
    const mover = cells.start([...move, "--run"]);
    await until("the copy is there", () => mover.output().includes("copy: complete"));
    mover.kill("SIGKILL");
    await mover.ended;
    // One line: the rows that have arrived at the target are those of this copy.
    await tellsStatus(/^"acme" → b: \w+ at the source, the copy is \d+ \w+ behind\n$/);
    await b.sql`delete from pay.idempotency_keys where key = (
      select min(key) from pay.idempotency_keys)`;
    await runs([...move, "--run"], 1, /different rows in idempotency_keys: the account stays/);
    assert.deepEqual([await stateOf(a.sql), await stateOf(b.sql)], ["open", "arriving"]);
    // As a mover leaves it that was killed after the proxy had switched, and an abort to which the
    // proxy did not respond.
    await a.sql`update pay.environments set moving = 'sealed' where account = 'acme'`;
    const map = await Deno.readTextFile(map_file);
    await switchLabels({ file: map_file, sockets: [socket] }, ["sk7f"], "b");
    await Deno.writeTextFile(map_file, map);
    const aborted = await cells.run([...abort, "--keep", "1"]);
    assert.equal(aborted.code, 0, aborted.output);
    assert.equal(await Deno.readTextFile(map_file), map);
    assert.deepEqual([await stateOf(a.sql), await stateOf(b.sql)], ["open", "nothing"]);
    assert.equal((await a.sql`select from pg_replication_slots`).length, 0);
    await pay();
  });
  await t.step("while it is written to", async () => {
    let is_over = false;
    const buyers = Array.from({ length: 4 }, async () => {
      while (!is_over) await pay();
    });
    await sendOperation(a.sql);
    const ended = await makeSandbox();
    const mover = cells.start([...move, "--run"]);
    // As a crash of the target leaves a table if it takes back that the table is complete.
    await until("a table is complete", async () => {
      const { count } = await b.sql.begin(async (sql) => {
        await sql`set local allow_system_table_mods = on`;
        return await sql`update pg_subscription_rel set srsubstate = 'f' where srrelid = (
          select max(srrelid) from pg_subscription_rel where srsubstate = 'r')`;
      });
      return count === 1;
    });
    await until("the copy begins again", () => /lost\ncopy: 5 env/.test(mover.output()));
    // Retention deletes environments that have arrived.
    assert.equal((await send(cells, sandbox_key, "POST", `${SANDBOX}/reset`)).status, 200);
    const { status } = await send(cells, key, "DELETE", `${SANDBOX}/sandboxes/${ended.id}`);
    assert.equal(status, 200);
    await until("retired environments are gone", async () => {
      await a.sql`select pay.purge()`;
      const retired = await a.sql`select from pay.environments where retired_at is not null`;
      return retired.length === 0;
    });
    // Its changes are not published.
    const { test_key: late_key } = await makeSandbox();
    // More than a stream holds.
    await Promise.all(
      Array.from({ length: 60 }, async () => {
        assert.equal((await send(cells, late_key, "POST", ...CREATE)).status, 201);
      }),
    );
    await until("the fence is there", async () => await stateOf(a.sql) === "fenced");
    await pause(500);
    assert.doesNotMatch(mover.output(), /fence: requests wait/, "an operation is under way");
    await runs([...move, "--run"], 1, /Another mover has the account "acme"/);
    await runs(abort, 1, /Another mover has the account "acme"/);
    // Its lock is gone, and another mover has it.
    const other = await a.sql.reserve();
    await a.sql`select pg_terminate_backend(l.pid) from pg_locks l
      join pg_stat_activity s on s.pid = l.pid and s.application_name = 'deno task cells'
      where l.locktype = 'advisory'`;
    await other`select pg_advisory_lock(hashtextextended('move acme', 0))`;
    await a.sql`delete from pay.provider_operations where id = ${OPERATION}`;
    const ousted = await mover.ended;
    assert.match(ousted.output, /lock of the account "acme" was lost.*\n.*Another mover has/);
    assert.equal(ousted.code, 1);
    await other`select pg_advisory_unlock_all()`;
    other.release();
    assert.deepEqual([await stateOf(a.sql), await stateOf(b.sql)], ["sealed", "arriving"]);
    // As if it had switched the proxy: then requests go to the other cell, with keys that are
    // copied again.
    await switchLabels({ file: map_file, sockets: [socket] }, ["sk7f"], "b");
    const readers = Array.from({ length: 4 }, async () => {
      while (!is_over) {
        assert.equal((await send(cells, late_key, "GET", `${PAYMENTS}/payments`)).status, 200);
      }
    });
    const { code, output } = await cells.run([...move, "--run"]);
    assert.equal(code, 0, output);
    assert.match(output, /and 2 environments that are new/);
    is_over = true;
    await Promise.all([...buyers, ...readers]);
    for (const each of [late_key, sandbox_key]) {
      assert.equal((await send(cells, each, "POST", ...CREATE)).status, 201);
    }
  });
  await t.step("nothing is lost and nothing is twice", async () => {
    assert.deepEqual([await stateOf(a.sql), await stateOf(b.sql)], ["nothing", "open"]);
    const stored = await b.sql<{ id: string }[]>`select p.id from pay.payments p
      join pay.environments e on e.id = p.environment_id and e.ends_at is null
      where p.id <> ${saved.id} order by 1`;
    assert.deepEqual(stored.map(({ id }) => id), [...paid.keys()].sort());
    assert.deepEqual(await countersOf(b.sql), { next_index: 7, next_nonce: 8, has_left: false });
    assert.deepEqual(await countersOf(a.sql), { next_index: 7, next_nonce: 8, has_left: true });
    for (const [id, idempotency_key] of [...paid].slice(0, 3)) {
      const again = await send(cells, key, "POST", ...USE, idempotency_key);
      assert.deepEqual([again.status, JSON.parse(again.text).id], [201, id]);
    }
    const readDeliveries = async () =>
      await b.sql<{ id: string; status: string; attempts: number }[]>`
        select d.subject_id as id, d.status, cardinality(d.attempts) as attempts
        from pay.webhook_deliveries d order by 1`;
    await until(
      "every event is delivered",
      async () => (await readDeliveries()).every(({ status }) => status === "delivered"),
    );
    const deliveries = await readDeliveries();
    assert.deepEqual(deliveries.map(({ id }) => id), [...paid.keys()].sort());
    const arrivals = Map.groupBy(receiver.arrivals, ({ event }) => event.data.object.id);
    for (const { id, attempts } of deliveries) {
      const times = arrivals.get(id)?.length ?? 0;
      // An attempt that took too long is recorded and repeated.
      assert.ok(times >= 1 && times <= attempts, `${id}: ${times} arrivals, ${attempts} attempts`);
    }
    for (const { sql } of [a, b]) {
      await assertSilent(sql);
      const left = await sql`
        select pubname from pg_publication union all select subname from pg_subscription
        union all select slot_name from pg_replication_slots
        union all select member::regrole::text from pg_auth_members
        where roleid = 'pay_owner'::regrole and member <> roleid and inherit_option`;
      assert.deepEqual([...left], []);
    }
    await runs(move, 2, /"acme" is at the target already/);
    await a.makeKey("heir", "sk9r", true);
    for (const key of [{ xpub: "xpub1" }, { xpub: UNUSED.xpub }, { signer_address: SIGNER }]) {
      await assert.rejects(
        addChain(a.sql, "pac_" + "2".repeat(26), "heir", { xpub: "xpub3", ...key }),
        /has moved to another cell/,
      );
    }
  });
  await t.step("a backup of the old cell does not bring it back", async () => {
    const gone = {
      ...environments[0],
      id: "env_" + "0".repeat(26),
      public_id: "env_" + "0".repeat(26),
    };
    for (const row of [...environments, { ...gone, livemode: false }]) {
      await a.sql`insert into pay.environments ${a.sql(row)}`;
    }
    await runs([...move, "--run"], 1, /The target has an account "acme" of its own/);
    await runs(abort, 2, /No move of --account "acme"/);
    await a.sql`update pay.environments set moving = 'sealed' where account = 'acme'`;
    // Its keys are gone, as after a kill of the mover.
    await runs(move, 0, /it is at the target; what is left is to delete it at the source/);
    await tellsStatus(
      '"acme": sealed at the source, and no copy between these cells: run the command of its move ' +
        "again\n",
    );
    await restore(a.sql, backup);
    await a.sql`update pay.xpub_counters set left_at = null`;
    await a.sql`update pay.signer_nonces set left_at = null`;
    // As after one more move, to a third cell.
    await b.sql`update pay.environments set account = 'elsewhere' where account = 'acme'`;
    await runs([...move, "--run"], 1, /"acme" has left the source, and is not at the target/);
    await runs(abort, 2, /No move of --account "acme"/);
    await b.sql`update pay.environments set account = 'acme' where account = 'elsewhere'`;
    const paymentsOf = async ({ sql }: TwoCells["a"]) =>
      (await sql`select count(*)::integer as n from pay.payments`)[0]!.n;
    const stored = await paymentsOf(b);
    assert.ok(await paymentsOf(a) >= 40);
    await runs(
      [...but("--keep", "1"), "--run"],
      0,
      /^delete: 5 environments at the source\ndelete: nothing of "acme" is at the source\n$/,
    );
    assert.deepEqual([await stateOf(a.sql), await stateOf(b.sql)], ["nothing", "open"]);
    assert.deepEqual([await paymentsOf(a), await paymentsOf(b)], [0, stored]);
    for (const [name, rows] of await backUp(a)) assert.deepEqual(rows, [], name);
    assert.equal((await countersOf(a.sql)).has_left, true);
    await pay();
  });
  await t.step("behind a fence requests get 503, and operators an error", async () => {
    await b.sql`update pay.environments
      set moving = case when ends_at is null then 'fenced' else 'arriving' end
      where account = 'acme'`;
    const began_ms = performance.now();
    const numbers = () => b.sql`select requests, transcript_bytes from pay.sandbox_settings`;
    const before = await numbers();
    await Promise.all([key, live_key, sandbox_key, seeded_key].map(async (each) => {
      const options = { key: each, body: CREATE[1] };
      const response = await keyedCall(cells.proxy.origin, "POST", CREATE[0], options);
      assert.deepEqual(
        [response.status, response.body.error.code, response.headers.get("Retry-After")],
        [503, "service_unavailable", "1"],
      );
    }));
    const waited_ms = performance.now() - began_ms;
    assert.ok(waited_ms > 2_900 && waited_ms < 6_000, `${waited_ms} ms`);
    assert.deepEqual(await numbers(), before);
    await assert.rejects(b.makeKey("acme", "sk7f"), /moving to another cell/);
    // A live environment would be a new one.
    await assert.rejects(b.makeKey("acme", "sk7f", true), /moving to another cell/);
    const [live] = await b.sql`
      select id from pay.environments where account = 'acme' and livemode`;
    for (
      const call of [
        b.sql`select pay.export_payouts(${CHAIN}, true)`,
        b.sql`select pay.approve_bank_order(${CHAIN}, 'tr_none')`,
        b.sql`select pay.note_bank_export(${CHAIN}, 'none')`,
        b.sql`select pay.set_bridge_hash(${CHAIN}, 'none')`,
        b.sql`select pay.reread_account(${CHAIN}, '{}')`,
        b.sql`select pay.count_ignored_notification(${CHAIN})`,
        b.sql`select pay.note_archive(${live!.id}, now() - interval '9 days', '')`,
        b.sql`select pay.end_archive(${live!.id})`,
      ]
    ) await assert.rejects(call, /moving to another cell/);
    await b.sql`update pay.environments set moving = null where account = 'acme'`;
    await pay();
  });
  await t.step("back, while databases are killed and the proxy is reloaded", async () => {
    const back = cells.moveTo(a, "acme").filter((each, i, all) =>
      each !== "--socket" && all[i - 1] !== "--socket"
    );
    await runs(back, 2, /--cell "a" is not in the map/);
    await Deno.writeTextFile(map_file, "sk9z a\n", { append: true });
    const mover = cells.start([...back, "--run"]);
    await until("the copy begins", () => mover.output().includes("copy: "));
    await Promise.all([a.killDatabase(), b.killDatabase()]);
    const moved = await mover.ended;
    assert.equal(moved.code, 0, moved.output);
    assert.match(moved.output, /Reload the proxy, and run the same command again/);
    assert.deepEqual([await stateOf(b.sql), await stateOf(a.sql)], ["sealed", "open"]);
    // To a third cell the account does not go before this move has ended.
    await b.sql`update pay.environments set account = 'elsewhere' where account = 'acme'`;
    await runs(move, 1, /The move of "acme" to the source has not ended/);
    await b.sql`update pay.environments set account = 'acme' where account = 'elsewhere'`;
    const ended = await cells.run([...back, "--run"]);
    assert.equal(ended.code, 0, ended.output);
    assert.deepEqual([await stateOf(b.sql), await stateOf(a.sql)], ["nothing", "open"]);
    assert.deepEqual(await countersOf(a.sql), { next_index: 7, next_nonce: 8, has_left: false });
  });
});

testWith(
  "haproxy",
  can_mount && await findHaproxy() !== null,
  "a target with a full disk stops a move, and the account works in its cell",
  async () => {
    await using open = new AsyncDisposableStack();
    const disk = await mountSmallDisk(512 * MIB);
    open.defer(disk.close);
    const cells = await openTwoCells(open, { data: disk.path });
    const { a, b } = cells;
    const key = await a.makeKey("acme", "sk7f");
    await b.makeKey("other", "sk8q");
    const body = { ...CREATE[1], description: "x".repeat(500) };
    const ids: string[] = [];
    const pay = async () => {
      const { status, text } = await send(cells, key, "POST", CREATE[0], body);
      assert.equal(status, 201, text);
      ids.push(JSON.parse(text).id);
    };
    await Promise.all(Array.from({ length: 16 }, async () => {
      for (let i = 0; i < 100; i++) await pay();
    }));
    await b.sql`checkpoint`;
    // Small tables fit, so that the copies of large ones fail again and again.
    await disk.fill(3 * MIB);
    const move = [...cells.moveTo(b, "acme"), "--run"];
    const stopped = await cells.run(move);
    assert.match(
      stopped.output,
      /The server of the target cannot apply the copy; its log has the reason/,
    );
    assert.equal(stopped.code, 1);
    assert.deepEqual([await stateOf(a.sql), await stateOf(b.sql)], ["open", "arriving"]);
    await pay();
    await disk.free();
    const moved = await cells.run(move);
    assert.equal(moved.code, 0, moved.output);
    assert.deepEqual([await stateOf(a.sql), await stateOf(b.sql)], ["nothing", "open"]);
    await pay();
    const stored = await b.sql<{ id: string }[]>`select id from pay.payments order by id`;
    assert.deepEqual(stored.map(({ id }) => id), ids.sort());
    for (const { sql } of [a, b]) await assertSilent(sql);
  },
);
