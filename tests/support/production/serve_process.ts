/** Runs `deno task serve` and `deno task migrate` as child processes, as an operator does. */

import config from "../../../deno.json" with { type: "json" };
import { SERVE_COMMAND } from "../../../packages/sandbox/start_command.ts";
import { type EndedCommand, launchCommand } from "../common/running_command.ts";

/** An instance that serves. */
export interface Instance {
  pid: number;
  base_url: string;
  output(): string;
  /** Sends a signal that does not end it. */
  send(signal: Deno.Signal): void;
  /** Sends the signal and waits for the end. A second call does nothing. */
  end(signal: Deno.Signal): Promise<EndedCommand>;
}

type Environment = Record<string, string>;

/** Launches an instance, of one process unless INSTANCES is set, and resolves when it serves. Throws if it ends before. */
export async function launchInstance(env: Environment): Promise<Instance> {
  const program = start(SERVE_COMMAND, env);
  const [, base_url] = await program.printed(/Serving (\S+)/);
  return {
    pid: program.pid,
    base_url: base_url!,
    output: program.output,
    send: program.kill,
    end: program.end,
  };
}

/** Runs an instance that refuses to serve until it ends. */
export async function runInstance(env: Environment): Promise<EndedCommand> {
  return await start(SERVE_COMMAND, env).ended;
}

/** Runs `deno task migrate` for a database. */
export async function runMigrate(env: Environment): Promise<EndedCommand> {
  return await start(config.tasks.migrate.split(" ").slice(1), env).ended;
}

const start = (command: readonly string[], env: Environment) =>
  launchCommand({
    args: [Deno.execPath(), ...command],
    env: { PORT: "0", INSTANCES: "1", DATABASE_URL: "", ...env },
  });
