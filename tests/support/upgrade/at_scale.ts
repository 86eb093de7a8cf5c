/**
 * `deno run -A tests/support/upgrade/at_scale.ts [PAYMENTS] [RELEASE]` measures the upgrade of a
 * large database. It fills a database of a release from its fixture: of the newest release, or of
 * this tree if there is none. It multiplies the rows to PAYMENTS payments (1 000 000 by default),
 * migrates the database to this tree and then to an invented next release, which replaces functions
 * and changes a table. It checks the books after each migration.
 *
 * Each copy of the rows has its own environment. The key of every tenant's row begins with its
 * environment, so the copy works for the tables of any release.
 */

import { join } from "node:path";
import postgres from "postgres";
import { checkBooks } from "../../../scripts/operator/check_books.ts";
import { startPostgres } from "../../../scripts/postgres/embedded_postgres.ts";
import { migrate, MIGRATIONS_DIR } from "../../../scripts/schema/migrate.ts";
import { readReleases, withReleaseMigrations } from "../../../scripts/schema/releases.ts";
import { type ScratchServer, scratchServer } from "../../../scripts/postgres/scratch_database.ts";
import { listTables, loadRows } from "./data_file.ts";
import { type Fixture, makeFixture, readFixture } from "./fixture.ts";
import { withNextRelease } from "./next_release.ts";

const DEFAULT_PAYMENTS = 1_000_000;
/** Tables that the loop does not copy: environments have their own statement, copies no keys. */
const NOT_COPIED = ["environments", "api_keys", "api_key_secrets"];

if (import.meta.main) Deno.exit(await main(Deno.args));

async function main([payments, release]: readonly string[]): Promise<number> {
  const folder = await Deno.makeTempDir({ prefix: "payments-scale-" });
  if (Deno.build.os !== "windows") await Deno.chmod(folder, 0o755);
  // With fsync, because the measurement includes the time of commits.
  const server = await startPostgres({ data_dir: join(folder, "data"), durable: true });
  try {
    return await measure(
      scratchServer(server.superuser_url),
      Number(payments ?? DEFAULT_PAYMENTS),
      release ?? Object.keys(await readReleases()).at(-1),
    );
  } finally {
    await server.stop();
    await Deno.remove(server.home, { recursive: true });
    await Deno.remove(folder, { recursive: true }).catch(() => {});
  }
}

async function measure(
  server: ScratchServer,
  payments: number,
  release: string | undefined,
): Promise<number> {
  return await server.withDatabase(async (url) => {
    const fixture = await migrateAndRead(server, url, release);
    const sql = postgres(url, { max: 1, onnotice: () => {} });
    try {
      await timed("fill", async () => {
        await loadRows(sql, fixture.rows);
        const count = await multiply(sql, payments);
        await sql`vacuum analyze`;
        const [row] =
          await sql`select pg_size_pretty(pg_database_size(current_database())) as size`;
        console.log(`${count} payments of ${release ?? "this tree"}, ${row!.size}`);
      });
      let broken = 0;
      await timed("migrate to this tree", () => migrate(url));
      broken += await timed("check the books", () => countBroken(sql));
      await withNextRelease(server, async ({ migrations }) => {
        await timed("migrate to the next release", () => migrate(url, undefined, migrations));
      });
      broken += await timed("check the books", () => countBroken(sql));
      return broken === 0 ? 0 : 1;
    } finally {
      await sql.end();
    }
  });
}

/** Migrates the empty database to a release, or to this tree, and returns its fixture. */
async function migrateAndRead(
  server: ScratchServer,
  url: string,
  release: string | undefined,
): Promise<Fixture> {
  if (release !== undefined) {
    await withReleaseMigrations(
      MIGRATIONS_DIR,
      await readReleases(),
      release,
      (folder) => migrate(url, undefined, folder),
    );
    return await readFixture(release);
  }
  await migrate(url);
  return await server.withDatabase(async (scratch_url) => {
    await migrate(scratch_url);
    return await makeFixture(scratch_url);
  });
}

/** Copies every environment until the database has this many payments. Returns their number. */
async function multiply(sql: postgres.Sql, payments: number): Promise<number> {
  const [{ count }] = await sql<[{ count: number }]>`select count(*)::int from pay.payments`;
  const copies = Math.ceil(payments / count) - 1;
  const tables = await sql<{ name: string }[]>`
    select relname as name from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attname = 'environment_id'
    where c.relnamespace = 'pay'::regnamespace`;
  const of_environment = new Set(tables.map(({ name }) => name));
  await sql.begin(async (sql) => {
    await sql`set local session_replication_role = replica`;
    await sql`set local synchronous_commit = off`;
    await sql`
      create temp table copied on commit drop as
      select e.id as old_id, n, 'env_9' || lpad(e.place::text, 5, '0') || lpad(n::text, 20, '0') as new_id
      from (select id, row_number() over (order by id) as place from pay.environments) e
      cross join generate_series(1, ${copies}::int) n`;
    await sql`
      insert into pay.environments
      select r.* from pay.environments e
      join copied c on c.old_id = e.id
      cross join lateral jsonb_populate_record(e, jsonb_build_object(
        'id', c.new_id, 'public_id', c.new_id, 'account', e.account || ' ' || c.n)) r`;
    for (const { name, columns } of await listTables(sql as unknown as postgres.Sql)) {
      if (!of_environment.has(name) || NOT_COPIED.includes(name)) continue;
      const copied = columns.replace(/\benvironment_id\b/, "c.new_id");
      await sql.unsafe(
        `insert into pay.${name} (${columns})
         select ${copied} from pay.${name} t join copied c on c.old_id = t.environment_id`,
      );
    }
  });
  return count * (copies + 1);
}

async function countBroken(sql: postgres.Sql): Promise<number> {
  const verdicts = await checkBooks(sql);
  // The waiting deliveries of an old fixture are overdue.
  const broken = verdicts.filter(({ oracle, findings }) =>
    findings > 0 && oracle !== "oracle_endless_deliveries"
  );
  for (const { oracle, findings, examples } of broken) console.log(oracle, findings, examples);
  console.log(`${verdicts.length} oracles, ${broken.length} broken`);
  return broken.length;
}

async function timed<T>(name: string, work: () => Promise<T>): Promise<T> {
  const started = performance.now();
  const result = await work();
  console.log(`${name}: ${((performance.now() - started) / 1000).toFixed(1)} s`);
  return result;
}
