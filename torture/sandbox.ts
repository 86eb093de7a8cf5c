/** Makes sandboxes for the torture runs and for the benchmark. */

import type { Sql } from "postgres";
import { generateApiKey, parseApiKey } from "../shared/core/api_key.ts";
import { idMint } from "../shared/core/ids.ts";

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
  await sql`select pay.create_environment(${environment_id}, ${account}, false, ${name})`;
  const text = generateApiKey("test");
  const { hash, prefix, last_four } = parseApiKey(text)!;
  await sql`
    select pay.create_api_key(${mint("key_")}, ${environment_id}, ${name}, null, ${hash}, ${prefix},
      ${last_four}, null)`;
  return { environment_id, text };
}
