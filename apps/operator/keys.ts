/**
 * `deno task keys` creates, lists, rotates and revokes API keys for the operator. Only this command
 * creates keys of live environments; the one exception is the demo key of a local start. A secret
 * is printed once, alone on standard output, so that a script can read it. Other messages go to
 * standard error.
 *
 * key_command.ts reads the options.
 */

import type postgres from "postgres";
import {
  generateApiKey,
  hasSeededPrefix,
  type KeyMode,
  labelOf,
  parseApiKey,
  seededPrefix,
} from "../../shared/core/api_key.ts";
import { idGenerator } from "../../shared/core/ids.ts";
import { MAX_ACTIVE_KEYS } from "../../shared/store/api_key_store.ts";
import { DEMO_ACCOUNT, DEMO_ENVIRONMENTS, storeKey } from "./demo_account.ts";
import {
  action,
  type Actions,
  CommandError,
  readId,
  SQLSTATE,
  sqlstateOf,
  type Surroundings,
} from "./command_line.ts";
import { type NewKey, readNewKey, readOverlap, readPrefix } from "./key_command.ts";
import { type ListedKey, renderKeyTable } from "./key_table.ts";

export { USAGE } from "./key_command.ts";

// "Active", because "live keys" are also the keys of live environments.
const TOO_MANY_KEYS = `it has ${MAX_ACTIVE_KEYS} active keys already. Revoke one first`;

export const ACTIONS: Actions = {
  create: action(
    ["mode", "account", "environment", "name", "scopes", "expires", "prefix"],
    (values, _, env) => {
      const key = readNewKey(values, env);
      return (surroundings) => createKey(surroundings, key);
    },
  ),
  list: action([], () => async ({ sql, print, columns }) => {
    print(renderKeyTable(await listKeys(sql), columns()));
  }),
  rotate: action(["…", "expires-in", "prefix"], (values, names) => {
    const id = readId(names, "key_", "key");
    const expires_in_s = readOverlap(values["expires-in"]);
    const prefix = readPrefix("--prefix", values.prefix);
    return (surroundings) => rotateKey(surroundings, id, expires_in_s, prefix);
  }),
  revoke: action(["…", "yes"], ({ yes = false }, names) => {
    const id = readId(names, "key_", "key");
    return (surroundings) => revokeKey(surroundings, id, yes);
  }),
};

async function createKey(surroundings: Surroundings, key: NewKey): Promise<void> {
  const { sql, print, printMessage } = surroundings;
  const { mode, name, scopes, expires_at } = key;
  const label = await chooseLabel(sql, key);
  const environment_id = key.environment_id ?? await ensureEnvironment(
    surroundings,
    key.account,
    mode,
  );
  const text = generateApiKey(mode, label);
  const id = await storeKey(sql, text, { environment_id, name, scopes, expires_at }).catch(
    (error) => {
      if (sqlstateOf(error) === SQLSTATE.foreign_key_violation) {
        throw new CommandError(`--environment "${environment_id}": no such environment`);
      }
      if (sqlstateOf(error) === SQLSTATE.check_violation) {
        throw new CommandError(`--mode ${mode} does not match --environment "${environment_id}"`);
      }
      if (sqlstateOf(error) === SQLSTATE.program_limit_exceeded) {
        throw new CommandError(`Cannot create a key of ${environment_id}: ${TOO_MANY_KEYS}`);
      }
      throw error;
    },
  );
  printMessage(
    `Created ${id}, a ${mode} key of ${environment_id}. The secret is printed only once:`,
  );
  print(`${text}\n`);
}

/**
 * Chooses the prefix of a new key: that of the account's other keys, by which a proxy knows its
 * cell (docs/scaling.md). Throws `CommandError` if the command has another one.
 */
async function chooseLabel(
  sql: postgres.Sql,
  { account, environment_id, prefix, first_prefix }: NewKey,
): Promise<string> {
  const keys = await listKeys(sql);
  const owner = account ?? keys.find((key) => key.environment_id === environment_id)?.account;
  const labels = new Set(
    keys.filter((key) => key.account === owner && key.secrets > 0)
      .map((key) => labelOf(key.prefix)),
  );
  const [only] = labels.size === 1 ? labels : [];
  const label = prefix ?? only ?? first_prefix;
  if (labels.size === 0 || labels.has(label)) return label;
  throw new CommandError(
    `The keys of the account "${owner}" have the prefix ${[...labels].join(" or ")}, and ` +
      `"${label}" could lead to another cell. To change the prefix, rotate each key with --prefix`,
  );
}

