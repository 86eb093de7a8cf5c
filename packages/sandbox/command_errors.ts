/** How the command line shows an error: as a line, as JSON, and as an exit code. */

import {
  ApiError,
  ConnectionError,
  type ErrorBody,
  PaymentsError,
  TimeoutError,
  UnexpectedResponseError,
} from "../client/mod.ts";
import { CommandError, EXIT, UsageError } from "./command.ts";
import { InstallationError } from "./programs.ts";

/** An error that is not from the API, in the form of those that are (contract §6). */
interface CommandLineError {
  type: "command_line";
  code: string;
  message: string;
  /** The argument of a tool that is at fault, as a path. */
  param?: string;
}

/** The codes of these errors. Every other error is `unexpected_error`. */
const CODES = [
  [UsageError, "invalid_arguments"],
  [CommandError, "command_failed"],
  [InstallationError, "installation_incomplete"],
  [ConnectionError, "connection_failed"],
  [TimeoutError, "timeout"],
  [UnexpectedResponseError, "unexpected_response"],
] as const;

/** Returns the member `error` of the JSON of an error. */
export function errorBody(error: unknown): ErrorBody | CommandLineError {
  if (error instanceof ApiError) return error.body;
  const [, code] = CODES.find(([type]) => error instanceof type) ?? [null, "unexpected_error"];
  const param = error instanceof UsageError && error.param ? { param: error.param } : {};
  return { type: "command_line", code, message: describeError(error), ...param };
}

/** Returns the text of an error for a person. */
export function describeError(error: unknown): string {
  if (error instanceof ApiError) return `${error.message} (${error.code})`;
  const is_complete = error instanceof CommandError || error instanceof UsageError ||
    error instanceof InstallationError || error instanceof PaymentsError ||
    (error instanceof Error && error.constructor === Error);
  if (is_complete) return error.message;
  return error instanceof Error ? error.stack ?? error.message : String(error);
}

/** Returns the exit code of an error. The API checks the values of most options. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof CommandError) return error.exit_code;
  const is_wrong_argument = error instanceof UsageError ||
    (error instanceof ApiError && error.is("invalid_parameter"));
  return is_wrong_argument ? EXIT.usage : EXIT.failure;
}
