/**
 * A database that accepts only TLS, as with Supabase's "Enforce SSL". The functions on Deno 2.1.4
 * and the operator's commands connect as `sslmode` of their URL says, with a trusted certificate,
 * and survive the outages of outage_test.ts with TLS too.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import postgres from "postgres";
import { migrate } from "../../apps/server/migrations/migrate.ts";
import { openOperatorDatabase } from "../../apps/operator/operator_database.ts";
import { giveTo, postgresAccount } from "../../apps/server/postgres/postgres_account.ts";
import type { LogLine } from "../../shared/http/log_line.ts";
import { testWith } from "../support/common/programs.ts";
import { until } from "../support/common/until.ts";
import { keyedCall } from "../support/service/keyed_call.ts";
import { PAYMENTS } from "../support/service/service_case.ts";
import { startFunctions } from "../support/supabase/function_process.ts";
import { DEBIAN_15, hasVersion, startSupabaseServer } from "../support/supabase/supabase_server.ts";
import { makeSandboxKey } from "../support/database/api_keys.ts";
import { outputOf } from "../support/common/running_command.ts";

const NAME = "api-v1-payments";
/** Promise R12. */
const WELL_WITHIN_MS = 5_000;

testWith(DEBIAN_15, await hasVersion(15), "a database that accepts only TLS", async (t) => {
  const folder = await Deno.makeTempDir({ prefix: "payments-tls-" });
  const server = await startSupabaseServer(15);
  await migrate(server.url);
  const key = await makeSandboxKey(server.url);
  const authority = await makeCertificate(folder);
  /** Accepts connections of one kind: `host` all, `hostssl` those with TLS. */
  const admit = async (kind: "host" | "hostssl") => {
    await Deno.writeTextFile(hba_file, `${kind} all all all scram-sha-256\n`);
    await admin`select pg_reload_conf()`;
  };
  const admin = postgres(`${server.admin_url}?sslmode=prefer`, {
    max: 1,
    backoff: false,
    onnotice: () => {},
  });
  const [{ hba_file }] = await admin`show hba_file` as unknown as [{ hba_file: string }];
  /** Starts the function and calls `work` with a payment request. Also gives the log lines. */
  const withFunction = async <T>(
    sslmode: string,
    trusts: boolean,
    work: (pay: () => Promise<number>, lines: LogLine[]) => Promise<T>,
  ) => {
    const lines: LogLine[] = [];
    const process = await startFunctions([NAME], {
      SUPABASE_DB_URL: `${server.url}${sslmode && `?sslmode=${sslmode}`}`,
      PUBLIC_BASE_URL: "http://127.0.0.1/functions/v1",
      RATE_LIMIT_PER_SECOND: "0",
      ...(trusts && { PAYMENTS_DB_CA: authority }),
    }, (line) => lines.push(line));
    const pay = async () => {
      const body = { amount: 100, currency: "EUR", outcome: "success" };
      const { status, headers } = await keyedCall(process.origin, "POST", PAYMENTS, { key, body });
      const request_id = headers.get("Request-Id")!;
      await until("the request is logged", () => process.hasLogged(request_id));
      return status;
    };
    try {
      return await work(pay, lines);
    } finally {
      const complaints = [...process.complaints];
      await process.close();
      assert.deepEqual(complaints, []);
    }
  };
  /** The status of a payment, and whether its session used TLS. */
  const outcome = (sslmode: string, trusts: boolean) =>
    withFunction(sslmode, trusts, async (pay, lines) => {
      const status = await pay();
      const [sessions] = await admin`select bool_and(s.ssl) as over_tls
        from pg_stat_activity a join pg_stat_ssl s using (pid)
        where application_name = 'payments'`;
      return [status, sessions!.over_tls ?? lines.at(-1)?.fault];
    });
  try {
    await t.step("prefer uses no TLS if the server has none", async () => {
      assert.deepEqual(await outcome("prefer", true), [201, false]);
    });
    await t.step("require refuses a server without TLS, and the log says why", async () => {
      const [status, fault] = await outcome("require", true);
      assert.equal(status, 500);
      assert.match(String(fault), /EncryptionFailed/);
    });
    for (
      const [name, value] of [
        ["ssl_cert_file", join(folder, "server.pem")],
        ["ssl_key_file", join(folder, "server.key")],
        ["ssl", "on"],
      ]
    ) {
      await admin.unsafe(`alter system set ${name} = '${value}'`);
    }
    await admin`select pg_reload_conf()`;
    await t.step("prefer uses no TLS with an untrusted certificate", async () => {
      assert.deepEqual(await outcome("prefer", false), [201, false]);
    });
    await admit("hostssl");
    await t.step("a connection without TLS is refused", async () => {
      assert.deepEqual((await outcome("", true))[0], 500);
    });
    for (const sslmode of ["prefer", "require", "verify-full"]) {
      await t.step(`${sslmode} creates a payment over TLS`, async () => {
        assert.deepEqual(await outcome(sslmode, true), [201, true]);
      });
    }
    await t.step("require refuses an untrusted certificate", async () => {
      const [status, fault] = await outcome("require", false);
      assert.equal(status, 500);
      assert.match(String(fault), /EncryptionFailed/);
    });
    await t.step("the operator's commands connect over TLS", async () => {
      const data_dir = folder;
      for (const sslmode of ["prefer", "require"]) {
        const database_url = `${server.url}?sslmode=${sslmode}`;
        await using database = await openOperatorDatabase({ data_dir, database_url }, () => {});
        const [row] = await database
          .sql`select ssl from pg_stat_ssl where pid = pg_backend_pid()`;
        assert.equal(row!.ssl, true);
        assert.deepEqual(await migrate(database_url), []);
      }
    });
    await t.step(
      "the function survives terminated sessions and a restart",
      () =>
        withFunction("require", true, async (pay) => {
          const isWell = async () => await pay() === 201;
          await until("a payment succeeds", isWell, WELL_WITHIN_MS);
          await admin`select pg_terminate_backend(pid) from pg_stat_activity
          where application_name = 'payments'`;
          await until("a payment succeeds again", isWell, WELL_WITHIN_MS);
          await server.restart(async () => assert.equal(await pay(), 503));
          await until("a payment succeeds after the restart", isWell, WELL_WITHIN_MS);
        }),
    );
  } finally {
    await admin.end({ timeout: 1 });
    await server.close();
    await Deno.remove(folder, { recursive: true });
  }
});

/** Writes `server.pem` and `server.key` for 127.0.0.1. Returns the certificate authority. */
async function makeCertificate(folder: string): Promise<string> {
  await Deno.writeTextFile(
    join(folder, "extensions"),
    "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n",
  );
  const key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
  const commands = [
    `req -x509 -days 2 ${key} -subj /CN=authority -out authority.pem -keyout authority.key`,
    `req ${key} -subj /CN=server -out server.csr -keyout server.key`,
    "x509 -req -days 2 -in server.csr -CA authority.pem -CAkey authority.key -CAcreateserial " +
    "-extfile extensions -out server.pem",
  ];
  for (const command of commands) {
    await outputOf(["openssl", ...command.split(" ")], { cwd: folder });
  }
  await Deno.chmod(folder, 0o755);
  await Deno.chmod(join(folder, "server.key"), 0o600);
  const account = await postgresAccount();
  for (const name of ["server.pem", "server.key"]) await giveTo(account, join(folder, name));
  return await Deno.readTextFile(join(folder, "authority.pem"));
}
