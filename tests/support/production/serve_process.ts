/** Runs `deno task serve` and `deno task migrate` as child processes, as an operator does. */

import config from "../../../deno.json" with { type: "json" };
import { SERVE_COMMAND } from "../../../packages/sandbox/start_command.ts";
import { type EndedCommand, launchCommand } from "../common/running_command.ts";

type Environment = Record<string, string>;
/** An instance that serves. */
export type Instance = Awaited<ReturnType<typeof launchInstance>>;

/**
 * Launches an instance, of one process unless INSTANCES is set, and resolves when it serves. Throws
 * if it ends before.
 */
export async function launchInstance(env: Environment) {
  const program = start(SERVE_COMMAND, env);
  const [, base_url = ""] = await program.printed(/Serving (\S+)/);
  /** `send` sends a signal that does not end it. */
  return { ...program, base_url, send: program.kill };
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
