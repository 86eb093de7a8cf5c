/**
 * The service over a given database, with one clock for the functions and the database. It fills
 * the database of a release, and works on it again after an upgrade.
 */

import postgres from "postgres";
import { idGenerator } from "../../../shared/core/ids.ts";
import { createApiKey, createEnvironment } from "../database/api_keys.ts";
import { type KeyedCall, keyedCall } from "../service/keyed_call.ts";
import { openProduct } from "../service/product.ts";
import { BASE_URL, MASTER_SECRET, setServerTime, type TestResponse } from "../service/service.ts";

/** The running service. */
export interface FixtureService {
  /** A connection as superuser. */
  sql: postgres.Sql;
  call(method: string, path: string, options: KeyedCall): Promise<TestResponse>;
  /** Makes a call that must succeed, and returns its parsed body. */
  // deno-lint-ignore no-explicit-any
  done(method: string, path: string, options: KeyedCall): Promise<any>;
  /** Makes an environment with a key, as an operator does; returns the key. */
  issueKey(account: string, livemode: boolean): Promise<string>;
  setClock(at_ms: number): Promise<void>;
  /** Delivers webhooks until none is due. */
  settle(): Promise<void>;
  close(): Promise<void>;
}

/** Opens the service with its clock at `at_ms`. The functions connect to `functions_url`. */
export async function openFixtureService(
  urls: { url: string; functions_url: string },
  at_ms: number,
): Promise<FixtureService> {
  const sql = postgres(urls.url, { max: 2, onnotice: () => {} });
  let now_ms = at_ms;
  await setServerTime(sql, at_ms);
  const product = openProduct({
    database_url: urls.functions_url,
    base_url: BASE_URL,
    webhook_master_secret: MASTER_SECRET,
    allow_private_webhooks: true,
  }, { clock: () => now_ms });
  const call: FixtureService["call"] = (method, path, options) =>
    keyedCall(product, method, path, options);
  return {
    sql,
    call,
    async done(method, path, options) {
      const { status, text, body } = await call(method, path, options);
      if (status >= 300) throw new Error(`${method} ${path} returned ${status}: ${text}`);
      return body;
    },
    async issueKey(account, livemode) {
      const newId = idGenerator(now_ms);
      const environment_id = newId("env_");
      await createEnvironment(sql, { id: environment_id, account, livemode, name: "Upgrade" });
      const id = newId("key_");
      return await createApiKey(sql, { id, environment_id, livemode, name: "Operator's" });
    },
    async setClock(at_ms) {
      now_ms = at_ms;
      await setServerTime(sql, at_ms);
    },
    settle: async () => {
      await product.deps.webhooks!.dispatcher.notify();
    },
    async close() {
      await product.close();
      await sql.end();
    },
  };
}
