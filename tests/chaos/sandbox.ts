/** Makes environments for the chaos runs and for the benchmark. */

import type { Sql } from "postgres";
import { idGenerator } from "../../shared/core/ids.ts";
import { createApiKey, createEnvironment } from "../support/database/api_keys.ts";

/** An environment and an API key of it. */
export interface SandboxKey {
  /** The public id. A reset leaves it unchanged. */
  environment_id: string;
  text: string;
}

/** Makes a sandbox with one API key that has every scope. */
export function makeSandbox(sql: Sql, name: string, account = "chaos"): Promise<SandboxKey> {
  return makeEnvironment(sql, name, account, false);
}

/** Makes a live environment with one API key that has every scope. */
export function makeLiveEnvironment(sql: Sql, account: string): Promise<SandboxKey> {
  return makeEnvironment(sql, "live", account, true);
}

async function makeEnvironment(
  sql: Sql,
  name: string,
  account: string,
  livemode: boolean,
): Promise<SandboxKey> {
  const newId = idGenerator(Date.now());
  const environment_id = newId("env_");
  await createEnvironment(sql, { id: environment_id, account, livemode, name });
  const id = newId("key_");
  const text = await createApiKey(sql, { id, environment_id, livemode, name });
  return { environment_id, text };
}
