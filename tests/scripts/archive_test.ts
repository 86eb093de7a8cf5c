/** `deno task archive`: its files, its chain, what retention keeps, kills, and a bucket. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { runUnguarded } from "../support/database/invariant_breaches.ts";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";
import { freePort } from "../support/common/free_port.ts";
import { until } from "../support/common/until.ts";
import { createEnvironment } from "../support/database/api_keys.ts";
import { cloneDatabase, connect } from "../support/database/database.ts";
import { setServerTime } from "../support/service/service.ts";
import { launchCommand } from "../support/common/running_command.ts";
import { operatorCommand, runOperator } from "../support/local/operator.ts";

const DAY_MS = 86_400_000;
const TODAY = Math.floor(Date.now() / DAY_MS) * DAY_MS;
const ENVIRONMENT = `env_${"1".repeat(26)}`;

/** Returns the day (UTC) that was this many days ago. */
function day(days_ago: number): string {
  return new Date(TODAY - days_ago * DAY_MS).toISOString().slice(0, 10);
}

/** A database with a live environment, and the command. `open` closes everything. */
async function openArchived(open: AsyncDisposableStack) {
  const database = open.use(await cloneDatabase());
  const sql = open.use(connect(database.url));
  let stored = 0;
  const env: Record<string, string> = { DATABASE_URL: database.url };
  await createEnvironment(sql, { id: ENVIRONMENT, account: "acme", livemode: true });
  return {
    ...{ sql, env },
    launch: (...args: string[]) => launchCommand(operatorCommand(env, "archive", ...args)),
    /** Runs the command. */
    archive: (...args: string[]) => runOperator(env, "archive", ...args),
    /** Stores a payment's event, its delivery and its movement, this many days ago. */
    async store(days_ago: number, count = 1) {
      const at = new Date(TODAY - days_ago * DAY_MS + 3_600_000).toISOString();
      const first = stored + 1;
      stored += count;
      await sql.unsafe(
        `with n as (
          select i, lpad(i::text, 17, '0') as ending from generate_series($3::int, $4::int) i
        ), events as (
          insert into pay.events (environment_id, id, type, subject_id, sequence, created_at, body)
          select $1, left(pay_internal.id_floor('evt_', $2), 13) || ending, 'payment.completed',
            'pay_' || i, 1, $2, '{"n":' || i || '}' from n
        ), deliveries as (
          insert into pay.webhook_deliveries (environment_id, id, event_id, event_type, endpoint_id,
            subject_id, sequence, status, created_at)
          select $1, left(pay_internal.id_floor('whd_', $2), 13) || ending, 'evt_' || i,
            'payment.completed', 'whe_1', 'pay_' || i, 1, 'delivered', $2 from n
        )
        insert into pay.ledger_movements (amount_minor, created_at, leg, environment_id,
          transaction_id, kind, subject_id, debit_account, credit_account, currency)
        select 100, $2, 0, $1, left(pay_internal.id_floor('txn_', $2), 13) || left(ending, 16) || '0',
          'capture', 'pay_' || i, 'processor', 'available', 'EUR' from n
        where i = $3`,
        [ENVIRONMENT, at, first, stored],
      );
    },
  };
}

async function withArchived(
  run: (archived: Awaited<ReturnType<typeof openArchived>>) => Promise<void>,
): Promise<void> {
  await using open = new AsyncDisposableStack();
  await run(await openArchived(open));
}

Deno.test("the first run of deno task archive keeps what is younger", () =>
  withArchived(({ sql, archive, store }) =>
    withTemporaryFolder(async (folder) => {
      const first = await archive("--to", folder);
      assert.equal(first.code, 0, first.said);
      assert.equal(first.out, `acme ${day(8)}: 0 events, 0 deliveries\n`);
      await store(3);
      // As if the archive had not run for 30 days since.
      await sql`update pay.archives set archived_until = archived_until - interval '30 days'`;
      await runUnguarded(
        sql,
        `update pay.events set created_at = created_at - interval '30 days',
           id = left(pay_internal.id_floor('evt_', created_at - interval '30 days'), 13)
             || substr(id, 14)`,
      );
      await sql`select pay.purge()`;
      assert.equal((await sql`select from pay.events`).length, 1);
    })
  ));

