/**
 * The embedded PostgreSQL server of the local start: restarts, data, ports, permissions and its
 * log; and the databases of deleted data folders, which a start removes.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { dirname, join } from "node:path";
import { startPostgres } from "../../apps/server/postgres/embedded_postgres.ts";
import { endLeftoverServer, socketFolder } from "../../apps/server/postgres/postgres_cluster.ts";
import { openDatabase } from "../../shared/store/database.ts";
import {
  FALLBACK_PARENT,
  postgresAccount,
  postgresHome,
} from "../../apps/server/postgres/postgres_account.ts";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";
import {
  noteDataFolder,
  removeAbandonedHomes,
} from "../../apps/server/postgres/abandoned_homes.ts";

/** Queries until the server responds. If it never does, the test fails by its timeout. */
async function ask(url: string, statement: string): Promise<postgres.RowList<postgres.Row[]>> {
  for (;;) {
    const sql = postgres(url, { max: 1, connect_timeout: 1, onnotice: () => {} });
    try {
      return await sql.unsafe(statement);
    } catch (error) {
      // The server is unavailable or recovering: 57P03 cannot_connect_now.
      const { code } = error as { code?: string };
      if (!/^(ECONN|CONNECTION|57P0)/.test(code ?? "")) throw error;
    } finally {
      await sql.end();
    }
  }
}

Deno.test("startPostgres() keeps data and password when it moves to a free port", () =>
  withTemporaryFolder(async (data_dir) => {
    const first = await startPostgres({ data_dir, durable: false });
    await ask(first.superuser_url, "create table kept as select 1 as n");
    await first.stop();
    const occupant = Deno.listen({ hostname: "127.0.0.1", port: first.port });
    const second = await startPostgres({ data_dir, durable: false });
    try {
      assert.deepEqual([...await ask(second.superuser_url, "select n from kept")], [{ n: 1 }]);
      assert.notEqual(second.port, first.port);
    } finally {
      occupant.close();
      await second.stop();
    }
  }));

Deno.test("startPostgres() ends with an error if the databases are missing", () =>
  withTemporaryFolder(async (data_dir) => {
    const server = await startPostgres({ data_dir, durable: false });
    await Deno.rename(join(server.home, "postgres"), join(server.home, "elsewhere"));
    Deno.kill(server.pid, "SIGKILL");
    assert.match((await server.exited)?.message ?? "", /have been deleted/);
  }));

Deno.test("startPostgres() is durable and private, and logs nothing of clients, by default", () =>
  withTemporaryFolder(async (data_dir) => {
    const server = await startPostgres({ data_dir, durable: true });
    try {
      const settings = await ask(
        server.superuser_url,
        `select name, setting from pg_settings where name in ('fsync', 'full_page_writes',
           'synchronous_commit', 'listen_addresses', 'unix_socket_directories',
           'log_min_error_statement') order by name`,
      );
      assert.deepEqual(Object.fromEntries(settings.map(({ name, setting }) => [name, setting])), {
        fsync: "on",
        full_page_writes: "on",
        listen_addresses: "127.0.0.1",
        log_min_error_statement: "panic",
        synchronous_commit: "on",
        unix_socket_directories: server.socket_folder ? `"${server.socket_folder}"` : "",
      });
      const url = new URL(server.superuser_url);
      url.password = "wrong";
      await assert.rejects(ask(url.href, "select 1"), { code: "28P01" });
      await ask(server.superuser_url, "create table t (mail text unique, check (mail <> 'no'))");
      for (const value of ["canary@example.com", "canary@example.com", "no"]) {
        await ask(server.superuser_url, `insert into t values ('${value}')`).catch(() => {});
      }
      const log = await Deno.readTextFile(join(data_dir, "postgres.log"));
      assert.match(log, /duplicate key value/);
      assert.doesNotMatch(log, /canary|'no'|insert into/);
      const { mode } = await Deno.stat(join(server.home, "postgres_password"));
      assert.equal(mode! & 0o777, 0o600);
    } finally {
      await server.stop();
    }
  }));

