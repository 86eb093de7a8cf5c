/**
 * An outage of the database under the deployed functions (Deno 2.1.4), with and without a
 * transaction pooler. Every request gets its response, or 503 with `Retry-After`. The process
 * survives, and works again soon after its database does (promise R12).
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { migrate } from "../../apps/server/migrations/migrate.ts";
import { testWith } from "../support/common/programs.ts";
import { keyedCall } from "../support/service/keyed_call.ts";
import { PAYMENTS } from "../support/service/service_case.ts";
import { startFunctions } from "../support/supabase/function_process.ts";
import { findPgbouncer, startPgbouncer } from "../support/supabase/pgbouncer.ts";
import { startSupabaseServer, type SupabaseServer } from "../support/supabase/supabase_server.ts";
import { makeSandboxKey } from "../support/database/api_keys.ts";
import { childrenOf } from "../support/common/child_processes.ts";
import { freePort } from "../support/common/free_port.ts";
import { pause } from "../support/common/until.ts";

const NAME = "api-v1-payments";
/** Concurrent requests: more than the pool of a process has connections. */
const CLIENTS = 12;
/** A connection attempt is given up after 2 s (R12). */
const AWAY_WITHIN_MS = 2_500;
/** A hanging statement is given up after 5 s. */
const HUNG_WITHIN_MS = 5_500;
/** Promise R12. */
const WELL_WITHIN_MS = 5_000;
/** A busy machine takes longer: this many times the duration of payments before the outage. */
const USUAL_FACTOR = 3;

/** A function whose database the test can break. */
type Patient = Awaited<ReturnType<typeof openPatient>>;

/** Starts a server, and a function with the variables that `connect` makes. `open` closes both. */
async function openPatient(
  open: AsyncDisposableStack,
  connect: (server: SupabaseServer) => Promise<Record<string, string>>,
) {
  const server = open.use(await startSupabaseServer(17));
  await migrate(server.url);
  const admin = postgres(server.admin_url, {
    max: 1,
    onnotice: () => {},
    connect_timeout: 2,
    backoff: false,
  });
  open.defer(() => admin.end({ timeout: 1 }));
  const key = await makeSandboxKey(server.url);
  const process = open.use(
    await startFunctions([NAME], {
      ...await connect(server),
      PUBLIC_BASE_URL: "http://127.0.0.1/functions/v1",
      RATE_LIMIT_PER_SECOND: "0",
    }),
  );
  /** Creates a payment. Fails unless the response is 201 or a 503 in the right form. */
  async function pay(): Promise<201 | 503> {
    const payment = { amount: 100, currency: "EUR", outcome: "success" };
    const options = { key, body: payment };
    const { status, headers, body } = await keyedCall(process.origin, "POST", PAYMENTS, options);
    if (status === 201) return 201;
    assert.deepEqual(
      [status, body.error.code, headers.get("Retry-After")],
      [503, "service_unavailable", "1"],
      process.complaints.join("\n"),
    );
    return 503;
  }
  /** Creates a payment from every client at once. */
  const payAll = async () => {
    const started = performance.now();
    const responses = await Promise.all(Array.from({ length: CLIENTS }, pay));
    return { responses, took_ms: performance.now() - started };
  };
  /** The longest duration of payments of all clients before the outage. */
  let usual_ms = 0;
  return {
    /** `admin` is a connection as superuser. */
    ...{ server, admin, process, pay },
    /**
     * Creates payments from every client until the work is over. Returns the number of each status.
     */
    async during(work: () => Promise<void>) {
      const counts = { 201: 0, 503: 0 };
      let is_over = false;
      const client = async () => {
        while (!is_over) counts[await pay()]++;
      };
      const clients = Array.from({ length: CLIENTS }, client);
      await work().finally(() => is_over = true);
      await Promise.all(clients);
      return counts;
    },
    /** Asserts that every client gets 503 within this time plus the duration of payments. */
    async assertAway(within_ms: number) {
      const { responses, took_ms } = await payAll();
      assert.deepEqual(responses, Array(CLIENTS).fill(503));
      const figures = `${took_ms} ms, and ${usual_ms} ms without an outage`;
      assert.ok(took_ms < within_ms + USUAL_FACTOR * usual_ms, figures);
    },
    /** Asserts that every client can pay again, within the time of R12. */
    async assertWell() {
      const until = performance.now() + WELL_WITHIN_MS + USUAL_FACTOR * usual_ms;
      for (;;) {
        const { responses, took_ms } = await payAll();
        if (responses.every((status) => status === 201)) {
          usual_ms = Math.max(usual_ms, took_ms);
          return;
        }
        assert.ok(performance.now() < until, "not well again in time");
        await pause(50);
      }
    },
  };
}

/** Runs a test with a function process that connects to a server, by default straight. */
async function withPatient(
  run: (patient: Patient) => Promise<void>,
  connect: (server: SupabaseServer) => Promise<Record<string, string>> = ({ url }) =>
    Promise.resolve({ SUPABASE_DB_URL: url }),
) {
  await using open = new AsyncDisposableStack();
  const patient = await openPatient(open, connect);
  const { process, assertWell } = patient;
  await assertWell();
  await run(patient);
  await assertWell();
  assert.equal(process.hasEnded(), false, process.complaints.join("\n"));
  assert.deepEqual(process.complaints, []);
}