Deno.test("deno task archive", (t) =>
  withArchived(({ sql, archive, launch, store }) =>
    withTemporaryFolder(async (folder) => {
      const linesOf = async (days_ago: number, name: string) =>
        gunzipSync(await Deno.readFile(join(folder, ENVIRONMENT, day(days_ago), name)))
          .toString().trimEnd().split("\n").map((line) => JSON.parse(line));
      const manifestOf = async (days_ago: number) =>
        JSON.parse(
          await Deno.readTextFile(join(folder, ENVIRONMENT, day(days_ago), "manifest.json")),
        );
      const kept = async () => {
        const [row] = await sql`select count(*)::int as events,
          (select count(*)::int from pay.webhook_deliveries) as deliveries from pay.events`;
        return [row!.events, row!.deliveries];
      };
      await store(33);
      await store(32, 3);
      await store(20);
      await store(3);

      const run = async (...args: string[]) => {
        const { code, out, said } = await archive(...args, "--to", folder);
        assert.equal(code, 0, said);
        return out;
      };
      const refused = async (said: string | RegExp, ...args: string[]) => {
        const ended = await archive(...args);
        assert.equal(ended.code, 1, ended.out);
        if (typeof said === "string") assert.ok(ended.said.startsWith(said), ended.said);
        else assert.match(ended.said, said);
        return ended;
      };

      await t.step("writes each day that ended a week ago", async () => {
        const lines = (await run()).trimEnd().split("\n");
        assert.equal(lines.length, 26);
        assert.equal(lines[0], `acme ${day(33)}: 1 events, 1 deliveries`);
        assert.equal(lines[1], `acme ${day(32)}: 3 events, 3 deliveries`);
        assert.equal(lines.at(-1), `acme ${day(8)}: 0 events, 0 deliveries`);
      });
      await t.step("a line is the event as it was sent, or a delivery", async () => {
        assert.deepEqual((await linesOf(32, "events-0001.ndjson.gz")).map(({ n }) => n), [2, 3, 4]);
        const [delivery] = await linesOf(20, "deliveries-0001.ndjson.gz");
        assert.deepEqual([delivery.event_id, delivery.status], ["evt_5", "delivered"]);
      });
      await t.step("a manifest carries the sums of the ledger forward", async () => {
        const [{ ledger }, { previous }] = [await manifestOf(32), await manifestOf(31)];
        assert.deepEqual(ledger, [{
          currency: "EUR",
          debit_account: "processor",
          credit_account: "available",
          opening: "100",
          moved: "100",
          closing: "200",
        }]);
        assert.equal(previous.day, day(32));
        assert.equal((await manifestOf(33)).previous, null);
      });
      await t.step("retention deletes what the archive has after 30 days", async () => {
        assert.deepEqual(await kept(), [6, 6]);
        await sql`select pay.purge()`;
        assert.deepEqual(await kept(), [2, 2]);
        await sql`update pay.archives set archived_until = ${day(21)}::timestamptz`;
        await sql`select pay.purge(now() + interval '20 days')`;
        await setServerTime(sql, Date.now() + 40 * DAY_MS);
        await sql`select pay.purge(now() + interval '40 days')`;
        assert.deepEqual(await kept(), [2, 2]);
        await setServerTime(sql, null);
        await sql`update pay.archives set archived_until = ${day(7)}::timestamptz`;
      });
      await t.step("--check reads everything again", async () => {
        const whole = `acme: 26 days until ${day(8)}, whole, and the ledger agrees\n`;
        assert.equal(await run("--check"), whole);
      });
      for (
        const [name, path, fault] of [
          ["a changed file", `${day(32)}/events-0001.ndjson.gz`, "has another checksum"],
          ["a changed manifest", `${day(31)}/manifest.json`, "has another checksum"],
          ["a lost file", `${day(33)}/deliveries-0001.ndjson.gz`, "is missing"],
        ] as const
      ) {
        await t.step(`--check names ${name}`, async () => {
          const file = join(folder, ENVIRONMENT, path);
          const bytes = await Deno.readFile(file);
          if (name === "a lost file") await Deno.remove(file);
          else await Deno.writeFile(file, Uint8Array.of(...bytes, 10));
          await refused(new RegExp(`${path}.*${fault}`, "s"), "--check", "--to", folder);
          await Deno.writeFile(file, bytes);
        });
      }
      await t.step("--check notices a ledger that has changed", async () => {
        await sql`insert into pay.ledger_movements (amount_minor, created_at, leg, environment_id,
            transaction_id, kind, subject_id, debit_account, credit_account, currency)
          select 1, created_at, 1, environment_id, transaction_id, kind, subject_id, debit_account,
            credit_account, currency from pay.ledger_movements order by transaction_id limit 1`;
        const sums = /available 300 EUR, and those of the database are .* 301 EUR/;
        await refused(sums, "--check", "--to", folder);
        await sql`delete from pay.ledger_movements where leg = 1`;
      });
      await t.step("another archive is neither checked nor continued", async () => {
        const kept = `${folder}-kept`;
        await Deno.rename(folder, kept);
        await cp(kept, folder, { recursive: true });
        await forge(join(folder, ENVIRONMENT), day(20));
        const known = `acme: the database knows another manifest of ${day(8)}: `;
        await refused(known, "--check", "--to", folder);
        await refused(known, "--to", folder);
        await Deno.remove(folder, { recursive: true });
        await Deno.rename(kept, folder);
      });
      await t.step("another run writes only what is missing", async () => {
        assert.deepEqual(await archive("--to", folder), { code: 0, out: "", said: "" });
      });
      await t.step("another place is refused", async () => {
        await refused(/^acme: this place has no archive until /, "--to", `${folder}-other`);
      });
      await t.step("--end lets retention go on", async () => {
        const { code, out } = await archive("--end", "--account", "acme");
        assert.deepEqual([code, out], [0, "acme: the archive has ended\n"]);
        assert.equal((await sql`select from pay.archives where not is_ended`).length, 0);
        assert.equal((await archive("--check", "--to", folder)).code, 0);
      });
      await t.step("after an end it goes on behind its last day", async () => {
        // As if retention had deleted other events since: the days would have other ones.
        await store(19);
        assert.deepEqual(await archive("--to", folder), { code: 0, out: "", said: "" });
        assert.deepEqual((await manifestOf(19)).files, []);
        const [row] = await sql`select archived_until from pay.archives`;
        assert.equal(row!.archived_until.toISOString().slice(0, 10), day(7));
        await archive("--end", "--account", "acme");
      });
      await t.step("a killed run goes on where it ended", async () => {
        const place = `${folder}-killed`;
        for (const lines of [1, 2, 3]) {
          const running = launch("--to", place);
          await running.printed(new RegExp(`(.*\\n){${lines}}`));
          await running.end("SIGKILL");
        }
        assert.equal((await archive("--to", place)).code, 0);
        const { code, out, said } = await archive("--check", "--to", place);
        assert.equal(code, 0, said);
        assert.match(out, /, whole, and the ledger agrees\n$/);
      });
      await t.step("--check notices days that the place does not have", async () => {
        const place = `${folder}-killed`;
        const latest = join(place, ENVIRONMENT, "latest.json");
        const { previous } = JSON.parse(
          await Deno.readTextFile(join(place, ENVIRONMENT, day(8), "manifest.json")),
        );
        await Deno.writeTextFile(latest, JSON.stringify(previous));
        const lacks = `acme: the archive at this place ends with ${day(9)} and lacks ${day(8)}`;
        await refused(lacks, "--check", "--to", place);
      });
      await t.step("the fault of one account does not hold up the others", async () => {
        const id = "env_zzzzzzzzzzzzzzzzzzzzzzzzzz";
        await createEnvironment(sql, { id, account: "other", livemode: true });
        await sql`insert into pay.events (environment_id, id, type, subject_id, sequence, created_at,
            body) select ${id}, id, type, subject_id, sequence, created_at, body
          from pay.events order by created_at limit 1`;
        const alone = /^acme: this place has no archive until [^\n]+\n$/;
        const { out } = await refused(alone, "--to", `${folder}-other`);
        assert.match(out, /^other [^\n]+: 1 events, 0 deliveries\n/);
        await sql`delete from pay.events where environment_id = ${id}`;
      });
      await t.step("wrong arguments", async () => {
        for (
          const [args, message] of [
            [["--account", "acme"], /^--to is missing/],
            [["--to", folder, "--account", "nobody"], /^--account "nobody" has no live env/],
            [["--to", folder, "--until", "31.1.2030"], /^--until "31\.1\.2030" must be a day/],
            [["--to", "s3:bucket"], /^--to "s3:bucket" must be s3:\/\/BUCKET/],
            [["--end"], /^--account is missing/],
            [["--to", folder, "--all"], /Unknown option '--all'/],
          ] as const
        ) {
          const { code, said } = await archive(...args);
          assert.equal(code, 2, said);
          assert.match(said, message);
        }
      });
      await t.step("a place that cannot be written is an error, and nothing is noted", async () => {
        await sql`delete from pay.archives`;
        await Deno.writeTextFile(`${folder}-file`, "");
        await refused(/^Cannot (read|write) /, "--to", `${folder}-file`);
        assert.equal((await sql`select from pay.archives`).length, 0);
      });
    })
  ));