Deno.test("the functions reach the server by its Unix socket, unless its path is too long", () =>
  withTemporaryFolder(async (folder) => {
    const data_dir = join(folder, 'a,b "c" #%?');
    const server = await startPostgres({ data_dir, durable: false });
    const url = new URL(server.superuser_url);
    url.searchParams.set("host", server.socket_folder!);
    const database = openDatabase({ url: url.href });
    try {
      const statement = "select inet_client_addr() as client";
      assert.deepEqual([...await database.query(statement, [])], [{ client: null }]);
      assert.equal((await ask(server.superuser_url, statement))[0]!["client"], "127.0.0.1");
      assert.equal(socketFolder({ path: `/${"ä".repeat(44)}` }), null);
    } finally {
      await database.close();
      await server.stop();
    }
    // Its path must be short.
  }, "/tmp"));

Deno.test("endLeftoverServer() removes a pid file with another program's process, and sockets", () =>
  withTemporaryFolder(async (cluster) => {
    await Deno.mkdir(cluster);
    const left = ["postmaster.pid", ".s.PGSQL.5432.lock"].map((name) => join(cluster, name));
    for (const path of left) await Deno.writeTextFile(path, `${Deno.pid}\n${cluster}\n`);
    await endLeftoverServer(cluster);
    for (const path of left) await assert.rejects(Deno.stat(path), Deno.errors.NotFound);
  }));

Deno.test({
  name: "postgresHome() finds and stores another place if root's folder is closed",
  ignore: Deno.build.os === "windows" || Deno.uid() !== 0,
  fn: () =>
    withTemporaryFolder(async (data_dir) => {
      await Deno.mkdir(data_dir, { mode: 0o700 });
      const account = await postgresAccount();
      const home = await postgresHome(data_dir, account);
      try {
        assert.notEqual(home, data_dir);
        assert.equal(await postgresHome(data_dir, account), home);
        await Deno.chmod(data_dir, 0o755);
        assert.equal(await postgresHome(data_dir, account), home, "data must not move");
      } finally {
        await Deno.remove(home);
        // Another data folder can have its databases there.
        await Deno.remove(dirname(home)).catch(() => {});
      }
    }),
});

const DAY_MS = 24 * 3_600_000;
const MARKER = "data_folders.json";

/** A home that a data folder uses, and the data folder. */
interface Case {
  home: string;
  data_dir: string;
}

/** Deletes the data folder, and then changes its home. */
const deleted =
  (change: (home: string, data_dir: string) => Promise<unknown>) =>
  async ({ home, data_dir }: Case) => {
    await Deno.remove(data_dir, { recursive: true });
    await change(home, data_dir);
  };

/** Changes, and whether a start a day later removes the home. */
const CASES: [name: string, removed: boolean, change: (given: Case) => Promise<unknown>][] = [
  ["a data folder that is there", false, () => Promise.resolve()],
  ["a deleted data folder", true, deleted(() => Promise.resolve())],
  [
    "a data folder that was deleted with its parent",
    true,
    ({ data_dir }) => Deno.remove(join(data_dir, ".."), { recursive: true }),
  ],
  ["a second data folder with the same databases", false, async ({ home, data_dir }) => {
    await Deno.mkdir(`${data_dir}-copy`);
    await noteDataFolder(home, `${data_dir}-copy`);
    await Deno.remove(data_dir, { recursive: true });
  }],
  [
    "a disk that is not mounted",
    false,
    deleted(async (home, path) =>
      await writeMarker(home, [{ path, device: (await Deno.stat(home)).dev + 1 }])
    ),
  ],
  ["no marker", false, deleted((home) => Deno.remove(join(home, MARKER)))],
  ["a marker that names nothing", false, deleted((home) => writeMarker(home, []))],
  ["a broken marker", false, deleted((home) => Deno.writeTextFile(join(home, MARKER), "[{"))],
  [
    "a marker that is a link",
    false,
    deleted(async (home) => {
      await Deno.rename(join(home, MARKER), join(home, "elsewhere"));
      await Deno.symlink(join(home, "elsewhere"), join(home, MARKER));
    }),
  ],
  [
    "a server that has written a checkpoint since",
    false,
    deleted(async (home) => {
      await Deno.mkdir(join(home, "postgres", "global"), { recursive: true });
      await Deno.writeTextFile(join(home, "postgres", "global", "pg_control"), "");
    }),
  ],
];

function writeMarker(home: string, folders: unknown): Promise<void> {
  return Deno.writeTextFile(join(home, MARKER), JSON.stringify(folders));
}

