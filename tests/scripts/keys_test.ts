/**
 * `deno task keys`: create, list, rotate and revoke, with a given database and with the embedded
 * one.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { startService } from "../support/service/service.ts";
import { createEmptyDatabase } from "../support/database/database.ts";
import { launchStart } from "../support/local/local_start.ts";
import { type EndedCommand, runOperator, runOperatorProgram } from "../support/local/operator.ts";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";
import { readCommand } from "../../apps/operator/operator.ts";

const PAYMENTS = "/api-v1-payments/v1/payments";
const UNKNOWN_KEY = `key_${"0".repeat(26)}`;

const keys = (env: Record<string, string>, ...args: string[]) => runOperator(env, "keys", ...args);

/** The id in the output of a create. */
function idIn({ said }: EndedCommand): string {
  return /key_[0-9a-z]{26}/.exec(said)![0];
}

const CREATE = ["create", "--mode", "test"];
/** Invalid arguments, and the message. */
const INVALID: [args: string[], message: RegExp][] = [
  [["create"], /^--mode is required/],
  [["create", "--mode", "prod"], /^--mode "prod"/],
  [[...CREATE, "--scopes", "payments:read,all"], /^--scopes "all"/],
  [[...CREATE, "--scopes", ""], /^--scopes/],
  [[...CREATE, "--expires", "2020-01-01T00:00:00Z"], /^--expires .* past/],
  [[...CREATE, "--expires", "tomorrow"], /^--expires "tomorrow"/],
  [[...CREATE, "--expires", "9999-12-31T23:59:59-14:00"], /^--expires .*9999/],
  [[...CREATE, "--prefix", "Sk_"], /^--prefix "Sk_"/],
  [[...CREATE, "--prefix", "elevenchars"], /^--prefix "elevenchars"/],
  [[...CREATE, "--prefix", "skseeded"], /^--prefix "skseeded"/],
  [[...CREATE, "--name", ""], /^--name/],
  [[...CREATE, "--environment", "env_1"], /^--environment "env_1"/],
  [[...CREATE, "--nope"], /--nope/],
  [[...CREATE, "--yes"], /--yes/],
  [["rotate"], /key_\.\.\./],
  [["rotate", UNKNOWN_KEY, "--expires-in", "604801"], /^--expires-in "604801"/],
  // The argument can be a secret, and is not repeated.
  [
    ["revoke", "sk_test_1", "--yes"],
    /^The argument is not the id of a key: an id begins with key_$/,
  ],
];
for (const [args, message] of INVALID) {
  Deno.test(`deno task keys refuses ${JSON.stringify(args)}`, () =>
    assert.rejects(readCommand("keys", args), { name: "UsageError", message }));
}

/** A key that a command has printed. */
interface Printed extends EndedCommand {
  id: string;
  key: string;
}

