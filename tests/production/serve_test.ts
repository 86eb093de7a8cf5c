/**
 * `deno task serve`: its settings, the databases that it refuses, its stop, and its ticker with two
 * instances on one database, of which one is killed at a time.
 */

import assert from "node:assert/strict";
import { availableParallelism } from "node:os";
import { showRecord } from "../../apps/operator/migrate.ts";
import { readServeSettings } from "../../apps/server/production/serve_settings.ts";
import { openServeDatabase } from "../../apps/server/production/serve_database.ts";
import { idGenerator } from "../../shared/core/ids.ts";
import { pause, until } from "../support/common/until.ts";
import { cloneDatabase, connect, createEmptyDatabase } from "../support/database/database.ts";
import { STAND_INS } from "../support/database/scheduled_database.ts";
import { openStage, SETTINGS } from "../support/production/production_stage.ts";
import { runInstance, runMigrate } from "../support/production/serve_process.ts";
import { openRecorder, shown } from "../support/webhook/recording_receiver.ts";

const PAYMENT = { amount: 1000, currency: "EUR" };

/** [the variable, its value, the beginning of the message] */
const WRONG: [name: string, value: string, message: RegExp][] = [
  ["PAYMENTS_DB_URL", "", /^Set PAYMENTS_DB_URL /],
  ["PAYMENTS_DB_URL", "mysql://root:hidden@127.0.0.1/payments", /^PAYMENTS_DB_URL must look like/],
  ["PUBLIC_BASE_URL", "", /^Set PUBLIC_BASE_URL /],
  ["PUBLIC_BASE_URL", "pay.example.com", /^PUBLIC_BASE_URL "pay.example.com" must look like/],
  ["WEBHOOK_MASTER_SECRET", " ", /^Set WEBHOOK_MASTER_SECRET /],
  ["WEBHOOK_MASTER_SECRET", "hidden", /^WEBHOOK_MASTER_SECRET must have at least 32 bytes/],
  ["RELAY_TOKEN", "hidden", /^RELAY_TOKEN must be /],
  ["HOST", "everywhere", /^HOST "everywhere" cannot be used/],
  ["PORT", "80000", /^PORT "80000" cannot be used/],
  ["CONSOLE", "yes", /^CONSOLE "yes" cannot be used/],
  ["INSTANCES", "0", /^INSTANCES "0" cannot be used/],
  ["INSTANCES", "65", /^INSTANCES "65" cannot be used: it must be a number from 1 to 64/],
];

for (const [name, value, message] of WRONG) {
  Deno.test(`readServeSettings() refuses ${name} "${value}"`, () => {
    const env: Record<string, string> = { ...SETTINGS, [name]: value };
    assert.throws(() => readServeSettings((name) => env[name]), (error: Error) => {
      assert.match(error.message, message);
      assert.doesNotMatch(error.message, /hidden/);
      return error.name === "SettingsError";
    });
  });
}

Deno.test("readServeSettings() has a console and the page for payers on request only", () => {
  const env: Record<string, string> = { ...SETTINGS };
  const { hostname, port, functions, ...without } = readServeSettings((name) => env[name]);
  assert.deepEqual([hostname, port], ["127.0.0.1", 8000]);
  assert.deepEqual([without.has_console, without.has_checkout], [false, false]);
  assert.equal(functions.checkout_url, undefined);
  Object.assign(env, { CONSOLE: "1", CHECKOUT: "1" });
  const with_both = readServeSettings((name) => env[name]);
  assert.deepEqual([with_both.has_console, with_both.has_checkout], [true, true]);
  assert.equal(with_both.functions.checkout_url, "https://pay.example.com/pay");
  assert.deepEqual(with_both.functions.allowed_origins, ["https://pay.example.com"]);
});

