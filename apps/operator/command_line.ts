/** The output and the errors of the operator's commands. */

import { parseArgs } from "node:util";
import postgres from "postgres";
import { type IdPrefix, isId } from "../../shared/core/ids.ts";
import { Vault } from "../../shared/core/vault.ts";
import type { ConnectorFinder } from "../../shared/domain/providers/connector.ts";
import { type Settings, SettingsError } from "../server/data_dir/settings.ts";
import { MigrationError } from "../server/migrations/migrate.ts";

/** Codes with which the database refuses a command. */
export const SQLSTATE = {
  foreign_key_violation: "23503",
  unique_violation: "23505",
  check_violation: "23514",
  insufficient_privilege: "42501",
  undefined_table: "42P01",
  lock_not_available: "55P03",
  program_limit_exceeded: "54000",
} as const;

/** Invalid arguments. The message names the argument at fault. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** A command that failed. The message is complete for the operator. */
export class CommandError extends Error {
  override readonly name = "CommandError";
}

/** Reads a variable. */
export type Env = (name: string) => string | undefined;

/** The variables, the output and the terminal of a command. Tests pass their own. */
export interface Shell {
  env: Env;
  print: (text: string) => void;
  printMessage: (line: string) => void;
  /** The width of the terminal; null: the output goes elsewhere. */
  columns: () => number | null;
  /** Asks the operator; null: there is no terminal to ask at. */
  confirm: (question: string) => boolean | null;
}

/** A shell, and the database that its variables name. */
export interface Surroundings extends Shell {
  sql: postgres.Sql;
  settings: Pick<Settings, "data_dir" | "database_url">;
  now_ms: () => number;
  findConnector: ConnectorFinder;
}

/** Options without a value, and those that can be given several times. Others are texts. */
const FLAGS = ["again", "all", "check", "end", "failed", "json", "run", "unsynced", "yes"] as const;
const LISTS = ["notification-secret", "set", "socket", "unset"] as const;
type ValueOf<Name> = Name extends typeof FLAGS[number] ? boolean
  : Name extends typeof LISTS[number] ? string[]
  : string;

/** The values of options, by name. */
export type Values<Name extends string> = { [Each in Name]?: ValueOf<Each> };

/** Stands for arguments that are no options, such as ids. */
const NAMES = "…";

/** The work of a command with its arguments. Returns the exit code, or nothing for 0. */
export type Work = (surroundings: Surroundings) => Promise<number | void>;

/** An action of a command. `read` checks the values, and returns the work with them. */
export interface Action<Done extends Work = Work> {
  takes: readonly string[];
  read: (values: Values<string>, names: string[], env: Env) => Done;
}
/** The actions of a command, by their names; or its only action, which has no name. */
export type Actions<Done extends Work = Work> =
  | Readonly<Record<string, Action<Done>>>
  | Action<Done>;

/** Makes an action that takes these options, and names if "…" is one of them. */
export function action<const Name extends string, Done extends Work = Work>(
  takes: readonly Name[],
  read: (values: Values<Exclude<Name, typeof NAMES>>, names: string[], env: Env) => Done,
): Action<Done> {
  return { takes, read: read as Action<Done>["read"] };
}

/**
 * Parses the arguments of a command, which begin with the name of an action if it has several.
 * Returns the work, so that a command with a fault opens no database.
 * @throws {UsageError} if the action or an option is unknown, or a value is invalid
 */
export function readAction<Done extends Work>(
  command: string,
  args: readonly string[],
  actions: Actions<Done>,
  usage: string,
  env: Env = readVariable,
): Done {
  const [name = "undefined", ...own] = args;
  const is_only = "takes" in actions;
  if (!is_only && !Object.hasOwn(actions, name)) {
    throw new UsageError(`Unknown command "${name}"\n\n${usage}`);
  }
  const { takes, read } = (is_only ? actions : actions[name]) as Action<Done>;
  const { values, names } = is_only
    ? readOptions(command, args, takes)
    : readOptions(`${command} ${name}`, own, takes);
  return read(values, names, env);
}

