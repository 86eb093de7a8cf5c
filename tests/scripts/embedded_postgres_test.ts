/**
 * The embedded PostgreSQL server of the local start: restarts, data, ports, permissions and its
 * log.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { dirname, join } from "node:path";
import { startPostgres } from "../../apps/server/postgres/embedded_postgres.ts";
import { endLeftoverServer } from "../../apps/server/postgres/postgres_cluster.ts";
import { postgresAccount, postgresHome } from "../../apps/server/postgres/postgres_account.ts";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";
import { until } from "../support/common/until.ts";

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

Deno.test("startPostgres() keeps its port and the committed rows after kill -9", () =>
  withTemporaryFolder(async (data_dir) => {
    const server = await startPostgres({ data_dir, durable: true });
    try {
      await ask(server.superuser_url, "create table kept as select 1 as n");
      const killed = server.pid;
      Deno.kill(killed, "SIGKILL");
      await until("another server runs", () => server.pid !== killed);
      assert.deepEqual([...await ask(server.superuser_url, "select n from kept")], [{ n: 1 }]);
    } finally {
      await server.stop();
    }
    assert.equal(await server.exited, null);
  }));

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

Deno.test("startPostgres() refuses a folder that another start uses", () =>
  withTemporaryFolder(async (data_dir) => {
    const server = await startPostgres({ data_dir, durable: false });
    try {
      const second = startPostgres({ data_dir, durable: false });
      await assert.rejects(second, new RegExp(`in use by another start \\(process ${Deno.pid}\\)`));
      assert.equal((await ask(server.superuser_url, "select 1 as n")).length, 1);
    } finally {
      await server.stop();
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
        unix_socket_directories: "",
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

Deno.test("endLeftoverServer() removes a pid file with another program's process", () =>
  withTemporaryFolder(async (cluster) => {
    await Deno.mkdir(cluster);
    const pid_file = join(cluster, "postmaster.pid");
    await Deno.writeTextFile(pid_file, `${Deno.pid}\n${cluster}\n`);
    await endLeftoverServer(cluster);
    await assert.rejects(Deno.stat(pid_file), Deno.errors.NotFound);
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
