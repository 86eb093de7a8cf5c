/**
 * The operator's command line: `deno task operator:NAME`. Each command is a row of COMMANDS. The
 * module that a row loads has the text for `--help`, and parses the arguments. A command prints its
 * result to standard output, and every other line to standard error. Exit codes, unless a command
 * has others: 0 success, 1 failure, 2 invalid arguments.
 */

import {
  type Actions,
  type Env,
  print,
  printMessage,
  readAction,
  readVariable,
  reportFailure,
  UsageError,
  wantsHelp,
  type Work,
} from "./command_line.ts";

/** A command has actions, or `main` if it opens databases by itself. */
interface CommandModule {
  USAGE?: string;
  ACTIONS?: Actions;
  main?(args: readonly string[]): Promise<number>;
}

interface OperatorCommand {
  name: string;
  /** One sentence, without a full stop. */
  summary: string;
  load(): Promise<CommandModule>;
  /** Whether its only argument is the URL of a database, in place of DATABASE_URL. */
  takes_url?: true;
  /** The exit code after an error, if it is not 1: 1 says something else. */
  failure_code?: number;
}

const COMMANDS: readonly OperatorCommand[] = [
  {
    name: "keys",
    summary: "Creates, lists, rotates and revokes API keys",
    load: () => import("./keys.ts"),
  },
  {
    name: "providers",
    summary: "Accounts at providers, their settings, and provider events that need a person",
    load: () => import("./providers.ts"),
  },
  {
    name: "merchant",
    summary: "Name, colour and logo that payers see on the page of checkouts",
    load: () => import("./merchant.ts"),
  },
  {
    name: "bank",
    summary: "Exports orders to a bank, and imports its files",
    load: () => import("./bank.ts"),
  },
  {
    name: "payouts",
    summary: "Writes the open payouts in stablecoins as a batch for a Safe",
    load: () => import("./payouts.ts"),
  },
  {
    name: "check-books",
    summary: "Checks every invariant of the database",
    load: () => import("./check_books.ts"),
    takes_url: true,
    failure_code: 2,
  },
  {
    name: "reconcile",
    summary: "Compares the books with those of the providers",
    load: () => import("./reconcile.ts"),
    takes_url: true,
    failure_code: 2,
  },
  {
    name: "archive",
    summary: "Writes what retention is about to delete to a folder or a bucket",
    load: () => import("./archive.ts"),
  },
  {
    name: "cells",
    summary: "Moves an account to the database of another cell",
    load: () => import("./cells.ts"),
  },
  {
    name: "vault",
    summary: "Seals bank details again with the newest key",
    load: () => import("./vault.ts"),
  },
  {
    name: "migrate",
    summary: "Applies the missing migrations to DATABASE_URL",
    load: () => import("./migrate.ts"),
  },
];

if (import.meta.main) Deno.exit(await runOperatorCommand(Deno.args));

/** Runs the command that the first argument names. Returns its exit code. */
async function runOperatorCommand([name, ...args]: readonly string[]): Promise<number> {
  if (name === undefined || name === "help" || name === "--help") return print(overview()), 0;
  const command = COMMANDS.find((each) => each.name === name);
  try {
    if (!command) throw new UsageError(`Unknown command "${name}"\n\n${overview()}`);
    const { USAGE, main } = await command.load();
    if (USAGE !== undefined && wantsHelp(args)) return print(USAGE), 0;
    return await main?.(args) ?? await runActions(command, args);
  } catch (error) {
    const code = reportFailure(error);
    return command?.failure_code ?? code;
  }
}

async function runActions(
  { name, takes_url }: OperatorCommand,
  args: readonly string[],
): Promise<number> {
  if (takes_url && args.length > 1) throw new UsageError(`Usage: deno task ${name} [URL]`);
  const [url] = takes_url ? args : [];
  const env: Env = (name) =>
    name === "DATABASE_URL" ? url ?? readVariable(name) : readVariable(name);
  const work = await readCommand(name, takes_url ? [] : args, env);
  // It is large, and the help needs none of it.
  const { connectorsOf, withOperatorDatabase } = await import("./operator_database.ts");
  return await withOperatorDatabase(env, async (sql, settings) => {
    const surroundings = { sql, settings, env, now_ms: Date.now, print, printMessage };
    return await work({ ...surroundings, findConnector: connectorsOf(sql) });
  }) ?? 0;
}

/** Reads the arguments of a command. Throws `UsageError`. */
export async function readCommand(
  name: string,
  args: readonly string[],
  env: Env = readVariable,
): Promise<Work> {
  const { ACTIONS, USAGE = "" } = await COMMANDS.find((each) => each.name === name)!.load();
  return readAction(name, args, ACTIONS!, USAGE, env);
}

function overview(): string {
  const width = Math.max(...COMMANDS.map(({ name }) => name.length));
  const lines = COMMANDS.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}\n`);
  return `Usage: deno task operator COMMAND …, or deno task operator:COMMAND …\n\n${
    lines.join("")
  }`;
}