Deno.test("readServeSettings() has up to 64 instances, by default one a processor", () => {
  const instancesOf = (INSTANCES: string) => {
    const env: Record<string, string> = { ...SETTINGS, INSTANCES };
    return readServeSettings((name) => env[name]).instances;
  };
  const on_linux = Deno.build.os === "linux";
  assert.equal(instancesOf(""), on_linux ? availableParallelism() : 1);
  assert.equal(instancesOf(on_linux ? "64" : "1"), on_linux ? 64 : 1);
});

Deno.test("deno task serve exits with 2 for an invalid setting", async () => {
  const { code, output } = await runInstance({ ...SETTINGS, WEBHOOK_MASTER_SECRET: "hidden" });
  assert.equal(code, 2, output);
  assert.equal(output, "WEBHOOK_MASTER_SECRET must have at least 32 bytes\n");
});

/** Opens the database of a URL as an instance does. Returns the message of its error. */
async function refusal(url: string): Promise<[name: string, message: string]> {
  const env: Record<string, string> = { ...SETTINGS, PAYMENTS_DB_URL: url };
  const { functions } = readServeSettings((name) => env[name]);
  try {
    await (await openServeDatabase(functions)).close();
    return ["", ""];
  } catch (error) {
    return [(error as Error).name, (error as Error).message];
  }
}

Deno.test("openServeDatabase() refuses a database of another version", async () => {
  await using database = await createEmptyDatabase();
  const { functions_url } = database;
  await using sql = connect(database.url);
  const refused = async (message: RegExp) => {
    const [name, text] = await refusal(functions_url);
    assert.match(text, message);
    assert.equal(name, "SettingsError");
  };
  await refused(/^The database of PAYMENTS_DB_URL has no schema: run "deno task migrate"/);
  const made = await runMigrate({ DATABASE_URL: database.url });
  assert.equal(made.code, 0, made.output);
  assert.match(made.output, /^Applying 2\d+_roles_and_schema.sql\n[^]*^Applied: \d+$/m);
  assert.deepEqual(await refusal(functions_url), ["", ""]);
  const again = await runMigrate({ DATABASE_URL: database.url });
  assert.equal(again.output, "The database has every migration\n");

  const record = sql`supabase_migrations.schema_migrations`;
  const [last] = await sql`delete from ${record}
    where version = (select max(version) from ${record}) returning *`;
  await refused(/is older than this version, it lacks \d+_jobs.sql: run "deno task migrate"/);
  await sql`insert into ${record} ${sql(last!)}`;
  await sql`insert into ${record} (version) values ('29990101000000')`;
  await refused(/has migration 29990101000000, which .* newer version: serve that version$/);
  await sql`delete from ${record} where version = '29990101000000'`;
  await sql`revoke usage on schema supabase_migrations from pay_api`;
  await refused(/^The user of PAYMENTS_DB_URL may not read the record of migrations/);
});

Deno.test("openServeDatabase() tells a wrong login from a database that is away", async () => {
  await using database = await cloneDatabase();
  const wrong = new URL(database.functions_url);
  wrong.username = "nobody_of_this_server";
  assert.equal((await refusal(wrong.href))[0], "SettingsError");
  const away = new URL(database.functions_url);
  away.port = "1";
  const [name, message] = await refusal(away.href);
  assert.deepEqual([name, message.split(":")[0]], ["Error", "PAYMENTS_DB_URL cannot be used"]);
});

Deno.test("openServeDatabase() finds the jobs of pg_cron", async () => {
  await using database = await cloneDatabase();
  await using sql = connect(database.url);
  await showRecord(database.url);
  const env: Record<string, string> = { ...SETTINGS, PAYMENTS_DB_URL: database.functions_url };
  const { functions } = readServeSettings((name) => env[name]);
  const found = async () => {
    const { has_scheduler, close } = await openServeDatabase(functions);
    await close();
    return has_scheduler;
  };
  assert.equal(await found(), false);
  await sql.unsafe(await Deno.readTextFile(STAND_INS.pg_cron)).simple();
  assert.equal(await found(), false);
  await sql.unsafe(await Deno.readTextFile(STAND_INS.pg_net)).simple();
  assert.equal(await found(), true);
});