/** Parses options, and names if `taken` has "…". Throws `UsageError`. */
function readOptions(command: string, args: readonly string[], taken: readonly string[]) {
  const is_one_of = (list: readonly string[], name: string) => list.includes(name);
  const options = Object.fromEntries(taken.map((name) => [name, {
    type: is_one_of(FLAGS, name) ? "boolean" as const : "string" as const,
    multiple: is_one_of(LISTS, name),
  }]));
  try {
    const allowPositionals = taken.includes(NAMES);
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals });
    return { values: values as Values<string>, names: positionals };
  } catch (error) {
    throw new UsageError(`${command}: ${(error as Error).message}`);
  }
}

/** Whether the arguments ask for the help text: there are none, "help" or "--help". */
export function wantsHelp(args: readonly string[]): boolean {
  return args.length === 0 || args[0] === "help" || args.includes("--help");
}

/**
 * Returns the only argument, which must be an id. It is not repeated, because it can be a secret.
 * @param noun of the resource
 * @throws {UsageError} if it is not
 */
export function readId(
  [id, ...more]: readonly string[],
  prefix: IdPrefix,
  noun: string,
): string {
  if (id === undefined) throw new UsageError(`The id of the ${noun} is missing: ${prefix}...`);
  if (more.length > 0) {
    throw new UsageError(`Unexpected argument "${more[0]}": give the id of one ${noun}`);
  }
  if (isId(prefix, id)) return id;
  const a = /^[aeiou]/.test(noun) ? "an" : "a";
  throw new UsageError(
    `The argument is not the id of ${a} ${noun}: an id begins with ${prefix}`,
  );
}

/** Returns a variable of the environment, or undefined if it is empty. */
export function readVariable(name: string): string | undefined {
  return Deno.env.get(name)?.trim() || undefined;
}

export function print(text: string): void {
  Deno.stdout.writeSync(encode(text));
}

export function printMessage(line: string): void {
  Deno.stderr.writeSync(encode(`${line}\n`));
}

/** The shell that has started this process. */
export const SHELL: Shell = {
  env: readVariable,
  print,
  printMessage,
  columns: () => Deno.stdout.isTerminal() ? Deno.consoleSize().columns : null,
  confirm: (question) => Deno.stdin.isTerminal() ? confirm(question) : null,
};

/**
 * Names are texts of others: they must not move the cursor or turn the direction of a line. They
 * are shown as JSON escapes them.
 */
const CONTROLS = /(?![\n\t])[\p{Cc}\p{Bidi_Control}]/gu;

function encode(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text.replace(
    CONTROLS,
    (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`,
  ));
}

/** Prints an error for the operator. Returns the exit code: 2 for invalid arguments, or else 1. */
export function reportFailure(failure: unknown, { printMessage }: Shell): number {
  // The failure of the work, if its database could not be closed either.
  const error = failure instanceof SuppressedError ? failure.suppressed : failure;
  printMessage(describe(error));
  return error instanceof UsageError ? 2 : 1;
}

/** Reads the keys of bank details. Throws `CommandError` if the command has none. */
export function readVault(env: (name: string) => string | undefined): Vault {
  const text = env("BANK_DETAILS_KEYS");
  if (text === undefined) {
    throw new CommandError("Set BANK_DETAILS_KEYS to the keys of the functions");
  }
  try {
    return Vault.read(text);
  } catch (error) {
    throw new CommandError((error as Error).message);
  }
}

export function sqlstateOf(error: unknown): string | undefined {
  return error instanceof postgres.PostgresError ? error.code : undefined;
}

function describe(error: unknown): string {
  if (sqlstateOf(error) === SQLSTATE.insufficient_privilege) {
    return "The user of DATABASE_URL lacks the privilege: it must be a member of pay_operator";
  }
  const is_complete = sqlstateOf(error) === SQLSTATE.lock_not_available ||
    error instanceof CommandError || error instanceof UsageError ||
    error instanceof SettingsError || error instanceof MigrationError;
  if (is_complete) return (error as Error).message;
  return error instanceof Error ? error.stack ?? error.message : String(error);
}
