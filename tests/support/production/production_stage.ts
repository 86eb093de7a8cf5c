/** A database as an operator makes it, and instances of `deno task serve` over it. */

import assert from "node:assert/strict";
import postgres from "postgres";
import { showRecord } from "../../../apps/operator/migrate.ts";
import { makeSandboxKey } from "../database/api_keys.ts";
import { cloneDatabase, type TestDatabase } from "../database/database.ts";
import { type Instance, launchInstance } from "./serve_process.ts";

/** Valid settings of an instance. */
export const SETTINGS = {
  PAYMENTS_DB_URL: "postgres://pay_functions:hidden@127.0.0.1/payments",
  PUBLIC_BASE_URL: "https://pay.example.com/functions/v1",
  WEBHOOK_MASTER_SECRET: "a master secret of 32 bytes and more",
};

/** The parts of a test. */
interface Stage {
  /** The key of a sandbox. */
  key: string;
  sql: postgres.Sql;
  /** Launches an instance, by default at a free port. */
  launch(port?: number): Promise<Instance>;
  /** Sends a POST to an instance, which must make something. */
  send(instance: Instance, path: string, body: unknown): Promise<void>;
}

/**
 * Makes the database. `open` closes everything.
 * @param options.prefix the beginning of the key; `sk` by default
 * @param options.database a migrated database in place of a new one
 */
export async function openStage(
  open: AsyncDisposableStack,
  options: { prefix?: string; database?: TestDatabase } = {},
): Promise<Stage> {
  const database = options.database ?? await cloneDatabase();
  open.defer(database.drop);
  await showRecord(database.url);
  const key = await makeSandboxKey(database.url, options.prefix);
  const sql = postgres(database.url, { max: 1, onnotice: () => {} });
  open.defer(() => sql.end());
  return {
    key,
    sql,
    async launch(port = 0) {
      const instance = await launchInstance({
        ...SETTINGS,
        PAYMENTS_DB_URL: database.functions_url,
        ALLOW_PRIVATE_WEBHOOKS: "true",
        RATE_LIMIT_PER_SECOND: "0",
        SANDBOX_STORAGE_GB: "0",
        PORT: String(port),
      });
      open.defer(async () => void await instance.end("SIGKILL"));
      return instance;
    },
    async send({ base_url }, path, body) {
      const response = await fetch(`${base_url}/api-v1-payments/v1/${path}`, {
        method: "POST",
        headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
        body: JSON.stringify(body),
      });
      assert.equal(response.status, 201, await response.text());
    },
  };
}
