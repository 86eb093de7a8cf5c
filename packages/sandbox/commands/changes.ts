/** The commands that change one payment or instrument. */

import type { PaymentsClient, RefundReason, RequestOptions } from "../../client/mod.ts";
import {
  CHANGE_OPTIONS,
  type Command,
  EXIT,
  idArgument,
  JSON_OPTION,
  type Option,
  SERVICE_OPTIONS,
  textOf,
  type Values,
  wholeNumberOf,
} from "../command.ts";
import { instrumentText } from "../instrument_text.ts";
import { printResult } from "../output.ts";
import { paymentText, refundText } from "../payment_text.ts";
import { openChange } from "../service_access.ts";

type Change<Result> = (client: PaymentsClient, options: RequestOptions) => Promise<Result>;

interface Changing<Result> extends Pick<Command, "name" | "summary" | "examples"> {
  /** The form of its argument, such as `pay_…`. */
  id: string;
  options?: Readonly<Record<string, Option>>;
  /** Reads the options. The API checks their values, and names the field at fault. */
  begin: (id: string, values: Values) => Change<Result>;
  describe: (result: Result) => string;
}

function changeCommand<Result extends { status: string }>(
  { id: form, options = {}, begin, describe, ...named }: Changing<Result>,
): Command {
  return {
    ...named,
    args: "ID",
    options: { ...options, ...CHANGE_OPTIONS, ...JSON_OPTION, ...SERVICE_OPTIONS },
    async run(values, args, surroundings) {
      const change = begin(idArgument(args, form), values);
      const { client, options } = openChange(values, surroundings);
      const result = await change(client, options);
      printResult(result, describe, values, surroundings);
      // A refund that the provider refuses is stored, and gives nothing back.
      return result.status === "failed" ? EXIT.failure : EXIT.success;
    },
  };
}

function amountOption(whole: string): Option {
  return { type: "string", value: "N", help: `in minor units; default: ${whole}` };
}

export const PAYMENTS_CAPTURE = changeCommand({
  name: "payments capture",
  summary: "Capture an authorized payment, whole or in part",
  id: "pay_…",
  options: { amount: amountOption("the whole amount") },
  examples: [
    "payments capture pay_1m7wvb3bsdsgqhzksxxwbk1970",
    "payments capture pay_1m7wvb3bsdsgqhzksxxwbk1970 --amount 500",
  ],
  begin(id, values) {
    const amount = wholeNumberOf(values, "amount", 1);
    return ({ payments }, options) => payments.capture(id, { amount }, options);
  },
  describe: paymentText,
});

const REFUND_REASONS = "duplicate, fraudulent, requested_by_customer or other";

export const PAYMENTS_REFUND = changeCommand({
  name: "payments refund",
  summary: "Refund a payment, whole or in part",
  id: "pay_…",
  options: {
    amount: amountOption("the rest of the payment"),
    reason: { type: "string", value: "REASON", help: REFUND_REASONS },
    destination: { type: "string", value: "ADDRESS", help: "the payer's wallet, for stablecoins" },
  },
  examples: [
    "payments refund pay_1m7wvb3bsdsgqhzksxxwbk1970",
    "payments refund pay_1m7wvb3bsdsgqhzksxxwbk1970 --amount 500 --reason requested_by_customer",
  ],
  begin(id, values) {
    const address = textOf(values, "destination");
    const input = {
      amount: wholeNumberOf(values, "amount", 1),
      reason: textOf(values, "reason") as RefundReason | undefined,
      destination: address === undefined ? undefined : { address },
    };
    return ({ payments }, options) => payments.refund(id, input, options);
  },
  describe: refundText,
});

export const PAYMENTS_CANCEL = changeCommand({
  name: "payments cancel",
  summary: "Cancel a payment whose money has not moved",
  id: "pay_…",
  examples: ["payments cancel pay_1m7wvb3bsdsgqhzksxxwbk1970"],
  begin: (id) => ({ payments }, options) => payments.cancel(id, options),
  describe: paymentText,
});

export const INSTRUMENTS_END = changeCommand({
  name: "instruments end",
  summary: "End a saved card or mandate: no later payment can use it",
  id: "ins_…",
  examples: ["instruments end ins_1m7wvb3bsdsgqhzksxxwbk1970"],
  begin: (id) => ({ instruments }, options) => instruments.end(id, options),
  describe: instrumentText,
});
