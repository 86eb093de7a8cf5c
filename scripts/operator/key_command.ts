/**
 * The arguments of `deno task keys`, read and checked before any database is asked. Every refusal
 * names the flag.
 */

import { parseArgs } from "node:util";
import { DEFAULT_KEY_PREFIX, generateApiKey, type KeyMode } from "../../shared/core/api_key.ts";
import { isId } from "../../shared/core/ids.ts";
import { DEFAULT_KEY_OVERLAP_S, MAX_KEY_OVERLAP_S, SCOPES } from "../../shared/schema/api_key.ts";
import { MAX_KEY_NAME } from "../../shared/schema/limits.ts";
import { Time } from "../../shared/schema/values.ts";
import { DEMO_ACCOUNT } from "./demo_account.ts";

/** What the operator asks for. */
export type KeyCommand =
  | { action: "help" }
  | { action: "list" }
  | {
    action: "create";
    mode: KeyMode;
    /** Whose environment of the mode is opened, or made; null when `environment_id` says which. */
    account: string | null;
    environment_id: string | null;
    name: string;
    /** Null: every scope. */
    scopes: string[] | null;
    expires_at: Date | null;
    prefix: string;
  }
  /** `prefix` null: the one that the key has. */
  | { action: "rotate"; id: string; expires_in_s: number; prefix: string | null }
  | { action: "revoke"; id: string; is_confirmed: boolean };

/** What is said by `--help`, and after a refusal of the command itself. */
export const KEY_USAGE = `Usage: deno task keys <command>

  create --mode test|live   makes a key and prints its secret, once
    --account NAME            whose environment (demo); made if there is none of this mode
    --environment env_...     this environment instead
    --name NAME               how the key is listed (mode and "key")
    --scopes a,b              what it may do (everything)
    --expires TIME            RFC 3339: 2030-01-31T00:00:00Z (never)
    --prefix sk               how its text begins (API_KEY_PREFIX, else sk)
  list                      every key, by environment
  rotate key_...            adds a secret and prints it, once; lifts an expiry that has passed
    --expires-in SECONDS      how long the older ones still work (${DEFAULT_KEY_OVERLAP_S})
    --prefix sk               how its text begins (as before)
  revoke key_...            ends a key and all its secrets at once
    --yes                     does not ask

The database is DATABASE_URL, else the embedded server of DATA_DIR, whether it runs or not.
`;

/** Arguments that cannot be followed; the message names the one at fault. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The flags of each command. */
const FLAGS = {
  create: ["mode", "account", "environment", "name", "scopes", "expires", "prefix"],
  list: [],
  rotate: ["expires-in", "prefix"],
  revoke: ["yes"],
} as const;
type Flag = typeof FLAGS[keyof typeof FLAGS][number];
type Values = Partial<Record<Exclude<Flag, "yes">, string>> & { yes?: boolean };

/**
 * Reads the arguments.
 * @param env for API_KEY_PREFIX
 * Errors: `UsageError`.
 */
export function readKeyCommand(
  args: readonly string[],
  env: (name: string) => string | undefined,
  now_ms: number,
): KeyCommand {
  const [action, ...rest] = args;
  if (action === undefined || args.includes("--help") || action === "help") {
    return { action: "help" };
  }
  if (!Object.hasOwn(FLAGS, action)) {
    throw new UsageError(`Unknown command "${action}"\n\n${KEY_USAGE}`);
  }
  const { values, positionals } = readFlags(rest, action as keyof typeof FLAGS);
  const env_prefix = env("API_KEY_PREFIX")?.trim() || undefined;
  switch (action as keyof typeof FLAGS) {
    case "list":
      return { action: "list" };
    case "create":
      return {
        action: "create",
        ...readPlace(values),
        name: readName("--name", values.name ?? `${values.mode} key`),
        scopes: values.scopes === undefined ? null : readScopes(values.scopes),
        expires_at: values.expires === undefined ? null : readExpiry(values.expires, now_ms),
        prefix: readPrefix(values.prefix, env_prefix) ?? DEFAULT_KEY_PREFIX,
      };
    case "rotate":
      return {
        action: "rotate",
        id: readId(positionals),
        expires_in_s: readOverlap(values["expires-in"]),
        prefix: readPrefix(values.prefix, env_prefix),
      };
    case "revoke":
      return { action: "revoke", id: readId(positionals), is_confirmed: values.yes === true };
  }
}

function readFlags(args: string[], action: keyof typeof FLAGS) {
  const takes_id = action === "rotate" || action === "revoke";
  const options = Object.fromEntries(
    FLAGS[action].map((flag) => [flag, { type: flag === "yes" ? "boolean" : "string" } as const]),
  );
  try {
    const parsed = parseArgs({ args, options, allowPositionals: takes_id, strict: true });
    return { values: parsed.values as Values, positionals: parsed.positionals };
  } catch (error) {
    throw new UsageError(`keys ${action}: ${(error as Error).message}`);
  }
}

function readPlace({ mode, account, environment }: Values) {
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
    throw new UsageError("--account contradicts --environment: give one of them");
  }
  if (!isId("env_", environment)) {
    throw new UsageError(`--environment "${environment}" is no id that begins with env_`);
  }
  return { mode, account: null, environment_id: environment } as const;
}

function readName(flag: string, text: string): string {
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

function readExpiry(text: string, now_ms: number): Date {
  const at = Time.safeParse(text);
  if (!at.success) {
    throw new UsageError(
      `--expires "${text}" ${at.error.issues[0]!.message}, such as 2030-01-31T00:00:00Z`,
    );
  }
  if (at.data > now_ms) return new Date(at.data);
  throw new UsageError(`--expires "${text}" is past: the key would not work`);
}

function readPrefix(flag: string | undefined, env: string | undefined): string | null {
  const prefix = flag ?? env;
  if (prefix === undefined) return null;
  try {
    generateApiKey("test", prefix);
    return prefix;
  } catch {
    throw new UsageError(
      `${flag === undefined ? "API_KEY_PREFIX" : "--prefix"} "${prefix}" must be a lower-case ` +
        "letter and up to 15 lower-case letters and digits",
    );
  }
}

function readOverlap(text: string | undefined): number {
  if (text === undefined) return DEFAULT_KEY_OVERLAP_S;
  if (/^\d{1,6}$/.test(text) && Number(text) <= MAX_KEY_OVERLAP_S) return Number(text);
  throw new UsageError(
    `--expires-in "${text}" must be a whole number of seconds from 0 to ${MAX_KEY_OVERLAP_S}`,
  );
}

function readId(positionals: readonly string[]): string {
  const [id, ...more] = positionals;
  if (id === undefined) throw new UsageError("Which key? Give its id: key_...");
  if (more.length > 0) throw new UsageError(`"${more[0]}" is one too many: give one key`);
  if (isId("key_", id)) return id;
  // It may be the key's text, which is a secret: it is not repeated.
  throw new UsageError("The key must be named by its id, which begins with key_");
}
