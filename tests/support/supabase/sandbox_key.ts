/** A key of a new sandbox, made as `deno task keys create` makes one. */

import postgres from "postgres";
import { generateApiKey, parseApiKey } from "../../../shared/core/api_key.ts";

/** Makes the sandbox and its key in an empty, migrated database; as one who may operate it. */
export async function makeSandboxKey(url: string): Promise<string> {
  const text = generateApiKey("test");
  const { hash, prefix, last_four } = parseApiKey(text)!;
  const environment_id = `env_${"0".repeat(26)}`;
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    await sql`select pay.create_environment(${environment_id}, 'one', false, 'test')`;
    await sql`select pay.create_api_key(${`key_${"0".repeat(26)}`}, ${environment_id}, 'test', null,
      ${hash}, ${prefix}, ${last_four}, null)`;
  } finally {
    await sql.end();
  }
  return text;
}
