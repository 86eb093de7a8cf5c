/** The output and the errors of the operator's commands. */

import { parseArgs, type ParseArgsConfig } from "node:util";
import postgres from "postgres";
import { type IdPrefix, isId } from "../../shared/core/ids.ts";
import { Vault } from "../../shared/core/vault.ts";
import { SettingsError } from "../server/data_dir/settings.ts";
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

/** The surroundings of a command. Tests pass their own. */
export interface Surroundings {
  sql: postgres.Sql;
  env: (name: string) => string | undefined;
  print: (text: string) => void;
  printMessage: (line: string) => void;
}

/**
 * Parses the arguments of a command by the parser of Node.
 * @param tell makes the message of what the parser says
 * @throws {UsageError} if an argument is unknown or has no value
 */
export function parseArguments<T extends ParseArgsConfig>(
  config: T,
  tell: (fault: string) => string,
): ReturnType<typeof parseArgs<T>> {
  try {
    return parseArgs(config);
  } catch (error) {
    throw new UsageError(tell((error as Error).message));
  }
}

/** Whether the arguments ask for the help text: there are none, "help" or "--help". */
export function wantsHelp(args: readonly string[]): boolean {
  return args.length === 0 || args[0] === "help" || args.includes("--help");
}

/** Returns the first argument as the name of a command. Throws `UsageError` with the help text. */
export function readAction<T extends string>(
  name: string | undefined,
  known: readonly T[],
  usage: string,
): T {
  const action = known.find((each) => each === name);
  if (action !== undefined) return action;
  throw new UsageError(`Unknown command "${name}"\n\n${usage}`);
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
export function reportFailure(error: unknown): number {
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
