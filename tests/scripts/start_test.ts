/**
 * `deno task start`: the banner, the keys, restarts, kill -9, a clean end, and errors that nothing
 * catches.
 */

import assert from "node:assert/strict";
import type postgres from "postgres";
import { join } from "node:path";
import { connect, createEmptyDatabase } from "../support/database/database.ts";
import {
  launchStart,
  PROJECT_DIR,
  readCredentials,
  runStart,
} from "../support/local/local_start.ts";
import { runOperator } from "../support/local/operator.ts";
import { runCommand } from "../support/common/running_command.ts";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";

const PAYMENTS = "/api-v1-payments/v1/payments";
/**
 * While a killed database recovers slowly, the test can create more payments than a page of ten.
 */
const ALL_PAYMENTS = `${PAYMENTS}?limit=100`;
const PAYMENT = {
  amount: 1999,
  currency: "EUR",
  card: { number: "4242424242424242", exp_month: 12, exp_year: 2030, cvc: "123" },
};

/** The process id of the embedded server of a data folder; null if none runs. */
async function postmasterOf(data_dir: string): Promise<number | null> {
  const path = join(data_dir, "postgres", "postmaster.pid");
  const pid = Number.parseInt(await Deno.readTextFile(path).catch(() => ""));
  return Number.isNaN(pid) ? null : pid;
}

/** Arguments, the exit code, and the output. */
const ARGUMENTS: [argument: string, code: number, output: RegExp][] = [
  ["--help", 0, /^Usage: deno task start \[--instances N\]\n[^]*PORT[^]*DATA_DIR[^]*DATABASE_URL/],
  ["-h", 0, /^Usage: /],
  ["--port=1", 2, /^"--port=1" is no argument/],
];
for (const [argument, code, output] of ARGUMENTS) {
  Deno.test(`deno task start ${argument} exits with ${code}`, async () => {
    const ended = await runStart({ DATA_DIR: "/proc/none" }, argument);
    assert.equal(ended.code, code, ended.output);
    assert.match(ended.output, output);
  });
}

