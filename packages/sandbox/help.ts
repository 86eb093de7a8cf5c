/** The text of `--help`, for the program and for each command. */

import { type Command, COMMON, type Option } from "./command.ts";
import { COMMANDS } from "./commands.ts";
import { PACKAGE_NAME } from "./package_name.ts";

/** Returns the help of the program, or of the commands of a group. */
export function renderHelp(commands: readonly Command[] = COMMANDS): string {
  const width = Math.max(...commands.map((command) => operationFor(command).length));
  return `${PACKAGE_NAME}: a payments API with a deterministic sandbox

Usage: ${PACKAGE_NAME} COMMAND [OPTIONS]

Commands:
${
    commands.map((command) => `  ${operationFor(command).padEnd(width)}  ${command.summary}`).join(
      "\n",
    )
  }

Examples:
${
    commands.filter(({ args }) => args !== "ID").map(({ examples }) =>
      `  ${PACKAGE_NAME} ${examples[0]}`
    ).join("\n")
  }

--help (-h) after a command shows its options and more examples. --version (-v) prints the version.
Exit codes: 0 success, 1 failure, 2 invalid arguments; \`run\` has the exit code of its command.
`;
}

/** Returns the help of a command. */
export function renderCommandHelp(command: Command): string {
  const rows = Object.entries({ ...command.options, ...COMMON }).map(([name, option]) =>
    [flagOf(name, option), option.help] as const
  );
  const width = Math.max(...rows.map(([flag]) => flag.length));
  return `${command.summary}

Usage: ${PACKAGE_NAME} ${operationFor(command)} [OPTIONS]

Options:
${rows.map(([flag, help]) => `  ${flag.padEnd(width)}  ${help}`).join("\n")}

Examples:
${command.examples.map((example) => `  ${PACKAGE_NAME} ${example}`).join("\n")}
`;
}

function operationFor({ name, args }: Command): string {
  return args === undefined ? name : `${name} ${args}`;
}

function flagOf(name: string, { value, short }: Option): string {
  const flag = short === undefined ? `--${name}` : `--${name}, -${short}`;
  return value === undefined ? flag : `${flag} ${value}`;
}