/** Removes a day's events as somebody who can write to the place, and makes every checksum anew. */
async function forge(folder: string, forged_day: string): Promise<void> {
  const names = await Array.fromAsync(Deno.readDir(folder), ({ name }) => name);
  const days = names.filter((name) => name >= forged_day && name !== "latest.json").sort();
  let previous: unknown;
  for (const each of days) {
    const path = join(folder, each, "manifest.json");
    const manifest = JSON.parse(await Deno.readTextFile(path));
    if (each === forged_day) manifest.files = [];
    else manifest.previous = previous;
    const text = JSON.stringify(manifest);
    await Deno.writeTextFile(path, text);
    previous = { day: each, sha256: createHash("sha256").update(text).digest("hex") };
  }
  await Deno.writeTextFile(join(folder, "latest.json"), JSON.stringify(previous));
}

Deno.test("deno task archive splits a day into files", (t) =>
  withArchived(({ sql, archive, store }) =>
    withTemporaryFolder(async (folder) => {
      // One line more than a file has, and many pages.
      await store(8, 50_001);
      await t.step("two at once: the second is refused", async () => {
        await sql`select pg_advisory_lock(hashtextextended('archive', 0))`;
        const { code, said } = await archive("--to", folder);
        await sql`select pg_advisory_unlock(hashtextextended('archive', 0))`;
        assert.deepEqual([code, said], [1, "Another archive is being written\n"]);
      });
      await t.step("each row is written once, in order", async () => {
        const { code, out, said } = await archive("--to", folder);
        assert.deepEqual([code, out], [
          0,
          `acme ${day(8)}: 50001 events, 50001 deliveries\n`,
        ], said);
        const events: number[] = [];
        for (const [number, lines] of [["0001", 50_000], ["0002", 1]] as const) {
          const path = join(folder, ENVIRONMENT, day(8), `events-${number}.ndjson.gz`);
          const found = gunzipSync(await Deno.readFile(path)).toString().trimEnd().split("\n");
          assert.equal(found.length, lines);
          events.push(...found.map((line) => JSON.parse(line).n));
        }
        assert.deepEqual(events, Array.from({ length: 50_001 }, (_, i) => i + 1));
      });
      await t.step("the whole is checked", async () => {
        assert.equal((await archive("--check", "--to", folder)).code, 0);
      });
    })
  ));

