/** The options of `deno task keys`. Every error message names the argument at fault. */

import { DEFAULT_KEY_PREFIX, isKeyLabel, LABEL_RULE } from "../../shared/core/api_key.ts";
import { isId } from "../../shared/core/ids.ts";
import { SCOPES } from "../../shared/core/vocabulary.ts";
import { DEFAULT_KEY_OVERLAP_S, MAX_KEY_OVERLAP_S } from "../../shared/schema/api_key.ts";
import { MAX_KEY_NAME } from "../../shared/schema/limits.ts";
import { Time } from "../../shared/schema/values.ts";
import { type Env, UsageError, type Values } from "./command_line.ts";
import { DEMO_ACCOUNT } from "./demo_account.ts";

/** The usage text, for `--help` and after an unknown command. */
export const USAGE = `Usage: deno task keys <command>

  create --mode test|live  Create a key and print its secret once.
    --account NAME         Account of the key (default: demo). If the account
                           has no environment of this mode, one is created.
    --environment env_...  Environment of the key, in place of --account.
    --name NAME            Name in lists (default: "test key" or "live key").
    --scopes SCOPE,...     Scopes of the key (default: all).
    --expires TIME         Expiry, such as 2030-01-31T00:00:00Z (default: never).
    --prefix PREFIX        Beginning of the secret, which all keys of an account
                           have (default: API_KEY_PREFIX, or sk).
  list                     List all keys by environment.
  rotate key_...           Add a secret to a key and print it once. An expired key
                           becomes valid again and has no expiry afterwards.
    --expires-in SECONDS   Time until the older secrets expire (default: ${DEFAULT_KEY_OVERLAP_S}).
    --prefix PREFIX        Another beginning of the secret: give it to all keys of
                           the account, one after the other.
  revoke key_...           Revoke a key with all its secrets at once.
    --yes                  Do not ask for confirmation.

The command uses the database of DATABASE_URL, or else the embedded server of
DATA_DIR. If that server is not running, it runs until the command is done.
`;

/** A key to create. */
export type NewKey = ReturnType<typeof readNewKey>;

/**
 * Reads the options of `create`.
 * @param env reads API_KEY_PREFIX
 * @throws {UsageError} if a value is invalid
 */
export function readNewKey(
  values: Values<"mode" | "account" | "environment" | "name" | "scopes" | "expires" | "prefix">,
  env: Env,
) {
  return {
    ...readPlace(values),
    name: readName("--name", values.name ?? `${values.mode} key`),
    /** Null stands for all scopes. */
    scopes: values.scopes === undefined ? null : readScopes(values.scopes),
    expires_at: values.expires === undefined ? null : readExpiry(values.expires),
    /** Null stands for that of the account's other keys. */
    prefix: readPrefix("--prefix", values.prefix),
    first_prefix: readPrefix("API_KEY_PREFIX", env("API_KEY_PREFIX")) ?? DEFAULT_KEY_PREFIX,
  };
}

/** The environment, or the account whose environment of the mode is used, or created. */
function readPlace({ mode, account, environment }: Values<"mode" | "account" | "environment">) {
  if (mode !== "test" && mode !== "live") {
    throw new UsageError(
      mode === undefined
        ? "--mode is required: test or live"
        : `--mode "${mode}" is unknown: it must be test or live`,
    );
  }
  if (environment === undefined) {
    return {
      mode,
      account: readName("--account", account ?? DEMO_ACCOUNT),
      environment_id: null,
    } as const;
  }
  if (account !== undefined) {
    throw new UsageError("--account and --environment exclude each other: give one of them");
  }
  if (!isId("env_", environment)) {
    throw new UsageError(`--environment "${environment}" is not an id of an environment (env_...)`);
  }
  return { mode, account: null, environment_id: environment } as const;
}

/** Reads the name of an account or a key. Throws `UsageError`. */
export function readName(flag: string, text: string): string {
  const name = text.trim();
  if (name !== "" && name.length <= MAX_KEY_NAME) return name;
  throw new UsageError(`${flag} "${text}" must have 1 to ${MAX_KEY_NAME} characters`);
}

function readScopes(text: string): string[] {
  const scopes = [...new Set(text.split(",").map((scope) => scope.trim()))];
  const known: readonly string[] = SCOPES;
  const unknown = scopes.filter((scope) => !known.includes(scope));
  if (unknown.length === 0) return scopes;
  throw new UsageError(
    `--scopes "${unknown.join(",")}" is unknown: choose from ${SCOPES.join(", ")}`,
  );
}

function readExpiry(text: string): Date {
  const at = Time.safeParse(text);
  if (!at.success) {
    throw new UsageError(
      `--expires "${text}" ${at.error.issues[0]!.message}, such as 2030-01-31T00:00:00Z`,
    );
  }
  if (at.data > Date.now()) return new Date(at.data);
  throw new UsageError(`--expires "${text}" is in the past: the key would not work`);
}

export function readPrefix(name: string, prefix: string | undefined): string | null {
  if (prefix === undefined) return null;
  if (isKeyLabel(prefix)) return prefix;
  throw new UsageError(`${name} "${prefix}" ${LABEL_RULE}`);
}

export function readOverlap(text: string | undefined): number {
  if (text === undefined) return DEFAULT_KEY_OVERLAP_S;
  if (/^\d{1,6}$/.test(text) && Number(text) <= MAX_KEY_OVERLAP_S) return Number(text);
  throw new UsageError(
    `--expires-in "${text}" must be a whole number of seconds from 0 to ${MAX_KEY_OVERLAP_S}`,
  );
}
