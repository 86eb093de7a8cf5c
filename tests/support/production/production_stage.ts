/**
 * A database as an operator makes it, and instances of `deno task serve` over it: as many as a test
 * launches, or one at a fixed port, which is a cell.
 */

import assert from "node:assert/strict";
import { showRecord } from "../../../apps/operator/migrate.ts";
import { makeSandboxKey } from "../database/api_keys.ts";
import { cloneDatabase, connect, type TestDatabase } from "../database/database.ts";
import { freePort } from "../common/free_port.ts";
import { keyedCall } from "../service/keyed_call.ts";
import { type Instance, launchInstance } from "./serve_process.ts";

/** Valid settings of an instance. */
export const SETTINGS = {
  PAYMENTS_DB_URL: "postgres://pay_functions:hidden@127.0.0.1/payments",
  PUBLIC_BASE_URL: "https://pay.example.com/functions/v1",
  WEBHOOK_MASTER_SECRET: "a master secret of 32 bytes and more",
};

/**
 * Makes the database. `open` closes everything.
 * @param options.prefix the beginning of the key; `sk` by default
 * @param options.database a migrated database in place of a new one
 */
export async function openStage(
  open: AsyncDisposableStack,
  options: { prefix?: string; database?: TestDatabase } = {},
) {
  const database = options.database ?? await cloneDatabase();
  open.defer(database.drop);
  await showRecord(database.url);
  const key = await makeSandboxKey(database.url, options.prefix);
  const sql = open.use(connect(database.url));
  return {
    /** The key of a sandbox. */
    key,
    sql,
    /** Launches an instance, by default at a free port. */
    async launch(port = 0, env: Record<string, string> = {}) {
      const instance = await launchInstance({
        ...SETTINGS,
        PAYMENTS_DB_URL: database.functions_url,
        ALLOW_PRIVATE_WEBHOOKS: "true",
        RATE_LIMIT_PER_SECOND: "0",
        SANDBOX_STORAGE_GB: "0",
        PORT: String(port),
        ...env,
      });
      open.defer(async () => void await instance.end("SIGKILL"));
      return instance;
    },
    /** Sends a POST to an instance, which must make something. */
    async send({ base_url }: Instance, path: string, body: unknown) {
      const sent = await keyedCall(base_url, "POST", `/api-v1-payments/v1/${path}`, { key, body });
      assert.equal(sent.status, 201, sent.text);
    },
  };
}

/**
 * Launches a cell with a sandbox, whose key has the label. `open` closes everything.
 * @param database a migrated database in place of a new one
 */
export async function openCell(open: AsyncDisposableStack, label: string, database?: TestDatabase) {
  const options = { prefix: label, ...(database && { database }) };
  const { key, sql, launch } = await openStage(open, options);
  const port = freePort();
  let instance = await launch(port);
  return {
    key,
    address: `127.0.0.1:${port}`,
    kill: () => instance.end("SIGKILL"),
    /** Launches another instance in place of the killed one. */
    async restart() {
      instance = await launch(port);
    },
    /** Lets the instance accept connections and do nothing else. */
    freeze: () => instance.send("SIGSTOP"),
    resume: () => instance.send("SIGCONT"),
    /** Counts the stored payments. */
    async payments(): Promise<number> {
      const [row] = await sql`select count(*)::int as n from pay.payments`;
      return row!.n;
    },
  };
}
