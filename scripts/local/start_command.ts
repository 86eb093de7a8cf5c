/**
 * The command of `deno task start`, read from deno.json. Tests and tools use it to start the
 * service in the same way as a user.
 */

import config from "../../deno.json" with { type: "json" };

/** The arguments of deno; the first one is `run`. */
export const START_COMMAND: readonly string[] = config.tasks.start.split(" ").slice(1);
