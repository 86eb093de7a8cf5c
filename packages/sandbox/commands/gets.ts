/** The commands that print one payment or checkout with all its fields. */

import type { PaymentsClient } from "../../client/mod.ts";
import { type Command, EXIT, idArgument, JSON_OPTION, SERVICE_OPTIONS } from "../command.ts";
import { openClient } from "../service_access.ts";

/** @param form the form of the id, such as `pay_…` */
function getCommand(
  noun: string,
  form: string,
  retrieve: (client: PaymentsClient, id: string) => Promise<unknown>,
): Command {
  const name = `${noun}s get`;
  return {
    name,
    args: "ID",
    summary: `Print a ${noun} with all its fields, as JSON`,
    options: { ...JSON_OPTION, ...SERVICE_OPTIONS },
    examples: [`${name} ${form.replace("…", "1m7wvb3bsdsgqhzksxxwbk1970")}`],
    async run(values, args, surroundings) {
      const id = idArgument(args, form);
      const found = await retrieve(openClient(values, surroundings), id);
      surroundings.print(`${JSON.stringify(found, null, 2)}\n`);
      return EXIT.success;
    },
  };
}

export const PAYMENTS_GET = getCommand(
  "payment",
  "pay_…",
  ({ payments }, id) => payments.retrieve(id),
);

export const CHECKOUTS_GET = getCommand(
  "checkout",
  "chk_…",
  ({ checkouts }, id) => checkouts.retrieve(id),
);
