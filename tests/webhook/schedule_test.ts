/**
 * The jobs that wake the dispatcher, run retention and check the books in the database
 * (architecture §4). They call the service's own address only when a delivery is due. Stand-ins
 * replace pg_cron and pg_net. internal_routes_test.ts sends the same call to the functions.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { idGenerator } from "../../shared/core/ids.ts";
import { cloneDatabase, connect } from "../support/database/database.ts";
import { RELAY_TOKEN } from "../support/service/service.ts";
import { block } from "../support/documents/operations_document.ts";
import {
  createScheduledDatabase,
  type PgNetResponse,
  type ScheduledDatabase,
} from "../support/database/scheduled_database.ts";

const RELAY_URL = "https://ref.example.com/functions/v1/api-v1-payments/internal/relay";
const ENVIRONMENT = `env_${"0".repeat(26)}`;

/** Registers a test with a database that has the jobs. */
function scheduledCase(
  name: string,
  run: (t: Deno.TestContext, database: ScheduledDatabase) => Promise<void>,
): void {
  Deno.test(name, async (t) => {
    await using database = await createScheduledDatabase();
    await run(t, database);
  });
}

/** Writes a delivery that is due in this number of milliseconds. */
async function insertDelivery(sql: postgres.Sql, due_in_ms: number, status = "pending") {
  const due = status === "pending" ? new Date(Date.now() + due_in_ms).toISOString() : null;
  await sql`insert into pay.webhook_deliveries (environment_id, id, event_id, event_type, endpoint_id,
      subject_id, sequence, status, next_attempt_at, created_at)
    values (${ENVIRONMENT}, ${
    idGenerator(Date.now())("whd_")
  }, 'evt_x', 'ping', 'whe_x', 'pay_x', 1,
      ${status}, ${due}, now())`;
}

scheduledCase("the jobs of pg_cron", async (t, database) => {
  const { sql, jobs } = database;
  await t.step("are five, and docs/operations/backup.md schedules them again", async () => {
    const read = () => sql`select jobname, schedule, command, username from cron.job order by 1`;
    const rows = await read();
    assert.deepEqual(
      rows.map(({ jobname }) => jobname),
      ["pay-cron-log", "pay-dispatcher", "pay-invariants", "pay-retention", "pay-search"],
    );
    for (const { username } of rows) assert.equal(username, database.migrator);
    await sql`delete from cron.job`;
    const [, path] = (await block("The jobs", "sh")).match(/ -f (\S+)\n/)!;
    await jobs.unsafe(await Deno.readTextFile(path!)).simple();
    assert.deepEqual([...await read()], [...rows]);
  });
  await t.step("pay-dispatcher makes no call before it is configured", async () => {
    await insertDelivery(sql, -1000);
    await database.runJob("pay-dispatcher");
    assert.equal((await database.takeRequests()).length, 0);
    assert.equal((await jobs`select * from pay.due_wake()`).length, 0);
  });
  await jobs`select pay.configure_relay(${RELAY_URL}, ${"first-token-of-many"})`;
  await jobs`select pay.configure_relay(${RELAY_URL}, ${RELAY_TOKEN})`;
  const cases: [name: string, due_in_ms: number, status: string, calls: number][] = [
    ["no delivery", NaN, "", 0],
    ["a due delivery", -1000, "pending", 1],
    ["an ended lease or wait", -86_400_000, "pending", 1],
    ["only later deliveries", 60_000, "pending", 0],
    ["only cancelled ones", 0, "cancelled", 0],
  ];
  for (const [name, due_in_ms, status, calls] of cases) {
    await t.step(`${name}: pay-dispatcher makes ${calls} calls`, async () => {
      await sql`delete from pay.webhook_deliveries`;
      if (status) await insertDelivery(sql, due_in_ms, status);
      await database.runJob("pay-dispatcher");
      const requests = await database.takeRequests();
      assert.deepEqual(
        [...requests],
        Array(calls).fill({
          method: "POST",
          url: RELAY_URL,
          headers: { "Content-Type": "application/json", Authorization: `Bearer ${RELAY_TOKEN}` },
          body: "{}",
          timeout_milliseconds: 2000,
        }),
      );
      const due = await jobs`select * from pay.due_wake()`;
      assert.deepEqual([...due], Array(calls).fill({ url: RELAY_URL, token: RELAY_TOKEN }));
    });
  }
  for (
    const [name, leased_until, calls] of [["that waits", null, 1], ["leased", "2999-01-01", 0]]
  ) {
    await t.step(`a provider event ${name}: ${calls} calls`, async () => {
      await sql`delete from pay.webhook_deliveries`;
      await sql`
        insert into pay.provider_events (environment_id, account_id, reference, op, state,
          amount_minor, currency, happened_at, received_at, body, leased_until)
        values (${ENVIRONMENT}, 'pac_1', 'pi_1', 'authorize', 'succeeded', 1, 'EUR', now(), now(),
          '{}', ${leased_until!})`;
      await database.runJob("pay-dispatcher");
      assert.equal((await database.takeRequests()).length, calls);
      await sql`delete from pay.provider_events`;
    });
  }
  await t.step("pay-retention purges until nothing is left", async () => {
    await sql`select pay.create_environment(${ENVIRONMENT}, 'a', false, 'a')`;
    await sql`insert into pay.events (environment_id, id, type, subject_id, created_at, body)
      select ${ENVIRONMENT}, 'evt_0000000' || lpad(n::text, 19, '0'), 'ping', 'pay_x', now(), '{}'
      from generate_series(1, 12000) n`;
    await database.runJob("pay-retention");
    assert.equal((await sql`select from pay.events`).length, 0);
  });
  await t.step("pay-cron-log deletes its runs after seven days, also unended ones", async () => {
    await jobs`select cron.schedule('nightly', '0 0 * * *', 'select 1')`;
    await jobs`select cron.schedule('pay-roll', '0 0 * * *', 'select 1')`;
    /** The names of jobs, and the ages of their runs in days; null: the run has no such time. */
    const runs: [job: string | null, started: number | null, ended: number | null][] = [
      ["pay-dispatcher", 9, 9],
      ["nightly", 9, 9],
      ["pay-roll", 9, 9],
      [null, 9, 9],
      ["pay-retention", 9, null],
      ["pay-invariants", null, null],
      ["pay-cron-log", 8, 8],
      ["nightly", 8, null],
      ["pay-dispatcher", null, null],
      ["pay-retention", 6, 6],
      ["pay-dispatcher", 6, null],
      ["nightly", 6, 6],
    ];
    for (const [job, started, ended] of runs) {
      await sql`insert into cron.job_run_details (jobid, start_time, end_time)
        values ((select jobid from cron.job where jobname = ${job}),
          now() - ${started}::int * interval '1 day', now() - ${ended}::int * interval '1 day')`;
    }
    await database.runJob("pay-cron-log");
    const left = await sql`select jobname from cron.job_run_details r
      left join cron.job j using (jobid) order by runid`;
    assert.deepEqual(left.map(({ jobname }) => jobname), [
      ...["nightly", "pay-roll", null, "nightly"],
      ...["pay-dispatcher", "pay-retention", "pay-dispatcher", "nightly"],
    ]);
    await sql`delete from cron.job where jobname in ('nightly', 'pay-roll')`;
  });
});

