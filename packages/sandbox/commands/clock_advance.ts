/** `clock advance`: advances the clock of the sandbox, and shows what became due and was done. */

import type { ClockAdvance } from "../../client/mod.ts";
import { onlyArgument, UsageError } from "../command.ts";
import { parseDuration } from "../duration.ts";
import { count } from "../terminal_text.ts";
import { serviceCommand } from "./service_command.ts";

/** The bound of the API in seconds: 400 days. */
const MAX_ADVANCE_S = 34_560_000;

export const CLOCK_ADVANCE = serviceCommand({
  name: "clock advance",
  args: "DURATION",
  summary: "Advance the clock of the sandbox, and show what became due",
  examples: ["clock advance 7d", "clock advance 1h30m --json"],
  begin(_, args) {
    const duration = onlyArgument(args, "The duration is missing: 7d");
    const seconds = parseDuration(duration);
    if (seconds === null || seconds < 1 || seconds > MAX_ADVANCE_S) {
      throw new UsageError(
        `"${duration}" is not a duration from 1s to 400d: 7d, 12h, 90m, 1h30m`,
      );
    }
    return ({ sandbox }) => sandbox.setClock({ advance: seconds });
  },
  describe,
});

/** Two lines: the new time, and what was done. */
function describe({ now, mode, did }: ClockAdvance): string {
  const done = [
    count(did.deliveries, "webhook attempt"),
    count(did.expired_payments, "expired payment"),
    count(did.disputes_closed, "closed dispute"),
    count(did.purged, "purged row"),
  ];
  return `${now}  ${mode}\n  ${done.join(", ")}`;
}
