/** `payments refund`: gives a part of a payment back, or the rest of it. */

import type { RefundReason } from "../../client/mod.ts";
import {
  CHANGE_OPTIONS,
  type Command,
  EXIT,
  idArgument,
  JSON_OPTION,
  SERVICE_OPTIONS,
  textOf,
  wholeNumberOf,
} from "../command.ts";
import { printResult } from "../output.ts";
import { refundText } from "../payment_text.ts";
import { openChange } from "../service_access.ts";

export const PAYMENTS_REFUND: Command = {
  name: "payments refund",
  args: "ID",
  summary: "Refund a payment, whole or in part",
  options: {
    amount: {
      type: "string",
      value: "N",
      help: "in minor units; default: the rest of the payment",
    },
    reason: {
      type: "string",
      value: "REASON",
      help: "duplicate, fraudulent, requested_by_customer or other",
    },
    destination: { type: "string", value: "ADDRESS", help: "the payer's wallet, for stablecoins" },
    ...CHANGE_OPTIONS,
    ...JSON_OPTION,
    ...SERVICE_OPTIONS,
  },
  examples: [
    "payments refund pay_1m7wvb3bsdsgqhzksxxwbk1970",
    "payments refund pay_1m7wvb3bsdsgqhzksxxwbk1970 --amount 500 --reason requested_by_customer",
  ],
  async run(values, args, surroundings) {
    const id = idArgument(args, "pay_…");
    const address = textOf(values, "destination");
    // The API checks the reason and the address, and names the field at fault.
    const input = {
      amount: wholeNumberOf(values, "amount", 1),
      reason: textOf(values, "reason") as RefundReason | undefined,
      destination: address === undefined ? undefined : { address },
    };
    const { client, options } = openChange(values, surroundings);
    const refund = await client.payments.refund(id, input, options);
    printResult(refund, refundText, values, surroundings);
    // A refund that the provider refuses is stored, and gives nothing back.
    return refund.status === "failed" ? EXIT.failure : EXIT.success;
  },
};
