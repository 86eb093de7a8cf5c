/** The commands that print one payment or checkout with all its fields. */

import type { PaymentsClient } from "../../client/mod.ts";
import { serviceCommand } from "./service_command.ts";

/** @param form the form of the id, such as `pay_…` */
function getCommand(
  noun: string,
  form: string,
  retrieve: (client: PaymentsClient, id: string) => Promise<unknown>,
) {
  const name = `${noun}s get`;
  return serviceCommand({
    name,
    id: form,
    summary: `Print a ${noun} with all its fields, as JSON`,
    examples: [`${name} ${form.replace("…", "1m7wvb3bsdsgqhzksxxwbk1970")}`],
    begin: (_, [id]) => (client) => retrieve(client, id!),
  });
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