Deno.test("deno task start keeps keys and data through restarts and kill -9", (t) =>
  withTemporaryFolder(async (data_dir) => {
    const env = { DATA_DIR: data_dir };
    let start = await launchStart(env);
    const keys = await readCredentials(data_dir);

    await t.step("the banner shows base URL, test key and a command that works", async () => {
      const banner = start.output();
      assert(banner.includes(start.base_url) && banner.includes(start.test_key));
      assert(banner.includes("credentials.json"));
      assert(!banner.includes("\x1b") && !banner.includes("sk_live_"), "colours or the live key");
      const body = /^ {2}-d '(.*)'$/m.exec(banner)![1]!;
      const response = await start.call("POST", PAYMENTS, JSON.parse(body));
      assert.equal(response.status, 201);
    });

    await t.step("credentials.json is private, and its live key opens live mode", async () => {
      const { mode } = await Deno.stat(join(data_dir, "credentials.json"));
      assert.equal(mode! & 0o777, 0o600);
      assert.deepEqual(Object.keys(keys), ["base_url", "test_key", "live_key"]);
      const response = await fetch(start.base_url + PAYMENTS, {
        headers: { Authorization: `Bearer ${keys.live_key}` },
      });
      assert.equal((await response.json()).object, "list");
    });

    await t.step("the console is at the address of the banner", async () => {
      const link = new URL(/Console +(\S+)/.exec(start.output())![1]!);
      assert.equal(link.hash, `#key=${start.test_key}`);
      const address = link.origin + link.pathname;
      const page = await fetch(address);
      assert.equal(page.status, 200);
      assert.match(await page.text(), /<script type="module" src="main.js">/);
      const script = await fetch(`${address}main.js`);
      assert.match(script.headers.get("Content-Type")!, /^text\/javascript/);
      assert.ok((await script.text()).length > 10_000);
      assert.equal((await fetch(`${address}../start.ts`)).status, 404);
      assert.equal((await fetch(`${address}%2e%2e/deno.json`)).status, 404);
    });

    await t.step("both functions and the index respond, other paths are 404", async () => {
      const root = new URL(start.base_url).origin;
      assert.equal((await start.call("GET", "/api-v1-payments/health")).status, 200);
      assert.equal((await start.call("POST", "/api-v1-sandbox/payments", PAYMENT)).status, 201);
      assert.match(await (await fetch(root)).text(), /credentials\.json/);
      for (const path of ["/nothing", "/functions/v1", "/functions/v1/api-v1-paymentsx/health"]) {
        const response = await fetch(root + path);
        assert.equal(response.status, 404, path);
        assert.equal((await response.json()).error.code, "not_found");
      }
    });

    await t.step("SIGTERM ends everything with 0", async () => {
      const postmaster = await postmasterOf(data_dir);
      const { code, output } = await start.end("SIGTERM");
      assert.equal(code, 0, output);
      assert.throws(() => Deno.kill(postmaster!, "SIGCONT"), Deno.errors.NotFound);
      assert.equal(await postmasterOf(data_dir), null);
    });

    await t.step("request logs are in server.log", async () => {
      const log = await Deno.readTextFile(join(data_dir, "server.log"));
      assert.match(log, /"route":"POST \/api-v1-payments\/v1\/payments","status":201/);
      assert.doesNotMatch(start.output(), /"route"/);
    });

    await t.step("the next start has the same keys and data", async () => {
      start = await launchStart(env);
      const { test_key, live_key } = await readCredentials(data_dir);
      assert.deepEqual({ test_key, live_key }, {
        test_key: keys.test_key,
        live_key: keys.live_key,
      });
      const { body } = await start.call("GET", ALL_PAYMENTS);
      assert.equal((body as { data: unknown[] }).data.length, 2);
    });

    let held = 2;
    await t.step("a killed database is restarted", async () => {
      const killed = (await postmasterOf(data_dir))!;
      Deno.kill(killed, "SIGKILL");
      const statuses = new Set<number>();
      let is_back = false;
      // Sessions of the killed server may still respond once or twice. These payments count as
      // well.
      while (!is_back) {
        const is_new = ![null, killed].includes(await postmasterOf(data_dir));
        const { status } = await start.call("POST", PAYMENTS, PAYMENT);
        statuses.add(status);
        if (status === 201) held++;
        is_back = is_new && status === 201;
      }
      statuses.delete(201);
      assert.deepEqual([...statuses].filter((status) => status !== 503), []);
    });

    await t.step("a second start on the same folder is refused and changes nothing", async () => {
      const { code, output } = await runStart(env);
      assert.equal(code, 1);
      assert.match(
        output,
        new RegExp(`^DATA_DIR .*in use by another start \\(process ${start.pid}`),
      );
      assert.equal((await start.call("GET", PAYMENTS)).status, 200);
    });

    await t.step("after kill -9 the next start takes over", async () => {
      const orphan = await postmasterOf(data_dir);
      await start.end("SIGKILL");
      start = await launchStart(env);
      assert.notEqual(await postmasterOf(data_dir), orphan);
      assert.equal(start.test_key, keys.test_key);
      const { body } = await start.call("GET", ALL_PAYMENTS);
      assert.equal((body as { data: unknown[] }).data.length, held);
    });

    await t.step("without credentials.json a start makes new keys for the same data", async () => {
      await start.end();
      await Deno.remove(join(data_dir, "credentials.json"));
      start = await launchStart({ ...env, LOG: "1" });
      assert.notEqual(start.test_key, keys.test_key);
      const { body } = await start.call("GET", ALL_PAYMENTS);
      assert.equal((body as { data: unknown[] }).data.length, held);
    });

    await t.step("LOG=1 prints the request logs", async () => {
      const { output, code } = await start.end();
      assert.match(output, /"route":"GET \/api-v1-payments\/v1\/payments","status":200/);
      assert.equal(code, 0);
    });

    await t.step({
      name: "it ends when the `deno task` that launched it is killed",
      ignore: Deno.build.os === "windows",
      fn: () => killLauncher(data_dir),
    });
    await t.step("it migrates an older data folder, and refuses one of another version", () => {
      return changeVersions(data_dir);
    });
  }));

/** Kills the `deno task` that has launched a start. */
async function killLauncher(data_dir: string): Promise<void> {
  const start = await launchStart({ DATA_DIR: data_dir }, ["task", "--cwd", PROJECT_DIR, "start"]);
  // The output ends when the last process that holds it has ended.
  const { output } = await start.end("SIGKILL");
  assert.match(output, /Stopping\n$/);
  assert.equal(await postmasterOf(data_dir), null);
}

/** Migrates an older data folder, and refuses one of another version. */
async function changeVersions(data_dir: string): Promise<void> {
  const env = { DATA_DIR: data_dir };
  const refused = async (message: RegExp) => {
    const { code, output } = await runStart(env);
    const listed = await runOperator(env, "keys", "list");
    assert.deepEqual([code, listed.code], [1, 1]);
    for (const text of [output, listed.said]) assert.match(text, message);
  };
  const record = async (change: (sql: postgres.Sql) => Promise<unknown>) => {
    const start = await launchStart(env);
    const url = await Deno.readTextFile(join(data_dir, "operator_url"));
    await using sql = connect(url.trim());
    await change(sql);
    await start.end();
  };
  const migrations = "supabase_migrations.schema_migrations";
  const newest = `select max(version) from ${migrations}`;
  // As if the newest migration had been added since.
  let removed: postgres.Row[] = [];
  await record(async (sql) => {
    removed = await sql.unsafe(
      `delete from ${migrations} where version = (${newest}) returning version as max`,
    );
  });
  await record(async (sql) => {
    assert.deepEqual([...await sql.unsafe(newest)], [...removed]);
    await sql.unsafe(`insert into ${migrations} (version) values ('30000101000000')`);
  });
  await refused(
    /^DATA_DIR "[^"]*": its database has migration 30000101000000, which .* created by a newer version\. Nothing was changed: start the version that created it, or set DATA_DIR to a new folder$/m,
  );
  const version = join(data_dir, "postgres", "PG_VERSION");
  await Deno.writeTextFile(version, "16\n");
  await refused(
    /^The databases in "[^"]*" are of PostgreSQL 16, and this .* PostgreSQL 17\. Nothing was/m,
  );
  assert.equal(await Deno.readTextFile(version), "16\n");
}