Deno.test("deno task keys with DATABASE_URL", async (t) => {
  await using service = await startService();
  const { sql } = service;
  const env = { DATABASE_URL: service.database.url };
  const printed = async (given: Record<string, string>, ...args: string[]): Promise<Printed> => {
    const ended = await keys(given, ...args);
    assert.equal(ended.code, 0, ended.said);
    return { ...ended, id: idIn(ended), key: ended.out.trim() };
  };
  const create = (...args: string[]) => printed(env, "create", "--mode", "test", ...args);
  const rotate = ({ id }: Printed, ...args: string[]) => printed(env, "rotate", id, ...args);
  const list = async () => (await keys(env, "list")).out;
  /** The statuses of requests with these keys. */
  const statuses = async (...made: Printed[]) => {
    const all = made.map(async ({ key }) => (await service.call("GET", PAYMENTS, { key })).status);
    return (await Promise.all(all)).join(" ");
  };
  await t.step("create prints only a working secret, and only once", async () => {
    const made = await create("--account", "acme");
    assert.match(made.out, /^sk_test_[0-9A-Za-z]{49}\n$/);
    assert.ok(!made.said.includes(made.key));
    assert.match(made.said, /Created env_[0-9a-z]{26}, the test environment of "acme"/);
    assert.equal(await statuses(made), "200");
    const listed = await list();
    assert.ok(listed.includes(`sk_test_...${made.key.slice(-4)}`), listed);
    assert.ok(!listed.includes(made.key));
    const [row] = await sql`select k::text from pay.api_keys k where id = ${made.id}`;
    assert.ok(!row!.k.includes(made.key));
  });
  await t.step("a second create joins the account's environment of its mode", async () => {
    const again = await create("--account", "acme");
    assert.ok(!again.said.includes("Created env_"), again.said);
    const live = await printed(env, "create", "--mode", "live", "--account", "acme");
    assert.match(live.out, /^sk_live_/);
    const rows = await sql`
      select livemode from pay.environments where account = 'acme' order by 1`;
    assert.deepEqual(rows.map(({ livemode }) => livemode), [false, true]);
  });
  await t.step("--environment, --name, --scopes, --expires and --prefix work", async () => {
    const made = await create(
      ...["--environment", service.key.environment_id, "--prefix", "sk"],
      ...["--name", "nightly", "--scopes", "payments:read, events:read"],
      ...["--expires", "2999-01-01T00:00:00Z"],
    );
    assert.match(made.out, /^sk_test_/);
    assert.equal(await statuses(made), "200");
    const post = await service.call("POST", PAYMENTS, { key: made.key, body: {} });
    assert.equal(post.status, 403);
    await service.setClock(Date.parse("2999-01-01T00:00:00Z"));
    assert.equal(await statuses(made), "401");
    await service.setClock(null);
    const listed = await list();
    assert.match(listed, new RegExp(`${made.id}  nightly .*sk_test_\\.\\.\\.`));
    assert.match(listed, /scopes: payments:read events:read/);
  });
  await t.step("an account has one prefix, by default API_KEY_PREFIX", async () => {
    const named = (account: string, ...more: string[]) =>
      printed(
        { ...env, API_KEY_PREFIX: "shop" },
        ...["create", "--mode", "test", "--account", account, ...more],
      );
    assert.match((await named("named", "--prefix", "own")).out, /^own_test_/);
    const first = await named("prefixed");
    assert.match(first.out, /^shop_test_/);
    await sql`update pay.api_key_secrets set prefix = 'shopseeded_test_'
      where api_key_id = ${first.id}`;
    const [place] = await sql`
      select public_id from pay.environments where account = 'prefixed'`;
    for (const where of [["--account", "prefixed"], ["--environment", place!.public_id]]) {
      const refused = await keys(env, "create", "--mode", "test", ...where, "--prefix", "own");
      assert.deepEqual([refused.code, refused.out], [1, ""]);
      assert.match(refused.said, /"prefixed" have the prefix shop, .* rotate each key with/);
    }
    const second = await create("--account", "prefixed");
    assert.match(second.out, /^shop_test_/);
    assert.match((await rotate(first, "--prefix", "own")).out, /^ownseeded_test_/);
    assert.match((await named("prefixed", "--prefix", "own")).out, /^own_test_/);
    assert.match((await rotate(second, "--prefix", "own")).out, /^own_test_/);
  });
  await t.step("rotate adds a secret, and the older ones end after --expires-in", async () => {
    const made = await create("--prefix", "turn");
    const turned = await rotate(made, "--expires-in", "60");
    assert.match(turned.out, /^turn_test_/);
    assert.equal(await statuses(made, turned), "200 200");
    await service.setClock(Date.now() + 61_000);
    assert.equal(await statuses(made, turned), "401 200");
    await service.setClock(null);
  });
  await t.step("rotate keeps a future expiry and removes a past one", async () => {
    const expires = new Date(Date.now() + 3_600_000).toISOString();
    const made = await create("--expires", expires);
    const turned = await rotate(made, "--expires-in", "0");
    assert.ok(turned.said.includes(`still expires at ${expires}`), turned.said);
    assert.match(await list(), new RegExp(`${made.id} .*, expires ${expires.slice(0, 10)}`));
    await sql`update pay.api_keys set expires_at = '2026-01-02' where id = ${made.id}`;
    await sql`update pay.api_key_secrets set expires_at = '2026-01-02'
      where api_key_id = ${made.id}`;
    assert.equal(await statuses(turned), "401");
    assert.match(await list(), new RegExp(`${made.id} .*expired 2026-01-02`));
    const lifted = await rotate(made);
    assert.match(lifted.said, /the key had expired, and now has no expiry/);
    assert.equal(await statuses(lifted, turned), "200 401");
  });
  await t.step("real times are as far away by the clock of a sandbox", async () => {
    const { key } = await create("--account", "ahead");
    const clock = { key, body: { advance: 60 * 86_400 } };
    assert.equal((await service.call("POST", "/api-v1-sandbox/v1/clock", clock)).status, 200);
    const expires = new Date(Date.now() + 30 * 86_400_000).toISOString();
    const made = await create("--account", "ahead", "--expires", expires);
    const line = new RegExp(`${made.id} .*, expires ${expires.slice(0, 10)}`);
    assert.match(await list(), line);
    const turned = await rotate(made, "--expires-in", "3600");
    assert.ok(turned.said.includes("The key itself still expires at"), turned.said);
    assert.equal(await statuses(made, turned), "200 200");
    assert.match(await list(), line);
  });
  await t.step("creates at once of a new account share its environment", async () => {
    await Promise.all([1, 2, 3, 4].map(() => create("--account", "crowd")));
    const made = await sql`select from pay.environments where account = 'crowd'`;
    assert.equal(made.length, 1);
  });
  await t.step("a name cannot control the terminal", async () => {
    const { status: made } = await service.call("POST", "/api-v1-payments/v1/api_keys", {
      body: { name: "x\u001b[2J\u009b31m\u202ey", scopes: ["payments:read"] },
    });
    assert.equal(made, 201);
    const { out } = await runOperatorProgram(env, "keys", "list");
    assert.ok(out.includes("x\\u001b[2J\\u009b31m\\u202ey"), out);
  });
  await t.step("revoke without a terminal requires --yes", async () => {
    const made = await create();
    const refused = await runOperatorProgram(env, "keys", "revoke", made.id);
    assert.equal(refused.code, 1);
    assert.match(refused.said, /--yes/);
    assert.equal(await statuses(made), "200");
    const done = await keys(env, "revoke", made.id, "--yes");
    assert.equal(done.code, 0, done.said);
    assert.equal(await statuses(made), "401");
    const again = await keys(env, "revoke", made.id, "--yes");
    assert.deepEqual([again.code, /revoked already/.test(again.said)], [1, true]);
    const late = await keys(env, "rotate", made.id);
    assert.deepEqual([late.code, late.out], [1, ""]);
  });
  await sql`
    insert into pay.api_keys (id, environment_id, livemode, name)
    select 'key_' || lpad(n::text, 26, '0'), ${service.other.environment_id}, false, 'full'
    from generate_series(1, 99) as n`;
  const at = (environment: string) => ["create", "--mode", "test", "--environment", environment];
  /** [arguments, message, exit code] */
  const refusals: [string[], RegExp, number][] = [
    [at(`env_${"0".repeat(26)}`), /^--environment/, 1],
    [at(service.live.environment_id), /^--mode test does not match --env/, 1],
    [at(service.other.environment_id), /100 active keys already/, 1],
    [["rotate", UNKNOWN_KEY], /no such key/, 1],
    [["revoke", UNKNOWN_KEY, "--yes"], /no such key/, 1],
    [["destroy"], /^Unknown command "destroy"/, 2],
  ];
  for (const [args, said, code] of refusals) {
    await t.step(`refuses ${args.join(" ")}: ${said.source}`, async () => {
      const refused = await keys(env, ...args);
      assert.deepEqual([refused.code, refused.out], [code, ""], refused.said);
      assert.match(refused.said, said);
    });
  }
});

