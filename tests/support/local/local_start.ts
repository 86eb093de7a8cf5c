/**
 * Runs the local start as a child process with its own port and data folder. Tests read its output
 * and end it with signals, like a user.
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { START_COMMAND } from "../../../packages/sandbox/start_command.ts";
import {
  type EndedCommand,
  launchCommand,
  type RunningCommand,
} from "../common/running_command.ts";
import { keyedCall } from "../service/keyed_call.ts";

/** The project's folder. */
export const PROJECT_DIR = fileURLToPath(new URL("../../..", import.meta.url));

/** The last line of the banner. The service responds when this line is printed. */
const READY = /Ctrl-C stops everything/;

/** A start that serves. */
export type LocalStart = Awaited<ReturnType<typeof launchStart>>;

/** Environment variables of a start. PORT is 0 by default. */
type StartEnvironment = Record<string, string> & { DATA_DIR: string };

/** Longer than a start needs to end: 5 s for requests, then the database. */
const END_DEADLINE_MS = 10_000;

/** Runs a start until it ends by itself. */
export async function runStart(env: StartEnvironment, ...args: string[]): Promise<EndedCommand> {
  const child = spawn(env, [...START_COMMAND, ...args]);
  return await child.ended;
}

/** Launches a start and resolves when it serves. Throws if the start ends before. */
export async function launchStart(
  env: StartEnvironment,
  command: readonly string[] = START_COMMAND,
) {
  const child = spawn(env, command);
  await child.printed(READY);
  const { base_url, test_key } = await readCredentials(env.DATA_DIR);
  return {
    pid: child.pid,
    base_url,
    test_key,
    data_dir: env.DATA_DIR,
    /** The output so far. */
    output: child.output,
    /** Sends a request to `base_url` + path with the test key. */
    call: (method: string, path: string, body?: unknown) =>
      keyedCall(base_url, method, path, { key: test_key, body }),
    /** Sends the signal and waits for the end. */
    async end(signal: Deno.Signal = "SIGTERM") {
      child.kill(signal);
      let timer: ReturnType<typeof setTimeout> | undefined;
      const deadline = new Promise<never>((_, reject) => {
        timer = setTimeout(() => {
          killHolder(env.DATA_DIR);
          reject(new Error(`Still running ${END_DEADLINE_MS} ms after ${signal}`));
        }, END_DEADLINE_MS);
      });
      return await Promise.race([child.ended, deadline]).finally(() => clearTimeout(timer));
    },
  };
}

/** Ends a start whose launcher has ended, so that a failed test leaves no process behind. */
function killHolder(data_dir: string): void {
  Deno.kill(Number.parseInt(Deno.readTextFileSync(join(data_dir, "start.lock"))), "SIGTERM");
}

/** The content of `credentials.json`. */
export async function readCredentials(data_dir: string) {
  const text = await Deno.readTextFile(join(data_dir, "credentials.json"));
  return JSON.parse(text) as { base_url: string; test_key: string; live_key: string };
}

function spawn(env: StartEnvironment, command: readonly string[]): RunningCommand {
  // With colours, if it prints some.
  const defaults = { PORT: "0", DATABASE_URL: "", LOG: "", NO_COLOR: "" };
  return launchCommand({ args: [Deno.execPath(), ...command], env: { ...defaults, ...env } });
}