Deno.test("deno task start names PORT if it is in use, before it starts anything", () =>
  withTemporaryFolder(async (data_dir) => {
    const listener = Deno.listen({ hostname: "0.0.0.0", port: 0 });
    const { port } = listener.addr as Deno.NetAddr;
    const { code, output } = await runStart({ DATA_DIR: data_dir, PORT: String(port) });
    listener.close();
    assert.equal(code, 1);
    assert.match(output, new RegExp(`^PORT ${port} is in use .*\\n$`));
    await assert.rejects(Deno.stat(join(data_dir, "postgres")), Deno.errors.NotFound);
  }));

Deno.test("deno task start uses DATABASE_URL and starts no server of its own", () =>
  withTemporaryFolder(async (data_dir) => {
    await using database = await createEmptyDatabase();
    const start = await launchStart({ DATA_DIR: data_dir, DATABASE_URL: database.url });
    assert.equal((await start.call("POST", PAYMENTS, PAYMENT)).status, 201);
    assert(!start.output().includes(`:${new URL(database.url).password}@`), "its password");
    assert.equal((await start.end()).code, 0);
    await assert.rejects(Deno.stat(join(data_dir, "postgres")), Deno.errors.NotFound);
  }));

Deno.test("deno task start refuses a DATABASE_URL with another isolation of transactions", () =>
  withTemporaryFolder(async (data_dir) => {
    await using database = await createEmptyDatabase();
    await using sql = connect(database.url);
    await sql.unsafe(`alter database "${new URL(database.url).pathname.slice(1)}"
      set default_transaction_isolation = 'serializable'`);
    const { code, output } = await runStart({ DATA_DIR: data_dir, DATABASE_URL: database.url });
    assert.equal(code, 1);
    assert.match(output, /^DATABASE_URL .*default_transaction_isolation is "serializable"/);
    const [row] = await sql`select to_regnamespace('pay') as schema`;
    assert.equal(row!.schema, null);
  }));

Deno.test("deno task start names DATABASE_URL if its server is unavailable", () =>
  withTemporaryFolder(async (data_dir) => {
    const DATABASE_URL = "postgres://user:hush@127.0.0.1:1/none";
    const { code, output } = await runStart({ DATA_DIR: data_dir, DATABASE_URL });
    assert.equal(code, 1);
    assert.match(output, /^DATABASE_URL /);
    assert.doesNotMatch(output, /hush/);
  }));

const LAUNCH = new URL("../../apps/server/local/launch.ts", import.meta.url);
const SHUTDOWN = new URL("../../apps/server/local/shutdown.ts", import.meta.url);

/** Runs a start that prints "stopped" when it is stopped. `work` runs before it is ready. */
function runWork(work: string) {
  const program = `
    import { runUntilEnd } from "${LAUNCH}";
    import { Shutdown } from "${SHUTDOWN}";
    const shutdown = new Shutdown();
    shutdown.add(() => console.log("stopped"));
    const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    const fault = () => { throw new TypeError("hidden"); };
    await runUntilEnd(shutdown, async () => {
      ${work}
      return { exited: wait(200).then(() => new Error("the database is gone")) };
    });`;
  return runCommand({ args: [Deno.execPath(), "eval", program] });
}

/** [when, the work, the output] */
const ERRORS: [when: string, work: string, output: RegExp][] = [
  ["a callback at the start", "setTimeout(fault); await wait(100_000);", /TypeError: hidden/],
  ["a promise at the start", "wait(0).then(fault); await wait(100_000);", /TypeError: hidden/],
  ["a callback after it", "setTimeout(fault, 50);", /"uncaught TypeError".*"count":1[^]*is gone/],
  [
    "promises after it",
    "wait(50).then(fault); wait(60).then(fault);",
    /"uncaught TypeError".*"count":1[^]*"uncaught TypeError".*"count":2[^]*is gone/,
  ],
];
for (const [when, work, expected] of ERRORS) {
  Deno.test(`runUntilEnd() with an uncaught error of ${when}`, async () => {
    const { code, output } = await runWork(work);
    assert.equal(code, 1, output);
    assert.match(output, expected);
    assert.match(output, /^stopped$/m);
    // A message can contain data of a request.
    assert.equal(output.includes("hidden"), when.includes("at the start"));
  });
}