Deno.test("deno task archive writes to a bucket", () =>
  withArchived(({ env, archive, store }) =>
    withTemporaryFolder(async (folder) => {
      await store(12, 3);
      const port = freePort();
      const serve = ["npx", "-y", "s3rver@3.7.1", "-d", folder, "-a", "127.0.0.1"];
      const server = launchCommand({
        args: [...serve, "-p", String(port), "-s", "--configure-bucket", "kept"],
        // npx passes no signal on, so the test ends the whole group.
        detached: true,
      });
      try {
        await until("the bucket responds", () =>
          fetch(`http://127.0.0.1:${port}/`).then((r) =>
            r.body!.cancel()
          ).then(() => true, () => false));
        const AWS_ENDPOINT_URL = `http://127.0.0.1:${port}`;
        const bucket = { AWS_ENDPOINT_URL, AWS_SECRET_ACCESS_KEY: "S3RVER" };
        Object.assign(env, bucket, { AWS_ACCESS_KEY_ID: "S3RVER" });
        const lost = await archive("--to", "s3://none/payments");
        assert.equal(lost.code, 1, lost.out);
        assert.match(lost.said, /none\/payments.*404|There is no bucket "none"/s);
        env["AWS_ACCESS_KEY_ID"] = "wrong";
        const refused = await archive("--to", "s3://kept/payments");
        env["AWS_ACCESS_KEY_ID"] = "S3RVER";
        assert.equal(refused.code, 1, refused.out);
        assert.match(refused.said, /403 .*InvalidAccessKeyId/s);
        const written = await archive("--to", "s3://kept/payments");
        assert.equal(written.code, 0, written.said);
        const checked = await archive("--check", "--to", "s3://kept/payments");
        assert.match(checked.out, /^acme: 5 days until .*, whole, and the ledger agrees\n$/);
      } finally {
        Deno.kill(-server.pid, "SIGTERM");
        await server.ended;
      }
    })
  ));