const REFUSED: [url: string, token: string][] = [
  ["https://ref.example.com/functions/v1/api-v1-payments/v1/payments", RELAY_TOKEN],
  [`${RELAY_URL}/x`, RELAY_TOKEN],
  [`${RELAY_URL}?x=1`, RELAY_TOKEN],
  [RELAY_URL.replace("https", "ftp"), RELAY_TOKEN],
  [RELAY_URL.replace("ref", "r f"), RELAY_TOKEN],
  [RELAY_URL + "\n", RELAY_TOKEN],
  ["", RELAY_TOKEN],
  [RELAY_URL, "x".repeat(15)],
  [RELAY_URL, "x".repeat(201)],
  [RELAY_URL, "token with a space in it"],
  [RELAY_URL, `${RELAY_TOKEN}\r\nX-Injected: 1`],
];
Deno.test("pay.configure_relay() refuses invalid addresses and tokens", async (t) => {
  await using database = await cloneDatabase();
  await using sql = connect(database.url);
  for (const [url, token] of REFUSED) {
    await t.step(JSON.stringify([url, token.slice(0, 30)]), async () => {
      await assert.rejects(sql`select pay.configure_relay(${url}, ${token})`, { code: "22023" });
    });
  }
  await assert.rejects(sql`select pay.configure_relay(null, ${RELAY_TOKEN})`);
  await assert.rejects(sql`select pay.configure_relay(${RELAY_URL}, null)`);
  assert.equal((await sql`select from pay.settings`).length, 0, "nothing was stored");
  await t.step("without the extensions nothing is scheduled and nothing fails", async () => {
    const [row] = await sql`select to_regnamespace('cron') as cron, to_regnamespace('net') as net`;
    assert.deepEqual({ ...row }, { cron: null, net: null });
    await sql`select pay.configure_relay(${RELAY_URL}, ${RELAY_TOKEN})`;
    await sql`select pay.wake_dispatcher()`;
  });
});

