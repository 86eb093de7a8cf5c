/** Runs a program with the input and output of this process. */

import { spawn } from "node:child_process";
import { constants } from "node:os";
import process from "node:process";
import { CommandError, EXIT } from "./command.ts";

/**
 * Signals that are passed on to the program. This process ends after it. Without a terminal, as
 * under nohup, SIGHUP keeps its meaning: if it ends this process, the service ends after its
 * launcher.
 */
const SIGNALS: readonly NodeJS.Signals[] = [
  "SIGINT",
  "SIGTERM",
  ...(process.stdout.isTTY ? ["SIGHUP" as const] : []),
];

/** The reason and the exit code, as in a shell, of a program that cannot be started. */
const NOT_STARTED: Readonly<Record<string, [reason: string, exit_code: number]>> = {
  EACCES: ["this user may not execute it", 126],
  ENOENT: ["there is no such program", 127],
};

/**
 * Runs a program until it ends.
 * @param environment variables beside those of this process
 * @returns its exit code; 128 and the number of the signal if a signal has ended it
 * @throws {CommandError} if it cannot be started
 */
export async function runProgram(
  program: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  options: { shell?: boolean } = {},
): Promise<number> {
  const child = spawn(program, [...args], {
    env: { ...process.env, ...environment },
    stdio: "inherit",
    ...options,
  });
  const pass = (signal: NodeJS.Signals) => {
    // A terminal sends Ctrl-C to both. A second signal would end some programs at once.
    if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
  };
  for (const signal of SIGNALS) process.on(signal, pass);
  try {
    return await new Promise<number>((resolve, reject) => {
      child.once("error", ({ code = "", message }: NodeJS.ErrnoException) => {
        const [reason, exit_code] = NOT_STARTED[code] ?? [message, EXIT.failure];
        reject(new CommandError(`"${program}" cannot be started: ${reason}`, exit_code));
      });
      child.once(
        "exit",
        (code, signal) =>
          resolve(code ?? (signal === null ? EXIT.failure : 128 + constants.signals[signal])),
      );
    });
  } finally {
    for (const signal of SIGNALS) process.off(signal, pass);
  }
}
