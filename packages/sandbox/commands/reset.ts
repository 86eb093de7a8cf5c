/** `reset`: deletes the data of the sandbox. */

import type { SandboxReset } from "../../client/mod.ts";
import {
  type Command,
  EXIT,
  JSON_OPTION,
  refuseArguments,
  SERVICE_OPTIONS,
  UsageError,
} from "../command.ts";
import { printResult } from "../output.ts";
import { findService, openClient } from "../service_access.ts";
import { count } from "../terminal_text.ts";

/** The counts that the line shows. */
const NOUNS = ["payment", "refund", "transfer", "event"] as const;

export const RESET: Command = {
  name: "reset",
  summary: "Delete all payments and transfers of the sandbox, and what belongs to them",
  options: {
    yes: { type: "boolean", help: "really delete (required)" },
    endpoints: { type: "boolean", help: "delete the webhook endpoints too" },
    ...JSON_OPTION,
    ...SERVICE_OPTIONS,
  },
  examples: ["reset --yes", "reset --yes --endpoints"],
  async run(values, args, surroundings) {
    refuseArguments(args);
    const { base_url } = findService(values, surroundings);
    if (!values["yes"]) {
      throw new UsageError(
        `--yes is missing: a reset deletes every payment and transfer of the sandbox at ${base_url}`,
      );
    }
    const { sandbox } = openClient(values, surroundings);
    const reset = await sandbox.reset({ webhook_endpoints: values["endpoints"] === true });
    printResult(reset, describe, values, surroundings);
    return EXIT.success;
  },
};

function describe({ deleted }: SandboxReset): string {
  const { webhook_endpoints } = deleted;
  const counts = NOUNS.map((noun) => count(deleted[`${noun}s`], noun));
  return `Deleted ${counts.join(", ")}, ${count(webhook_endpoints, "webhook endpoint")}`;
}
