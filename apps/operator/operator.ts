/**
 * The operator's command line: `deno task operator:NAME`. Each command is a row of COMMANDS. The
 * module that a row loads has the text for `--help`, and parses the arguments. A command prints its
 * result to standard output, and every other line to standard error.
 */

import { print, reportFailure, UsageError, wantsHelp } from "./command_line.ts";

interface OperatorCommand {
  name: string;
  /** One sentence, without a full stop. */
  summary: string;
  load(): Promise<{ main(args: readonly string[]): Promise<number>; USAGE?: string }>;
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
    failure_code: 2,
  },
  {
    name: "reconcile",
    summary: "Compares the books with those of the providers",
    load: () => import("./reconcile.ts"),
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
    const { main, USAGE } = await command.load();
    if (USAGE !== undefined && wantsHelp(args)) return print(USAGE), 0;
    return await main(args);
  } catch (error) {
    const code = reportFailure(error);
    return command?.failure_code ?? code;
  }
}

function overview(): string {
  const width = Math.max(...COMMANDS.map(({ name }) => name.length));
  const lines = COMMANDS.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}\n`);
  return `Usage: deno task operator COMMAND …, or deno task operator:COMMAND …\n\n${
    lines.join("")
  }`;
}
