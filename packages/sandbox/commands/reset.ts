/** `reset`: deletes the data of the sandbox. */

import type { SandboxReset } from "../../client/mod.ts";
import { UsageError } from "../command.ts";
import { findService } from "../service_access.ts";
import { count } from "../terminal_text.ts";
import { serviceCommand } from "./service_command.ts";

/** The counts that the line shows. */
const NOUNS = ["payment", "refund", "transfer", "event"] as const;

export const RESET = serviceCommand({
  name: "reset",
  summary: "Delete all payments and transfers of the sandbox, and what belongs to them",
  options: {
    yes: { help: "really delete (required)" },
    endpoints: { help: "delete the webhook endpoints too" },
  },
  examples: ["reset --yes", "reset --yes --endpoints"],
  begin(values, _, surroundings) {
    const { base_url } = findService(values, surroundings);
    if (!values["yes"]) {
      throw new UsageError(
        `--yes is missing: a reset deletes every payment and transfer of the sandbox at ${base_url}`,
      );
    }
    return ({ sandbox }) => sandbox.reset({ webhook_endpoints: values["endpoints"] === true });
  },
  describe,
});

function describe({ deleted }: SandboxReset): string {
  const { webhook_endpoints } = deleted;
  const counts = NOUNS.map((noun) => count(deleted[`${noun}s`], noun));
  return `Deleted ${counts.join(", ")}, ${count(webhook_endpoints, "webhook endpoint")}`;
}