/** Returns the account's environment of a mode. Creates one if the account has none. */
async function ensureEnvironment(
  { sql, printMessage }: Surroundings,
  account: string,
  mode: KeyMode,
): Promise<string> {
  const livemode = mode === "live";
  // The demo account's environments get fixed ids, so that a local start finds them.
  const { id, name } = account === DEMO_ACCOUNT
    ? DEMO_ENVIRONMENTS[mode]
    : { id: idGenerator(Date.now())("env_"), name: livemode ? "Live" : "Sandbox" };
  const known = await sql.begin(async (sql): Promise<string | null> => {
    // Another command can make it at the same time.
    await sql`select pg_advisory_xact_lock(hashtextextended(${`new environment of ${account}`}, 0))`;
    const [found] = await sql`
      select pay.find_environment(p_account => ${account}, p_livemode => ${livemode}) as id`;
    if (found!.id === null) {
      await sql`
        select pay.create_environment(
          p_id => ${id}, p_account => ${account}, p_livemode => ${livemode},
          p_name => ${name})`;
    }
    return found!.id;
  });
  if (known !== null) return known;
  printMessage(`Created ${id}, the ${mode} environment of "${account}"`);
  return id;
}

/** @param requested null: the new secret begins like the key's present one */
async function rotateKey(
  { sql, print, printMessage }: Surroundings,
  id: string,
  expires_in_s: number,
  requested: string | null,
): Promise<void> {
  const key = await findKey(sql, id, "rotate");
  const label = requested ?? labelOf(key.prefix);
  const text = generateApiKey(
    key.livemode ? "live" : "test",
    hasSeededPrefix(key.prefix) ? seededPrefix(label) : label,
  );
  const { hash, prefix, last_four } = parseApiKey(text)!;
  const older_expire_at = new Date(Date.now() + expires_in_s * 1000);
  const was_expired = key.expires_at !== null && key.secrets === 0;
  const [row] = await sql`
    select pay.rotate_api_key(
      p_id => ${id}, p_secret_hash => ${hash}, p_prefix => ${prefix},
      p_last_four => ${last_four}, p_older_expire_at => ${older_expire_at}) as done`
    .catch((error) => {
      if (sqlstateOf(error) !== SQLSTATE.program_limit_exceeded) throw error;
      throw new CommandError(
        `Cannot rotate ${id}, because it has expired and would count again in ` +
          `${key.environment_id}: ${TOO_MANY_KEYS}`,
      );
    });
  if (!row!.done) throw new CommandError(`Cannot rotate ${id}: it is revoked`);
  const older = was_expired
    ? "the key had expired, and now has no expiry"
    : `its older secrets expire ${
      expires_in_s === 0 ? "now" : `at ${older_expire_at.toISOString()} or earlier`
    }`;
  const until = key.expires_at === null || was_expired
    ? ""
    : ` The key itself still expires at ${key.expires_at.toISOString()}.`;
  printMessage(
    `Rotated ${id} "${key.name}": ${older}.${until} The new secret is printed only once:`,
  );
  print(`${text}\n`);
}

async function revokeKey(
  { sql, printMessage, confirm }: Surroundings,
  id: string,
  is_confirmed: boolean,
): Promise<void> {
  const key = await findKey(sql, id, "revoke");
  const mode = key.livemode ? "live" : "test";
  if (!is_confirmed) {
    const answer = confirm(
      `Revoke ${id}, the ${mode} key "${key.name}" of "${key.account}"? ` +
        "Requests with this key will fail.",
    );
    if (answer === null) {
      throw new CommandError(
        `Cannot ask for confirmation to revoke ${id} without a terminal: add --yes`,
      );
    }
    if (!answer) throw new CommandError("Nothing was revoked");
  }
  const [row] = await sql`select pay.revoke_api_key(p_id => ${id}) as done`;
  if (!row!.done) throw new CommandError(`Cannot revoke ${id}: it is revoked already`);
  printMessage(`Revoked ${id}, the ${mode} key "${key.name}"`);
}

async function listKeys(sql: postgres.Sql): Promise<ListedKey[]> {
  return await sql<ListedKey[]>`select * from pay.list_api_keys()`;
}

async function findKey(sql: postgres.Sql, id: string, action: string): Promise<ListedKey> {
  const key = (await listKeys(sql)).find((key) => key.id === id);
  if (!key) throw new CommandError(`Cannot ${action} ${id}: no such key`);
  if (key.revoked_at) throw new CommandError(`Cannot ${action} ${id}: it is revoked already`);
  return key;
}
