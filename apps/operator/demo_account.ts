/**
 * The demo account of a local start: a sandbox, a live environment, and a key for each.
 *
 * The environments have fixed ids, so each start finds those of an earlier one. The keys are
 * random. A start uses the keys of an earlier start again, also with another database, unless they
 * have been revoked.
 */

import type postgres from "postgres";
import { generateApiKey, type KeyMode, parseApiKey } from "../../shared/core/api_key.ts";
import { idGenerator } from "../../shared/core/ids.ts";
import { SQLSTATE, sqlstateOf } from "./command_line.ts";
import type { DemoKeys } from "../server/data_dir/credentials.ts";
import { openConnection } from "../server/postgres/connection.ts";

/** The environments of the account. The start or an operator's command creates them. */
export const DEMO_ENVIRONMENTS = {
  test: { id: "env_00000000000000000000000001", name: "Demo sandbox" },
  live: { id: "env_00000000000000000000000002", name: "Demo live" },
} as const;
export const DEMO_ACCOUNT = "demo";
const KEY_NAME = "Demo key";

/**
 * Returns a valid key for each mode. Creates the environments and keys that are missing.
 * @param url a database URL whose user can execute the operator's functions
 * @param stored the keys of an earlier start
 * @param accepts whether the running service accepts a key
 */
export async function ensureDemoKeys(
  url: string,
  stored: Partial<DemoKeys>,
  accepts: (key: string) => Promise<boolean>,
): Promise<DemoKeys> {
  await using sql = openConnection(url);
  return {
    test_key: await ensureKey(sql, "test", stored.test_key, accepts),
    live_key: await ensureKey(sql, "live", stored.live_key, accepts),
  };
}

async function ensureKey(
  sql: postgres.Sql,
  mode: KeyMode,
  stored: string | undefined,
  accepts: (key: string) => Promise<boolean>,
): Promise<string> {
  const is_usable = stored !== undefined && parseApiKey(stored)?.mode === mode;
  if (is_usable && await accepts(stored)) return stored;
  const { id, name } = DEMO_ENVIRONMENTS[mode];
  await createUnlessExists(sql`
    select pay.create_environment(
      p_id => ${id}, p_account => ${DEMO_ACCOUNT}, p_livemode => ${
    mode === "live"
  }, p_name => ${name})`);
  if (is_usable && await createKey(sql, mode, stored)) return stored;
  const key = generateApiKey(mode);
  await createKey(sql, mode, key);
  return key;
}

/**
 * Creates a key with this text. Returns false if the database has the key already. As the service
 * has not accepted it, it is revoked or expired then.
 */
async function createKey(sql: postgres.Sql, mode: KeyMode, key: string): Promise<boolean> {
  const place = { environment_id: DEMO_ENVIRONMENTS[mode].id, name: KEY_NAME };
  return await createUnlessExists(storeKey(sql, key, { ...place, scopes: null, expires_at: null }));
}

interface KeyFields {
  environment_id: string;
  name: string;
  /** Null stands for all scopes. */
  scopes: string[] | null;
  expires_at: Date | null;
}

/** Stores a key with this text. Returns its id. Throws the error of the database. */
export async function storeKey(sql: postgres.Sql, text: string, key: KeyFields): Promise<string> {
  const { hash, prefix, last_four } = parseApiKey(text)!;
  const id = idGenerator(Date.now())("key_");
  await sql`
    select pay.create_api_key(
      p_id => ${id}, p_environment_id => ${key.environment_id}, p_name => ${key.name},
      p_scopes => ${key.scopes}::text[], p_secret_hash => ${hash}, p_prefix => ${prefix},
      p_last_four => ${last_four}, p_expires_at => ${key.expires_at}::timestamptz)`;
  return id;
}

/** Runs a statement that creates a row. Returns false if the row exists. */
async function createUnlessExists(statement: Promise<unknown>): Promise<boolean> {
  try {
    await statement;
    return true;
  } catch (error) {
    if (sqlstateOf(error) === SQLSTATE.unique_violation) return false;
    throw error;
  }
}
