/** Sandboxes of other accounts than that of the product under test. */

import type { Sql } from "postgres";
import { generateApiKey, parseApiKey } from "../shared/core/api_key.ts";
import { idMint } from "../shared/core/ids.ts";

/** Makes a sandbox and returns its key. */
export async function makeSandbox(sql: Sql, name: string): Promise<string> {
  const mint = idMint(Date.now());
  const environment_id = mint("env_");
  const key = generateApiKey("test");
  const { hash, prefix, last_four } = parseApiKey(key)!;
  await sql`
    select pay.create_environment(
      p_id => ${environment_id}, p_account => 'benchmark', p_livemode => false, p_name => ${name})`;
  await sql`
    select pay.create_api_key(
      p_id => ${mint("key_")}, p_environment_id => ${environment_id}, p_name => ${name},
      p_scopes => ${null}::text[], p_secret_hash => ${hash}, p_prefix => ${prefix},
      p_last_four => ${last_four}, p_expires_at => ${null}::timestamptz)`;
  return key;
}
