/** `endpoints list`: prints a page of webhook endpoints, newest first. */

import type { WebhookEndpoint } from "../../client/mod.ts";
import { type Command, EXIT, JSON_OPTION, refuseArguments, SERVICE_OPTIONS } from "../command.ts";
import { PAGE_OPTIONS, pageOf, printPage } from "../output.ts";
import { openClient } from "../service_access.ts";

export const ENDPOINTS_LIST: Command = {
  name: "endpoints list",
  summary: "List webhook endpoints, newest first",
  options: { ...PAGE_OPTIONS, ...JSON_OPTION, ...SERVICE_OPTIONS },
  examples: ["endpoints list", "endpoints list --json"],
  async run(values, args, surroundings) {
    refuseArguments(args);
    const { webhookEndpoints } = openClient(values, surroundings);
    await printPage(webhookEndpoints.list(pageOf(values)), lineOf, values, surroundings);
    return EXIT.success;
  },
};

function lineOf({ id, status, failing, disabled_reason, url, events }: WebhookEndpoint): string {
  const condition = failing ? "failing" : disabled_reason;
  return [
    id,
    condition === null ? status : `${status} (${condition})`,
    url ?? "inbox",
    events.join(","),
  ].join("  ");
}