Deno.test("deno task keys names DATABASE_URL if the database is unavailable or not migrated", async () => {
  const away = await keys({ DATABASE_URL: "postgres://user:hush@127.0.0.1:1/none" }, "list");
  assert.equal(away.code, 1);
  assert.match(away.said, /^DATABASE_URL /);
  assert.doesNotMatch(away.said, /hush/);
  await using empty = await createEmptyDatabase();
  const { code, said } = await keys({ DATABASE_URL: empty.url }, "list");
  assert.deepEqual([code, /^DATABASE_URL .*supabase\/migrations/.test(said)], [1, true], said);
});

Deno.test("deno task keys uses the embedded server, running or not", (t) =>
  withTemporaryFolder(async (data_dir) => {
    const env = { DATA_DIR: data_dir };
    const url_path = join(data_dir, "operator_url");
    const made = await runOperatorProgram(env, "keys", "create", "--mode", "test");
    await t.step("it starts the server for the command if none runs", async () => {
      assert.equal(made.code, 0, made.said);
      assert.match(made.out, /^sk_test_[0-9A-Za-z]{49}\n$/);
      const live = await keys(env, "create", "--mode", "live");
      assert.match(live.out, /^sk_live_/, live.said);
      await assert.rejects(Deno.stat(join(data_dir, "postgres", "postmaster.pid")));
    });
    let start = await launchStart(env);
    const status = async (key: string) =>
      (await fetch(start.base_url + PAYMENTS, { headers: { Authorization: `Bearer ${key}` } }))
        .status;
    await t.step("it uses the server of a running start", async () => {
      assert.equal((await Deno.stat(url_path)).mode! & 0o777, 0o600);
      assert.equal(await status(made.out.trim()), 200);
      const listed = await keys(env, "list");
      assert.equal(listed.out.match(/^demo (test|live) env_/gm)!.length, 2, listed.out);
      const done = await keys(env, "revoke", idIn(made), "--yes");
      assert.equal(done.code, 0, done.said);
      assert.equal(await status(made.out.trim()), 401);
    });
    await t.step("after kill -9 it ignores the address of the dead server", async () => {
      await start.end("SIGKILL");
      assert.ok((await Deno.stat(url_path)).isFile);
      const listed = await keys(env, "list");
      assert.equal(listed.code, 0, listed.said);
      assert.match(listed.out, new RegExp(`${idIn(made)} .*revoked `));
      await assert.rejects(Deno.stat(url_path), Deno.errors.NotFound);
    });
    await t.step("a normal exit leaves no file with an address", async () => {
      start = await launchStart(env);
      await start.end();
      await assert.rejects(Deno.stat(url_path), Deno.errors.NotFound);
    });
  }));
