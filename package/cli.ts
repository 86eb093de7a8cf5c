#!/usr/bin/env node
/** The command line of the package. */

import process from "node:process";
import { ApiError, PaymentsError } from "../client/mod.ts";
import { CommandError, EXIT, readArguments, type Surroundings, UsageError } from "./command.ts";
import { findCommand } from "./commands.ts";
import { renderCommandHelp, renderHelp } from "./help.ts";
import { PACKAGE_VERSION } from "./package_name.ts";
import { InstallationError } from "./programs.ts";

const SURROUNDINGS: Surroundings = {
  env: (name) => process.env[name]?.trim() || undefined,
  cwd: process.cwd(),
  print: (text) => void process.stdout.write(text),
  printMessage: (line) => void process.stderr.write(`${line}\n`),
};

// The reader of the output can end first, such as `head`.
process.stdout.on("error", ({ code }: NodeJS.ErrnoException) => {
  process.exit(code === "EPIPE" ? EXIT.success : EXIT.failure);
});
process.exitCode = await main(process.argv.slice(2), SURROUNDINGS);

async function main(args: readonly string[], surroundings: Surroundings): Promise<number> {
  const { print, printMessage } = surroundings;
  let is_json = false;
  /** Spaces of the indentation of JSON. A program reads the output of a stream line by line. */
  let indentation = 2;
  try {
    const [first] = args;
    if (first === undefined || first === "--help" || first === "help") {
      print(renderHelp());
      return first === undefined ? EXIT.usage : EXIT.success;
    }
    if (first === "--version") {
      print(`${PACKAGE_VERSION}\n`);
      return EXIT.success;
    }
    const found = findCommand(args);
    if (found === null) throw new UsageError(`Unknown command "${first}". See --help`);
    const { command } = found;
    const { values, args: rest } = readArguments(command, found.args);
    if (values["help"]) {
      print(renderCommandHelp(command));
      return EXIT.success;
    }
    is_json = values["json"] === true;
    if (command.is_stream) indentation = 0;
    return await command.run(values, rest, surroundings);
  } catch (error) {
    if (is_json && error instanceof ApiError) {
      print(`${JSON.stringify({ error: error.body }, null, indentation)}\n`);
    } else {
      printMessage(describe(error));
    }
    return error instanceof UsageError ? EXIT.usage : EXIT.failure;
  }
}

function describe(error: unknown): string {
  if (error instanceof ApiError) return `${error.message} (${error.code})`;
  const is_complete = error instanceof CommandError || error instanceof UsageError ||
    error instanceof InstallationError || error instanceof PaymentsError ||
    (error instanceof Error && error.constructor === Error);
  if (is_complete) return error.message;
  return error instanceof Error ? error.stack ?? error.message : String(error);
}
