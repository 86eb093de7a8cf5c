/** `payments get`: prints a payment. */

import { type Command, EXIT, idArgument, JSON_OPTION, SERVICE_OPTIONS } from "../command.ts";
import { openClient } from "../service_access.ts";

export const PAYMENTS_GET: Command = {
  name: "payments get",
  args: "ID",
  summary: "Print a payment with all its fields, as JSON",
  options: { ...JSON_OPTION, ...SERVICE_OPTIONS },
  examples: ["payments get pay_1m7wvb3bsdsgqhzksxxwbk1970"],
  async run(values, args, surroundings) {
    const id = idArgument(args, "pay_…");
    const payment = await openClient(values, surroundings).payments.retrieve(id);
    surroundings.print(`${JSON.stringify(payment, null, 2)}\n`);
    return EXIT.success;
  },
};