Deno.test("the functions survive repeated termination of their sessions", () =>
  withPatient(async ({ admin, during }) => {
    let killed = 0;
    const counts = await during(async () => {
      // Only a failure takes this long.
      const until = Date.now() + 120_000;
      for (; killed < 60 && Date.now() < until; await pause(Math.random() * 200)) {
        const rows = await admin`select pg_terminate_backend(pid) from pg_stat_activity
          where application_name = 'payments'`;
        killed += rows.length;
      }
    });
    assert.ok(
      killed > 50 && counts[201] > 50 && counts[503] > 0,
      JSON.stringify({ killed, counts }),
    );
    const [{ payments }] =
      await admin`select count(*)::int as payments from pay.payments` as unknown as [
        { payments: number },
      ];
    assert.ok(payments >= counts[201], "a payment that was acknowledged is not there");
  }));

Deno.test("the functions survive restarts of the server", () =>
  withPatient(async ({ server, during, assertAway }) => {
    const counts = await during(async () => {
      for (let i = 0; i < 3; i++) {
        await server.restart(() => pause(500));
        await pause(500);
      }
    });
    assert.ok(counts[201] > 0 && counts[503] > 0, JSON.stringify(counts));
    await server.restart(() => assertAway(AWAY_WITHIN_MS));
  }));

Deno.test("the functions return 503 while the server is stopped by a signal", () =>
  withPatient(async ({ server, assertAway }) => {
    const processes = [server.pid(), ...childrenOf(server.pid())];
    for (const pid of processes) Deno.kill(pid, "SIGSTOP");
    try {
      await assertAway(HUNG_WITHIN_MS);
      // The pool has dropped the hanging sessions by now, so nothing waits for them.
      await assertAway(AWAY_WITHIN_MS);
    } finally {
      for (const pid of processes) Deno.kill(pid, "SIGCONT");
    }
  }));

Deno.test("the functions return 503 while the server accepts no connection", () =>
  withPatient(async ({ admin, assertAway }) => {
    await admin`alter role postgres connection limit 0`;
    await admin`select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = 'payments'`;
    // Waits until the pool has noticed the terminated idle connections.
    await pause(100);
    await assertAway(AWAY_WITHIN_MS);
    await admin`alter role postgres connection limit -1`;
  }));

Deno.test("the functions return 503 while a lock blocks every connection", () =>
  withPatient(async ({ admin, assertAway }) => {
    await admin.begin(async (transaction) => {
      await transaction`lock table pay.payments in access exclusive mode`;
      await assertAway(HUNG_WITHIN_MS);
    });
  }));

testWith(
  "pgbouncer",
  await findPgbouncer() !== null,
  "the functions survive faults of a transaction pooler",
  async (t) => {
    const listen_port = freePort();
    const settings = {
      listen_port,
      default_pool_size: 2,
      query_wait_timeout: 1,
      // The time for which pgbouncer considers a server dead after a failure. The default is 15 s.
      server_login_retry: 1,
    };
    const poolOver = ({ port, password }: SupabaseServer) =>
      startPgbouncer(port, { name: "postgres", password }, settings);
    let pooler: Awaited<ReturnType<typeof startPgbouncer>> | undefined;
    const run = async ({ server, pay, during, assertAway, assertWell }: Patient) => {
      const pooled_url = `postgres://postgres:${server.password}@127.0.0.1:${listen_port}/postgres`;
      await t.step("all of its server connections are in use", async () => {
        const holder = postgres(pooled_url, { max: 2, prepare: false, onnotice: () => {} });
        let release = () => {};
        const released = new Promise<void>((resolve) => release = resolve);
        const held = [0, 1].map(() => Promise.withResolvers<void>());
        const holding = held.map(({ resolve }) =>
          holder.begin(async (transaction) => {
            await transaction`select 1`;
            resolve();
            await released;
          })
        );
        await Promise.all(held.map(({ promise }) => promise));
        await assertAway(HUNG_WITHIN_MS).finally(release);
        await Promise.all(holding);
        await holder.end();
        await assertWell();
      });
      const console_ = postgres(pooler!.console_url, {
        max: 1,
        prepare: false,
        fetch_types: false,
        onnotice: () => {},
      });
      await t.step("it is paused", async () => {
        await console_`pause`.simple();
        await assertAway(HUNG_WITHIN_MS).finally(() => console_`resume`.simple());
        await assertWell();
      });
      await t.step("it accepts no more clients", async () => {
        await console_`set max_client_conn = 1`.simple();
        await console_`kill postgres`.simple();
        await console_`resume postgres`.simple();
        await pause(100);
        await assertAway(AWAY_WITHIN_MS);
        await console_`set max_client_conn = 100`.simple();
        await assertWell();
        await console_.end({ timeout: 1 });
      });
      await t.step("it is killed and started again", async () => {
        await pooler!.close();
        await assertAway(AWAY_WITHIN_MS);
        pooler = await poolOver(server);
        await assertWell();
      });
      await t.step("its server is restarted", async () => {
        const counts = await during(() => server.restart(() => pause(1_000)));
        assert.ok(counts[503] > 0, JSON.stringify(counts));
        await assertWell();
        assert.equal(await pay(), 201);
      });
    };
    try {
      await withPatient(
        run,
        async (server) => {
          pooler = await poolOver(server);
          return {
            PAYMENTS_DB_URL:
              `postgres://postgres:${server.password}@127.0.0.1:${listen_port}/postgres`,
            DB_PREPARE: "false",
          };
        },
      );
    } finally {
      await pooler?.close();
    }
  },
);
