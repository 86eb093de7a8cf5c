/** Makes sandboxes for the torture runs and for the benchmark. */

import type { Sql } from "postgres";
import { idMint } from "../shared/core/ids.ts";
import { createApiKey, createEnvironment } from "../tests/support/database/api_keys.ts";

/** A sandbox and an API key of it. */
export interface SandboxKey {
  /** The public id. A reset leaves it unchanged. */
  environment_id: string;
  text: string;
}

/** Makes a sandbox with one API key that has every scope. */
export async function makeSandbox(
  sql: Sql,
  name: string,
  account = "torture",
): Promise<SandboxKey> {
  const mint = idMint(Date.now());
  const environment_id = mint("env_");
  await createEnvironment(sql, { id: environment_id, account, livemode: false, name });
  const id = mint("key_");
  const text = await createApiKey(sql, { id, environment_id, livemode: false, name });
  return { environment_id, text };
}
