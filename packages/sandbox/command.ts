/**
 * A command of the command line: its options, its help, and the errors that end it. Every command
 * is a row of the table in commands.ts, from which the help and the completion are made.
 */

import { parseArgs } from "node:util";

/** An option of a command. */
export interface Option {
  /** One letter that also gives the option, such as `h`. */
  short?: string;
  /** The name of its value in the help, such as `AMOUNT`; absent: it takes none. */
  value?: string;
  /** A phrase for the help, without a full stop. */
  help: string;
}

/** The values of the options, by name. */
export type Values = Readonly<Record<string, string | boolean | undefined>>;

/** The surroundings of a command. */
export interface Surroundings {
  env: (name: string) => string | undefined;
  cwd: string;
  /** Prints a text to standard output. */
  print: (text: string) => void;
  /** Prints a line to standard error. */
  printMessage: (line: string) => void;
}

/** A command. */
export interface Command {
  /** The words that call it, such as `payments create`. */
  name: string;
  /** Its arguments in the help, such as `ID`. */
  args?: string;
  /** One sentence, without a full stop. */
  summary: string;
  options: Readonly<Record<string, Option>>;
  /** The command lines that the help shows, without the name of the program. */
  examples: readonly string[];
  /** Whether arguments after `--` are passed on as they are. */
  takesRest?: boolean;
  /** Whether it prints a line for each thing that happens, until somebody stops it. */
  is_stream?: boolean;
  /** Returns the exit code. */
  run(values: Values, args: readonly string[], surroundings: Surroundings): Promise<number>;
}

/** Exit codes of every command. `run` exits with the code of its program, or 126 or 127. */
export const EXIT = { success: 0, failure: 1, usage: 2 } as const;

/** Invalid arguments. The message names the argument at fault, and `param` that of a tool. */
export class UsageError extends Error {
  override readonly name = "UsageError";

  constructor(message: string, readonly param?: string) {
    super(message);
  }
}

/** A command that failed. The message is complete for the user. */
export class CommandError extends Error {
  override readonly name = "CommandError";

  constructor(message: string, readonly exit_code: number = EXIT.failure) {
    super(message);
  }
}

/** An option of every command. */
export const COMMON: Readonly<Record<string, Option>> = {
  help: { short: "h", help: "show this help" },
};
/** An option of commands with a result. */
export const JSON_OPTION: Readonly<Record<string, Option>> = {
  json: { help: "print the result as JSON, also if it is an error" },
};
/** Options of a create of a payment or a checkout. */
export const SALE_OPTIONS: Readonly<Record<string, Option>> = {
  amount: { value: "N", help: "in minor units: 1999 is 19.99 EUR (required)" },
  currency: { value: "CODE", help: "ISO 4217 code, USDC or USDT (EUR)" },
  capture: { value: "METHOD", help: "manual only authorizes the amount" },
  email: { value: "ADDRESS", help: "of the customer" },
  "customer-id": { value: "ID", help: "your own id of the customer" },
  reference: { value: "TEXT", help: "your own reference" },
  "return-url": { value: "URL", help: "where the payer comes back" },
};
/** Options of commands that call a service. */
export const SERVICE_OPTIONS: Readonly<Record<string, Option>> = {
  "base-url": { value: "URL", help: "the service; default: that of this folder" },
  key: { value: "KEY", help: "an API key; default: that of this folder" },
  "data-dir": { value: "FOLDER", help: "data of the local start (.local)" },
};
/** An option of commands that can change live data. */
export const LIVE_OPTION: Readonly<Record<string, Option>> = {
  live: { help: "allow a live key, which changes real data" },
};
/** Options of commands that change something once. */
export const CHANGE_OPTIONS: Readonly<Record<string, Option>> = {
  "idempotency-key": { value: "KEY", help: "a retry with this key changes nothing" },
  ...LIVE_OPTION,
};

/**
 * Parses the arguments of a command.
 * @throws {UsageError} if an option is unknown, or its value is missing
 */
export function readArguments(
  command: Command,
  args: readonly string[],
): { values: Values; args: string[] } {
  const options = Object.fromEntries(
    Object.entries({ ...COMMON, ...command.options })
      .map(([name, { value, short }]) => [name, {
        type: value === undefined ? "boolean" as const : "string" as const,
        ...(short !== undefined && { short }),
      }]),
  );
  const own = command.takesRest ? beforeRest(args) : [...args];
  const rest = args.slice(own.length + 1);
  try {
    const parsed = parseArgs({ args: own, options, allowPositionals: true, strict: true });
    return { values: parsed.values as Values, args: [...parsed.positionals, ...rest] };
  } catch (error) {
    // The message names the option and the remedy, in several sentences.
    const [first] = (error as Error).message.split(". ");
    throw new UsageError(`${first}. See --help`);
  }
}

/** Returns the arguments before `--`. Those after it belong to another program. */
export function beforeRest(args: readonly string[]): string[] {
  const end = args.indexOf("--");
  return end === -1 ? [...args] : args.slice(0, end);
}

/** Returns the value of an option that takes one. */
export function textOf(values: Values, name: string): string | undefined {
  const value = values[name];
  if (value === "") throw new UsageError(`--${name} is empty`);
  return typeof value === "string" ? value : undefined;
}

/**
 * Returns the value of an option as a whole number.
 * @throws {UsageError} if it is not one, or not within the bounds
 */
export function wholeNumberOf(
  values: Values,
  name: string,
  least: number,
  most: number = Number.MAX_SAFE_INTEGER,
): number | undefined {
  const text = textOf(values, name);
  if (text === undefined) return undefined;
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= least && number <= most) return number;
  const bounds = most === Number.MAX_SAFE_INTEGER ? `from ${least}` : `from ${least} to ${most}`;
  throw new UsageError(`--${name} must be a whole number ${bounds}`);
}

/** Reads `--amount` of a payment or checkout. Only one that saves can be of 0. */
export function amountOf(values: Values): number {
  const least = textOf(values, "save") === undefined ? 1 : 0;
  const amount = wholeNumberOf(values, "amount", least);
  if (amount === undefined) throw new UsageError("--amount is missing: 1999 is 19.99 EUR");
  return amount;
}

/** Reads `--customer-id` and `--email`; undefined: there is neither. */
export function customerOf(values: Values): { id?: string; email?: string } | undefined {
  const [id, email] = [textOf(values, "customer-id"), textOf(values, "email")];
  return id === undefined && email === undefined
    ? undefined
    : { ...(id !== undefined && { id }), ...(email !== undefined && { email }) };
}

/**
 * Returns the one argument of a command.
 * @param missing the message of the error if there is none
 * @throws {UsageError} if there is none, or more than one
 */
export function onlyArgument([first, ...more]: readonly string[], missing: string): string {
  if (!first) throw new UsageError(missing);
  refuseArguments(more);
  return first;
}

/**
 * Returns the only argument of a command, which is an id.
 * @param example the form of the id, such as `pay_…`
 * @throws {UsageError} if it is missing or cannot be an id
 */
export function idArgument(args: readonly string[], example: string): string {
  const id = onlyArgument(args, `The id is missing: ${example}`);
  if (/^\w+$/.test(id)) return id;
  throw new UsageError(`"${id}" is no id: ${example}`);
}

/** Refuses arguments of a command that takes none. */
export function refuseArguments(args: readonly string[]): void {
  if (args.length > 0) throw new UsageError(`Unexpected argument "${args[0]}". See --help`);
}
