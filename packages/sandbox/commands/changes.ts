/** The commands that change one payment, instrument or checkout. */

import type {
  CheckoutMethod,
  PayCheckoutInput,
  PaymentsClient,
  RefundReason,
  RequestOptions,
} from "../../client/mod.ts";
import { checkoutText } from "../checkout_text.ts";
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
import { APPROVED_CARD, testCard } from "../test_card.ts";
import { openChange } from "../service_access.ts";

type Change<Result> = (client: PaymentsClient, options: RequestOptions) => Promise<Result>;

interface Changing<Result> extends Pick<Command, "name" | "summary" | "examples"> {
  /** The form of its argument, such as `pay_…`. */
  id: string;
  options?: Readonly<Record<string, Option>>;
  /** Reads the options. The API checks their values, and names the field at fault. */
  begin: (id: string, values: Values) => Change<Result>;
  describe: (result: Result) => string;
  /** Whether nothing was paid or given back, although the result is stored. */
  fails?: (result: Result) => boolean;
}

function changeCommand<Result extends { status: string }>(
  { id: form, options = {}, begin, describe, fails = hasFailed, ...named }: Changing<Result>,
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
      return fails(result) ? EXIT.failure : EXIT.success;
    },
  };
}

/** A refund that the provider refuses is stored, and gives nothing back. */
function hasFailed({ status }: { status: string }): boolean {
  return status === "failed";
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

/** Options that say how the payer pays. Without any of them it is the approved card. */
const WAYS = ["card", "iban", "instrument", "method", "currency"] as const;

export const CHECKOUTS_PAY = changeCommand({
  name: "checkouts pay",
  summary:
    "Pay a checkout as its payer does; by default with the test card that is always approved",
  id: "chk_…",
  options: {
    card: { type: "string", value: "NUMBER", help: "number of a test card" },
    iban: { type: "string", value: "IBAN", help: "collect from a bank account" },
    instrument: { type: "string", value: "ID", help: "pay with this saved one, ins_…" },
    method: { type: "string", value: "METHOD", help: "sepa, swift or stablecoin: the payer sends" },
    currency: { type: "string", value: "CODE", help: "pay the price in this currency" },
    save: { type: "boolean", help: "the payer lets you save the card or the account" },
    authenticate: { type: "string", value: "RESULT", help: "of 3-D Secure: success or failure" },
  },
  examples: [
    "checkouts pay chk_1m7wvb3bsdsgqhzksxxwbk1970",
    'checkouts pay chk_1m7wvb3bsdsgqhzksxxwbk1970 --card "4000 0000 0000 9995"',
    "checkouts pay chk_1m7wvb3bsdsgqhzksxxwbk1970 --method sepa --json",
  ],
  begin(id, values) {
    const [card, iban, instrument, method, currency] = WAYS.map((name) => textOf(values, name));
    const is_other = WAYS.some((name) => textOf(values, name) !== undefined);
    const number = card ?? (is_other && method !== "card" ? undefined : APPROVED_CARD);
    const input: PayCheckoutInput = {
      card: number === undefined ? undefined : testCard(number),
      iban,
      instrument,
      method: method as CheckoutMethod | undefined,
      currency,
      save: values["save"] === true ? true : undefined,
      authenticate: textOf(values, "authenticate") as PayCheckoutInput["authenticate"],
    };
    return ({ sandbox }, options) => sandbox.payCheckout(id, input, options);
  },
  describe: ({ payment, ...checkout }) => `${paymentText(payment)}\n${checkoutText(checkout)}`,
  fails: ({ payment }) => payment.status === "declined" || hasFailed(payment),
});

export const CHECKOUTS_CANCEL = changeCommand({
  name: "checkouts cancel",
  summary: "Cancel a checkout: nobody can pay it any more",
  id: "chk_…",
  examples: ["checkouts cancel chk_1m7wvb3bsdsgqhzksxxwbk1970"],
  begin: (id) => ({ checkouts }, options) => checkouts.cancel(id, options),
  describe: checkoutText,
});
