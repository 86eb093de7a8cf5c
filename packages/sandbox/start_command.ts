/**
 * The commands of `deno task start` and `deno task serve`, read from deno.json. Tests and tools use
 * them to start the service in the same way as a user.
 */

import config from "../../deno.json" with { type: "json" };

/**
 * The arguments of deno; the first one is `run`. The commands also turn off the spans of Deno
 * itself (shared/core/tracing.ts).
 */
export const START_COMMAND: readonly string[] = argumentsOf(config.tasks.start);
export const SERVE_COMMAND: readonly string[] = argumentsOf(config.tasks.serve);

function argumentsOf(command: string): readonly string[] {
  const [, args] = command.split("deno ");
  return args!.split(" ");
}
