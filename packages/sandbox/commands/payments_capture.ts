/** `payments capture`: takes the amount of an authorized payment. */

import {
  CHANGE_OPTIONS,
  type Command,
  EXIT,
  idArgument,
  JSON_OPTION,
  SERVICE_OPTIONS,
  wholeNumberOf,
} from "../command.ts";
import { printResult } from "../output.ts";
import { paymentText } from "../payment_text.ts";
import { openChange } from "../service_access.ts";

export const PAYMENTS_CAPTURE: Command = {
  name: "payments capture",
  args: "ID",
  summary: "Capture an authorized payment, whole or in part",
  options: {
    amount: { type: "string", value: "N", help: "in minor units; default: the whole amount" },
    ...CHANGE_OPTIONS,
    ...JSON_OPTION,
    ...SERVICE_OPTIONS,
  },
  examples: [
    "payments capture pay_1m7wvb3bsdsgqhzksxxwbk1970",
    "payments capture pay_1m7wvb3bsdsgqhzksxxwbk1970 --amount 500",
  ],
  async run(values, args, surroundings) {
    const id = idArgument(args, "pay_…");
    const amount = wholeNumberOf(values, "amount", 1);
    const { client, options } = openChange(values, surroundings);
    const payment = await client.payments.capture(id, { amount }, options);
    printResult(payment, paymentText, values, surroundings);
    return EXIT.success;
  },
};
