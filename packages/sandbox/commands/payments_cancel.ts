/** `payments cancel`: cancels a payment whose money has not moved. */

import {
  CHANGE_OPTIONS,
  type Command,
  EXIT,
  idArgument,
  JSON_OPTION,
  SERVICE_OPTIONS,
} from "../command.ts";
import { printResult } from "../output.ts";
import { paymentText } from "../payment_text.ts";
import { openChange } from "../service_access.ts";

export const PAYMENTS_CANCEL: Command = {
  name: "payments cancel",
  args: "ID",
  summary: "Cancel a payment whose money has not moved",
  options: { ...CHANGE_OPTIONS, ...JSON_OPTION, ...SERVICE_OPTIONS },
  examples: ["payments cancel pay_1m7wvb3bsdsgqhzksxxwbk1970"],
  async run(values, args, surroundings) {
    const id = idArgument(args, "pay_…");
    const { client, options } = openChange(values, surroundings);
    const payment = await client.payments.cancel(id, options);
    printResult(payment, paymentText, values, surroundings);
    return EXIT.success;
  },
};
