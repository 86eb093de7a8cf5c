/** `instruments list`: prints a page of saved instruments, newest first. */

import type { InstrumentStatus, MethodKind } from "../../client/mod.ts";
import {
  type Command,
  EXIT,
  JSON_OPTION,
  refuseArguments,
  SERVICE_OPTIONS,
  textOf,
} from "../command.ts";
import { instrumentText } from "../instrument_text.ts";
import { PAGE_OPTIONS, pageOf, printPage } from "../output.ts";
import { openClient } from "../service_access.ts";

export const INSTRUMENTS_LIST: Command = {
  name: "instruments list",
  summary: "List saved cards and mandates, newest first",
  options: {
    customer: { type: "string", value: "ID", help: "only your own id of the customer" },
    status: { type: "string", value: "STATUS", help: "only this status, such as active" },
    "method-kind": { type: "string", value: "KIND", help: "only card or sepa" },
    ...PAGE_OPTIONS,
    ...JSON_OPTION,
    ...SERVICE_OPTIONS,
  },
  examples: ["instruments list --customer u1", "instruments list --status active --json"],
  async run(values, args, surroundings) {
    refuseArguments(args);
    const filters = {
      customer_id: textOf(values, "customer"),
      status: textOf(values, "status") as InstrumentStatus | undefined,
      method_kind: textOf(values, "method-kind") as MethodKind | undefined,
      ...pageOf(values),
    };
    const { instruments } = openClient(values, surroundings);
    await printPage(instruments.list(filters), instrumentText, values, surroundings);
    return EXIT.success;
  },
};
