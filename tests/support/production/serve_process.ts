/** Runs `deno task serve` and `deno task migrate` as child processes, as an operator does. */

import { fileURLToPath } from "node:url";
import config from "../../../deno.json" with { type: "json" };
import { SERVE_COMMAND } from "../../../packages/sandbox/start_command.ts";

const PROJECT_DIR = fileURLToPath(new URL("../../..", import.meta.url));
/** The first words of the line that an instance prints when it serves. */
const READY = "Serving ";

/** A process that has ended. */
interface Ended {
  code: number;
  output: string;
}

/** An instance that serves. */
export interface Instance {
  base_url: string;
  output(): string;
  /** Sends a signal that does not end it. */
  send(signal: Deno.Signal): void;
  /** Sends the signal and waits for the end. A second call does nothing. */
  end(signal: Deno.Signal): Promise<Ended>;
}

type Environment = Record<string, string>;

/** Launches an instance and resolves when it serves. Throws if it ends before. */
export async function launchInstance(env: Environment): Promise<Instance> {
  const child = spawn(SERVE_COMMAND, env);
  const early = await Promise.race([child.ready, child.ended]);
  if (early) throw new Error(`The instance ended with ${early.code}:\n${early.output}`);
  return {
    base_url: /Serving (\S+)/.exec(child.output())![1]!,
    output: child.output,
    send: child.kill,
    end(signal) {
      child.kill(signal);
      return child.ended;
    },
  };
}

/** Runs an instance that refuses to serve until it ends. */
export async function runInstance(env: Environment): Promise<Ended> {
  return await spawn(SERVE_COMMAND, env).ended;
}

/** Runs `deno task migrate` for a database. */
export async function runMigrate(env: Environment): Promise<Ended> {
  return await spawn(config.tasks.migrate.split(" ").slice(1), env).ended;
}

function spawn(command: readonly string[], env: Environment) {
  const child = new Deno.Command(Deno.execPath(), {
    args: [...command],
    cwd: PROJECT_DIR,
    env: { PORT: "0", DATABASE_URL: "", ...env },
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
  let has_ended = false;
  const ended = (async (): Promise<Ended> => {
    const { code } = await child.status;
    has_ended = true;
    await reading;
    return { code, output };
  })();
  return {
    ready: ready.promise,
    ended,
    output: () => output,
    kill: (signal: Deno.Signal) => has_ended || child.kill(signal),
  };
}
