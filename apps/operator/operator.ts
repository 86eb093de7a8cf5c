/**
 * The operator's command line: `deno task operator:NAME`. Each command is a row of COMMANDS. The
 * module that a row loads has the text for `--help`, and parses the arguments. A command prints its
 * result to standard output, and every other line to standard error. Exit codes, unless a command
 * has others: 0 success, 1 failure, 2 invalid arguments.
 */

import {
  type Actions,
  type Env,
  readAction,
  readVariable,
  reportFailure,
  SHELL,
  type Shell,
  UsageError,
  wantsHelp,
  type Work,
} from "./command_line.ts";

/** A command has actions, or `main` if it opens databases and prints by itself. */
interface CommandModule {
  USAGE?: string;
  ACTIONS?: Actions;
  main?(args: readonly string[]): Promise<number>;
}

/**
 * A command. A check takes one argument, the URL of a database in place of DATABASE_URL, and its exit
 * code after an error is 2, because 1 says something else.
 */
type OperatorCommand = readonly [
  name: string,
  /** One sentence, without a full stop. */
  summary: string,
  load: () => Promise<CommandModule>,
  kind?: "check",
];

const COMMANDS: readonly OperatorCommand[] = [
  ["keys", "Creates, lists, rotates and revokes API keys", () => import("./keys.ts")],
  [
    "providers",
    "Accounts at providers, their settings, and provider events that need a person",
    () => import("./providers.ts"),
  ],
  [
    "merchant",
    "Name, colour and logo that payers see on the page of checkouts",
    () => import("./merchant.ts"),
  ],
  ["bank", "Exports orders to a bank, and imports its files", () => import("./bank.ts")],
  [
    "payouts",
    "Writes the open payouts in stablecoins as a batch for a Safe",
    () => import("./payouts.ts"),
  ],
  [
    "check-books",
    "Checks every invariant of the database",
    () => import("./check_books.ts"),
    "check",
  ],
  [
    "reconcile",
    "Compares the books with those of the providers",
    () => import("./reconcile.ts"),
    "check",
  ],
  [
    "archive",
    "Writes what retention is about to delete to a folder or a bucket",
    () => import("./archive.ts"),
  ],
  ["cells", "Moves an account to the database of another cell", () => import("./cells.ts")],
  ["vault", "Seals bank details again with the newest key", () => import("./vault.ts")],
  ["migrate", "Applies the missing migrations to DATABASE_URL", () => import("./migrate.ts")],
];

if (import.meta.main) Deno.exit(await runOperatorCommand(Deno.args));

/** Runs the command that the first argument names. Returns its exit code. */
export async function runOperatorCommand(
  [name, ...args]: readonly string[],
  shell: Shell = SHELL,
): Promise<number> {
  const { print } = shell;
  if (name === undefined || name === "help" || name === "--help") return print(overview()), 0;
  const [, , load, kind] = COMMANDS.find(([each]) => each === name) ?? [];
  const is_check = kind === "check";
  try {
    if (!load) throw new UsageError(`Unknown command "${name}"\n\n${overview()}`);
    const { USAGE, main } = await load();
    if (USAGE !== undefined && wantsHelp(args)) return print(USAGE), 0;
    if (main && shell !== SHELL) throw new Error(`"${name}" has the shell of this process`);
    return await main?.(args) ?? await runActions(name, args, is_check, shell);
  } catch (error) {
    const code = reportFailure(error, shell);
    return is_check ? 2 : code;
  }
}

async function runActions(
  name: string,
  args: readonly string[],
  is_check: boolean,
  shell: Shell,
): Promise<number> {
  if (is_check && args.length > 1) throw new UsageError(`Usage: deno task ${name} [URL]`);
  const [url] = is_check ? args : [];
  const env: Env = (name) => name === "DATABASE_URL" ? url ?? shell.env(name) : shell.env(name);
  const work = await readCommand(name, is_check ? [] : args, env);
  // It is large, and the help needs none of it.
  const { connectorsOf, withOperatorDatabase } = await import("./operator_database.ts");
  const own = { ...shell, env };
  return await withOperatorDatabase(own, async (sql, settings) => {
    const findConnector = connectorsOf(sql);
    return await work({ ...own, sql, settings, now_ms: Date.now, findConnector });
  }) ?? 0;
}

/** Reads the arguments of a command. Throws `UsageError`. */
export async function readCommand(
  name: string,
  args: readonly string[],
  env: Env = readVariable,
): Promise<Work> {
  const [, , load] = COMMANDS.find(([each]) => each === name)!;
  const { ACTIONS, USAGE = "" } = await load();
  return readAction(name, args, ACTIONS!, USAGE, env);
}

function overview(): string {
  const width = Math.max(...COMMANDS.map(([name]) => name.length));
  const lines = COMMANDS.map(([name, summary]) => `  ${name.padEnd(width)}  ${summary}\n`);
  return `Usage: deno task operator COMMAND …, or deno task operator:COMMAND …\n\n${
    lines.join("")
  }`;
}
