/** The table of all commands, in the order of the help. */

import type { Command } from "./command.ts";
import * as changes from "./commands/changes.ts";
import { CHECKOUTS_CREATE } from "./commands/checkouts_create.ts";
import { CLOCK_ADVANCE } from "./commands/clock_advance.ts";
import { completionCommand } from "./commands/completion.ts";
import { EVENTS_RESEND } from "./commands/events_resend.ts";
import { LISTEN } from "./commands/listen.ts";
import * as gets from "./commands/gets.ts";
import * as lists from "./commands/lists.ts";
import { LOGS_TAIL } from "./commands/logs_tail.ts";
import { MCP } from "./commands/mcp.ts";
import { OPEN } from "./commands/open.ts";
import { PAYMENTS_CREATE } from "./commands/payments_create.ts";
import { RESET } from "./commands/reset.ts";
import { RUN } from "./commands/run.ts";
import { SANDBOX_NEW } from "./commands/sandbox_new.ts";
import { START } from "./commands/start.ts";
import { TRIGGER } from "./commands/trigger.ts";
import { PACKAGE_NAME } from "./package_name.ts";

/** All commands. */
export const COMMANDS: readonly Command[] = [
  START,
  RUN,
  PAYMENTS_CREATE,
  changes.PAYMENTS_CAPTURE,
  changes.PAYMENTS_REFUND,
  changes.PAYMENTS_CANCEL,
  gets.PAYMENTS_GET,
  lists.PAYMENTS_LIST,
  CHECKOUTS_CREATE,
  changes.CHECKOUTS_PAY,
  changes.CHECKOUTS_CANCEL,
  gets.CHECKOUTS_GET,
  lists.CHECKOUTS_LIST,
  lists.INSTRUMENTS_LIST,
  changes.INSTRUMENTS_END,
  lists.EVENTS_LIST,
  EVENTS_RESEND,
  lists.ENDPOINTS_LIST,
  LISTEN,
  TRIGGER,
  SANDBOX_NEW,
  RESET,
  CLOCK_ADVANCE,
  LOGS_TAIL,
  OPEN,
  MCP,
  completionCommand(PACKAGE_NAME, () => COMMANDS),
];

/** The words of an argument list that name a command, and the arguments after them. */
export interface FoundCommand {
  command: Command;
  args: string[];
}

/** Finds the command that the first words name. Returns null if there is none. */
export function findCommand(args: readonly string[]): FoundCommand | null {
  for (const command of COMMANDS) {
    const words = command.name.split(" ");
    if (words.every((word, index) => args[index] === word)) {
      return { command, args: args.slice(words.length) };
    }
  }
  return null;
}

/** Returns the commands that begin with this word and have a second one, such as `payments`. */
export function commandsOfGroup(word: string): readonly Command[] {
  return COMMANDS.filter(({ name }) => name.startsWith(`${word} `));
}
