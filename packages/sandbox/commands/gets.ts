/** The commands that print one payment or checkout with all its fields. */

import { serviceCommand } from "./service_command.ts";

export const PAYMENTS_GET = serviceCommand({
  name: "payments get",
  id: "pay_…",
  summary: "Print a payment with all its fields, as JSON",
  examples: ["payments get pay_1m7wvb3bsdsgqhzksxxwbk1970"],
  begin: (_, [id]) => ({ payments }) => payments.retrieve(id!),
});

export const CHECKOUTS_GET = serviceCommand({
  name: "checkouts get",
  id: "chk_…",
  summary: "Print a checkout with all its fields, as JSON",
  examples: ["checkouts get chk_1m7wvb3bsdsgqhzksxxwbk1970"],
  begin: (_, [id]) => ({ checkouts }) => checkouts.retrieve(id!),
});
