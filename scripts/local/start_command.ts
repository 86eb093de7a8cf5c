/** What `deno task start` runs, as arguments of deno: for whoever starts the product as a user does. */

import config from "../../deno.json" with { type: "json" };

/** Begins with `run`. */
export const START_COMMAND: readonly string[] = config.tasks.start.split(" ").slice(1);