/** Makes a home as a root caller has it, last used two days ago. */
async function makeCase(parent: string, name: string = crypto.randomUUID()): Promise<Case> {
  const [home, data_dir] = [join(parent, "homes", name), join(parent, "projects", "one", ".local")];
  await Deno.mkdir(join(home, "postgres"), { recursive: true });
  await Deno.mkdir(data_dir, { recursive: true });
  await noteDataFolder(home, data_dir);
  return { home, data_dir };
}

async function age(home: string): Promise<void> {
  const then = new Date(Date.now() - 2 * DAY_MS);
  const marker = join(home, MARKER);
  const is_file = await Deno.lstat(marker).then(({ isFile }) => isFile, () => false);
  if (is_file) await Deno.utime(marker, then, then);
}

async function isThere(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

const ignore = Deno.build.os === "windows";

for (const [name, removed, change] of CASES) {
  Deno.test({
    name: `removeAbandonedHomes() ${removed ? "removes the home of" : "keeps the home of"} ${name}`,
    ignore,
    fn: () =>
      withTemporaryFolder(async (parent) => {
        const given = await makeCase(parent);
        await change(given);
        await age(given.home);
        assert.equal(await removeAbandonedHomes(join(parent, "homes")), removed ? 1 : 0);
        assert.equal(await isThere(given.home), !removed);
      }),
  });
}

Deno.test({
  name: "removeAbandonedHomes() waits for a day, because a data folder can have been moved",
  ignore,
  fn: () =>
    withTemporaryFolder(async (parent) => {
      const { home, data_dir } = await makeCase(parent);
      const homes = join(parent, "homes");
      await Deno.rename(data_dir, `${data_dir}-moved`);
      const used_ms = (await Deno.stat(join(home, MARKER))).mtime!.getTime();
      assert.equal(await removeAbandonedHomes(homes, used_ms + DAY_MS - 1), 0);
      await noteDataFolder(home, `${data_dir}-moved`);
      assert.equal(await removeAbandonedHomes(homes, used_ms + 10 * DAY_MS), 0);
      await Deno.remove(`${data_dir}-moved`);
      assert.equal(await removeAbandonedHomes(homes, used_ms + 10 * DAY_MS), 1);
      assert.equal(await isThere(home), false);
    }),
});

Deno.test({
  name: "removeAbandonedHomes() keeps other folders, and has nothing to do without any",
  ignore,
  fn: () =>
    withTemporaryFolder(async (parent) => {
      const homes = join(parent, "homes");
      assert.equal(await removeAbandonedHomes(homes), 0);
      const { home, data_dir } = await makeCase(parent, "mine");
      await Deno.remove(data_dir, { recursive: true });
      await Deno.symlink(home, join(homes, crypto.randomUUID()));
      assert.equal(await removeAbandonedHomes(homes, Date.now() + 9 * DAY_MS), 0);
      assert.ok(await isThere(home));
    }),
});

Deno.test({
  name: "startPostgres() of root removes the databases of a deleted data folder, unless they run",
  ignore: ignore || Deno.uid() !== 0,
  fn: () =>
    withTemporaryFolder(async (parent) => {
      const start = async (name: string) => {
        const data_dir = join(parent, name);
        await Deno.mkdir(data_dir, { recursive: true });
        // PostgreSQL's account cannot enter it.
        await Deno.chmod(data_dir, 0o700);
        const server = await startPostgres({ data_dir, durable: false });
        return { data_dir, server, home: server.home };
      };
      const ended = await start("ended");
      const running = await start("running");
      const homes = [ended, running].map(({ home }) => home);
      let third: Awaited<ReturnType<typeof start>> | null = null;
      try {
        await ended.server.stop();
        for (const { home, data_dir } of [ended, running]) {
          assert.ok(home.startsWith(`${FALLBACK_PARENT}/`), home);
          await Deno.remove(data_dir, { recursive: true });
          await age(home);
          const control = join(home, "postgres", "global", "pg_control");
          await Deno.utime(control, 1, 1);
        }
        third = await start("third");
        homes.push(third.home);
        assert.deepEqual(await Promise.all(homes.map(isThere)), [false, true, true]);
      } finally {
        await running.server.stop();
        await third?.server.stop();
        for (const home of homes) await Deno.remove(home, { recursive: true }).catch(() => {});
      }
    }),
});
