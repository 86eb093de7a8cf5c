/**
 * Runs the local start as a child process with its own port and data folder. Tests read its output
 * and end it with signals, like a user.
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { START_COMMAND } from "../../../packages/sandbox/start_command.ts";

/** The project's folder. */
export const PROJECT_DIR = fileURLToPath(new URL("../../..", import.meta.url));

/** The last line of the banner. The service responds when this line is printed. */
const READY = "Ctrl-C stops everything";

/** A start that has ended. */
interface EndedStart {
  code: number;
  signal: string | null;
  /** Standard output and standard error together. */
  output: string;
}

/** A start that serves. */
export interface LocalStart {
  pid: number;
  base_url: string;
  test_key: string;
  data_dir: string;
  /** The output so far. */
  output(): string;
  /** Sends a request to `base_url` + path with the test key. */
  call(method: string, path: string, body?: unknown): Promise<{ status: number; body: unknown }>;
  /** Sends the signal and waits for the end. */
  end(signal?: Deno.Signal): Promise<EndedStart>;
}

/** Environment variables of a start. PORT is 0 by default. */
type StartEnvironment = Record<string, string> & { DATA_DIR: string };

/** Longer than a start needs to end: 5 s for requests, then the database. */
const END_DEADLINE_MS = 10_000;

/** Runs a start until it ends by itself. */
export async function runStart(env: StartEnvironment, ...args: string[]): Promise<EndedStart> {
  const child = spawn(env, [...START_COMMAND, ...args]);
  return await child.ended;
}

/** Launches a start and resolves when it serves. Throws if the start ends before. */
export async function launchStart(
  env: StartEnvironment,
  command: readonly string[] = START_COMMAND,
): Promise<LocalStart> {
  const child = spawn(env, command);
  const early = await Promise.race([child.ready, child.ended]);
  if (early) throw new Error(`The start ended with ${early.code}:\n${early.output}`);
  const { base_url, test_key } = await readCredentials(env.DATA_DIR);
  return {
    pid: child.pid,
    base_url,
    test_key,
    data_dir: env.DATA_DIR,
    output: child.output,
    async call(method, path, body) {
      const response = await fetch(base_url + path, {
        method,
        headers: { Authorization: `Bearer ${test_key}`, "Content-Type": "application/json" },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return { status: response.status, body: await response.json() };
    },
    async end(signal = "SIGTERM") {
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

function spawn(env: StartEnvironment, command: readonly string[]) {
  const child = new Deno.Command(Deno.execPath(), {
    args: [...command],
    cwd: PROJECT_DIR,
    env: { PORT: "0", DATABASE_URL: "", LOG: "", ...env },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  let output = "";
  const ready = Promise.withResolvers<null>();
  const read = async (stream: ReadableStream<Uint8Array<ArrayBuffer>>) => {
    for await (const text of stream.pipeThrough(new TextDecoderStream())) {
      output += text;
      if (output.includes(READY)) ready.resolve(null);
    }
  };
  const reading = Promise.all([read(child.stdout), read(child.stderr)]);
  const ended = (async (): Promise<EndedStart> => {
    const { code, signal } = await child.status;
    await reading;
    return { code, signal, output };
  })();
  return {
    pid: child.pid,
    ready: ready.promise,
    ended,
    output: () => output,
    kill: (signal: Deno.Signal) => child.kill(signal),
  };
}
