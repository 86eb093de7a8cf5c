#!/usr/bin/env node
/** The command line of the package. */

import process from "node:process";
import { beforeRest, EXIT, readArguments, type Surroundings, UsageError } from "./command.ts";
import { describeError, errorBody, exitCodeOf } from "./command_errors.ts";
import { commandsOfGroup, findCommand } from "./commands.ts";
import { renderCommandHelp, renderHelp } from "./help.ts";
import { PACKAGE_VERSION } from "./package_name.ts";

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
  try {
    return await run(args, surroundings);
  } catch (error) {
    // Arguments that cannot be parsed can ask for JSON too.
    if (beforeRest(args).includes("--json")) {
      // A program reads the output of a stream line by line.
      const indentation = findCommand(args)?.command.is_stream ? 0 : 2;
      surroundings.print(`${JSON.stringify({ error: errorBody(error) }, null, indentation)}\n`);
    } else {
      surroundings.printMessage(describeError(error));
    }
    return exitCodeOf(error);
  }
}

async function run(given: readonly string[], surroundings: Surroundings): Promise<number> {
  const { print } = surroundings;
  const args = given[0] === "help" ? [...given.slice(1), "--help"] : given;
  const [first] = args;
  if (first === undefined || first === "--help" || first === "-h") {
    print(renderHelp());
    return first === undefined ? EXIT.usage : EXIT.success;
  }
  if (first === "--version" || first === "-v") {
    print(`${PACKAGE_VERSION}\n`);
    return EXIT.success;
  }
  const found = findCommand(args);
  if (found === null) return helpOfGroup(first, args, surroundings);
  const { command } = found;
  const { values, args: rest } = readArguments(command, found.args);
  if (values["help"]) {
    print(renderCommandHelp(command));
    return EXIT.success;
  }
  return await command.run(values, rest, surroundings);
}

/** Prints the commands that begin with a word, such as `payments`. */
function helpOfGroup(first: string, args: readonly string[], { print }: Surroundings): number {
  const group = commandsOfGroup(first);
  if (group.length === 0) throw new UsageError(`Unknown command "${first}". See --help`);
  if (!args.includes("--help") && !args.includes("-h")) {
    const names = group.map(({ name }) => name).join(", ");
    throw new UsageError(`"${args.slice(0, 2).join(" ")}" is no command: ${names}. See --help`);
  }
  print(renderHelp(group));
  return EXIT.success;
}