Deno.test("two instances of deno task serve run the jobs, also when one is killed", async () => {
  await using open = new AsyncDisposableStack();
  const { sql, launch, send } = await openStage(open);
  const receiver = open.use(openRecorder(() => 500));
  const [environment] = await sql`select id from pay.environments`;
  /** A delivery that retention deletes. */
  const insertEnded = () =>
    sql`insert into pay.webhook_deliveries (environment_id, id, event_id, event_type, endpoint_id,
        subject_id, sequence, status, created_at)
      values (${environment!.id}, ${idGenerator(Date.now() - 40 * 86_400_000)("whd_")}, 'evt_x',
        'ping', 'whe_x', 'pay_x', 1, 'failed', now() - interval '40 days')`;
  const ended = () => sql`select from pay.webhook_deliveries where event_id = 'evt_x'`;
  await insertEnded();
  const instances = [await launch(), await launch()];
  assert.match(instances[0]!.output(), /; this instance runs the jobs\n$/);
  await until("retention has run", async () => (await ended()).length === 0);
  await until("the books were checked once", async () => {
    const rows = await sql`select from pay.settings where name = 'books_checked_at'`;
    return rows.length === 1;
  });

  await send(instances[0]!, "webhook_endpoints", { url: receiver.url("/hooks"), events: ["*"] });
  await send(instances[0]!, "payments", PAYMENT);
  await until("the first attempt has failed", async () => {
    const rows = await sql`select from pay.webhook_deliveries
      where attempt_count = 1 and leased_until is null`;
    return rows.length === 1;
  });
  receiver.judge = () => 200;
  await instances[0]!.end("SIGKILL");
  await sql`update pay.webhook_deliveries set next_attempt_at = now()`;
  await until("the other instance has sent it", () => receiver.arrivals.length >= 2);
  await insertEnded();
  const third = await launch();
  await instances[1]!.end("SIGKILL");
  await until("a new instance runs retention", async () => (await ended()).length === 0);
  await send(third, "payments", PAYMENT);
  await until("the new instance sends, too", () => receiver.arrivals.length >= 3);
  assert.deepEqual(shown(receiver.arrivals), [
    "payment.created 1",
    "payment.created 2",
    "payment.created 1",
  ]);
});

Deno.test("deno task serve finishes requests under way after SIGTERM, and exits with 0", async () => {
  await using open = new AsyncDisposableStack();
  const { key, sql, launch } = await openStage(open);
  const instance = await launch();
  const { hostname, port } = new URL(instance.base_url);
  const text = JSON.stringify(PAYMENT);
  const connection = await Deno.connect({ hostname, port: Number(port) });
  const write = (part: string) => connection.write(new TextEncoder().encode(part));
  await write(
    `POST /functions/v1/api-v1-payments/v1/payments HTTP/1.1\r\nHost: x\r\n` +
      `Content-Type: application/json\r\nAuthorization: Bearer ${key}\r\n` +
      `Content-Length: ${text.length}\r\n\r\n{`,
  );
  const health = `${instance.base_url}/api-v1-payments/health`;
  const status = async (url: string) => {
    const response = await fetch(url);
    await response.body?.cancel();
    return response.status;
  };
  assert.equal(await status(health), 200);
  const ending = instance.end("SIGTERM");
  await until("the health check fails", async () => await status(health) === 503);
  // Other requests are served until a proxy has noticed.
  assert.equal(await status(`${instance.base_url}/api-v1-payments/v1/openapi.json`), 200);
  await pause(2_200);
  await write(text.slice(1));
  const response = await new Response(connection.readable).text();
  assert.match(response, /^HTTP\/1\.1 201 /);
  const id = /"id":"(pay_\w+)"/.exec(response)![1]!;
  const { code, output } = await ending;
  assert.equal(code, 0, output);
  assert.equal((await sql`select from pay.payments where id = ${id}`).length, 1);
});