scheduledCase("pay.health shows the jobs of pg_cron", async (_, database) => {
  await database.sql`insert into cron.job_run_details (jobid, status, start_time)
    select jobid, case when n = 1 then 'failed' else 'succeeded' end,
      '2026-01-01T00:00:00Z'::timestamptz + n * interval '1 s'
    from cron.job cross join generate_series(1, 3) n where jobname in ('pay-dispatcher', 'pay-retention')`;
  const [row] = await database.jobs`
    select last_dispatcher_wake_at, last_retention_at, failed_cron_runs from pay.health`;
  const at = new Date("2026-01-01T00:00:03Z");
  assert.deepEqual({ ...row }, {
    last_dispatcher_wake_at: at,
    last_retention_at: at,
    failed_cron_runs: "2",
  });
  await database.sql`revoke usage on schema cron from public`;
  const [unseen] = await database.jobs`select last_dispatcher_wake_at from pay.health`;
  assert.equal(unseen!.last_dispatcher_wake_at, null);
});

/** The functions' response to a wake, the status that is shown, and the number of failures. */
const WAKES: [response: PgNetResponse, status: number | null, failed: string][] = [
  [{ status_code: 202 }, 202, "0"],
  [{ status_code: 401 }, 401, "1"],
  [{ status_code: 503 }, 503, "1"],
  [{ error_msg: "Timeout of 2000 ms reached.", timed_out: true }, null, "1"],
  [{ error_msg: "Couldn't connect to server" }, null, "1"],
];

scheduledCase("pay.health shows the responses of the functions to pg_net", async (t, database) => {
  const { sql, jobs } = database;
  const health = async () => {
    const [row] = await jobs`
      select last_dispatcher_status, failed_dispatcher_wakes_last_hour from pay.health`;
    return [row!.last_dispatcher_status, row!.failed_dispatcher_wakes_last_hour];
  };
  await jobs`select pay.configure_relay(${RELAY_URL}, ${RELAY_TOKEN})`;
  await insertDelivery(sql, -1000);
  assert.deepEqual(await health(), [null, "0"], "before the first wake");
  for (const [response, status, failed] of WAKES) {
    await t.step(`${JSON.stringify(response)}: ${status}, ${failed} failed`, async () => {
      await sql`truncate pay.dispatcher_wakes, net._http_response`;
      await database.runJob("pay-dispatcher");
      await database.respondToRequests(response);
      assert.deepEqual(await health(), [status, failed]);
    });
  }
  await t.step("it counts the newest response, and every failure of the last hour", async () => {
    await sql`truncate pay.dispatcher_wakes, net._http_response`;
    for (const status_code of [401, 401, 202]) {
      await database.runJob("pay-dispatcher");
      await database.respondToRequests({ status_code });
    }
    assert.deepEqual(await health(), [202, "2"]);
    await sql`update pay.dispatcher_wakes set woken_at = woken_at - interval '61 minutes'`;
    assert.deepEqual(await health(), [null, "0"]);
  });
  await t.step("a wake without a response fails after a minute", async () => {
    await sql`truncate pay.dispatcher_wakes, net._http_response`;
    await database.runJob("pay-dispatcher");
    await database.takeRequests();
    assert.deepEqual(await health(), [null, "0"]);
    await sql`update pay.dispatcher_wakes set woken_at = woken_at - interval '61 seconds'`;
    assert.deepEqual(await health(), [null, "1"]);
  });
  await t.step("it ignores responses to others, and of the same id before a crash", async () => {
    await sql`truncate pay.dispatcher_wakes, net._http_response`;
    await database.runJob("pay-dispatcher");
    await database.respondToRequests({ status_code: 202 });
    await sql`select net.http_post('https://other.example.com/')`;
    await database.respondToRequests({ status_code: 500 });
    await sql`insert into net._http_response (id, status_code, created)
      select request_id::bigint, 500, woken_at - interval '2 minutes' from pay.dispatcher_wakes`;
    assert.deepEqual(await health(), [202, "0"]);
  });
  await t.step("it forgets wakes after an hour", async () => {
    await sql`update pay.dispatcher_wakes set woken_at = woken_at - interval '61 minutes'`;
    await database.runJob("pay-dispatcher");
    assert.equal((await sql`select from pay.dispatcher_wakes`).length, 1);
  });
  await t.step("it is empty for a caller who may not read the responses", async () => {
    await sql`revoke select on net._http_response from public`;
    assert.deepEqual(await health(), [null, null]);
  });
});
