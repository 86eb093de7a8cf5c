/** Runs a command line: finds its command, and shows its errors. */

import { beforeRest, EXIT, readArguments, type Surroundings, UsageError } from "./command.ts";
import { describeError, errorBody, exitCodeOf } from "./command_errors.ts";
import { commandsOfGroup, findCommand } from "./commands.ts";
import { renderCommandHelp, renderHelp } from "./help.ts";
import { PACKAGE_VERSION } from "./package_name.ts";

/** Runs the command that the arguments name. Returns the exit code; an error is printed. */
export async function runCommand(
  args: readonly string[],
  surroundings: Surroundings,
): Promise<number> {
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
