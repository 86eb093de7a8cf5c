/** Makes environments and API keys with the functions that an operator calls. */

import postgres from "postgres";
import { connect } from "./database.ts";
import { generateApiKey, parseApiKey } from "../../../shared/core/api_key.ts";
import type { RandomSource } from "../../../shared/core/ids.ts";

/** A new environment. */
interface NewEnvironment {
  id: string;
  account: string;
  livemode: boolean;
  name?: string;
}

/** A new key of an environment. */
interface NewApiKey {
  id: string;
  environment_id: string;
  livemode: boolean;
  name?: string;
  /** Every scope by default. */
  scopes?: string[] | undefined;
  expires_at?: string | undefined;
  /** The beginning of the key; `sk` by default. */
  prefix?: string | undefined;
  random?: RandomSource | undefined;
}

/** Makes an environment. */
export async function createEnvironment(
  sql: postgres.Sql,
  { id, account, livemode, name = "test" }: NewEnvironment,
): Promise<void> {
  await sql`select pay.create_environment(
    p_id => ${id}, p_account => ${account}, p_livemode => ${livemode}, p_name => ${name})`;
}

/** Makes a key and returns its text. */
export async function createApiKey(
  sql: postgres.Sql,
  { id, environment_id, livemode, name = "test", scopes, expires_at, prefix: label, random }:
    NewApiKey,
): Promise<string> {
  const text = generateApiKey(livemode ? "live" : "test", label, random);
  const { hash, prefix, last_four } = parseApiKey(text)!;
  await sql`select pay.create_api_key(
    p_id => ${id}, p_environment_id => ${environment_id}, p_name => ${name},
    p_scopes => ${scopes ?? null}::text[], p_secret_hash => ${hash}, p_prefix => ${prefix},
    p_last_four => ${last_four}, p_expires_at => ${expires_at ?? null}::timestamptz)`;
  return text;
}

/** Makes a sandbox and its key in a migrated database without environments; returns the key. */
export async function makeSandboxKey(url: string, prefix?: string): Promise<string> {
  await using sql = connect(url);
  const environment_id = `env_${"0".repeat(26)}`;
  await createEnvironment(sql, { id: environment_id, account: "one", livemode: false });
  const id = `key_${"0".repeat(26)}`;
  return await createApiKey(sql, { id, environment_id, livemode: false, prefix });
}
