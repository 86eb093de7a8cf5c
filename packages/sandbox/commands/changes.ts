/** The commands that change one payment, instrument or checkout. */

import type { CheckoutMethod, PayCheckoutInput, RefundReason } from "../../client/mod.ts";
import { CHANGE_OPTIONS, type Option, textOf, wholeNumberOf } from "../command.ts";
import { checkoutText, instrumentText, paymentText, refundText } from "../resource_text.ts";
import { APPROVED_CARD, testCard } from "../test_card.ts";
import { serviceCommand } from "./service_command.ts";

/** The members of a command that can change live data, and that a retry repeats. */
const CHANGE = { live: CHANGE_OPTIONS, fails: hasFailed };

/** A refund that the provider refuses is stored, and gives nothing back. */
function hasFailed({ status }: { status: string }): boolean {
  return status === "failed";
}

function amountOption(whole: string): Option {
  return { value: "N", help: `in minor units; default: ${whole}` };
}

export const PAYMENTS_CAPTURE = serviceCommand({
  ...CHANGE,
  name: "payments capture",
  summary: "Capture an authorized payment, whole or in part",
  id: "pay_…",
  options: { amount: amountOption("the whole amount") },
  examples: [
    "payments capture pay_1m7wvb3bsdsgqhzksxxwbk1970",
    "payments capture pay_1m7wvb3bsdsgqhzksxxwbk1970 --amount 500",
  ],
  begin(values, [id]) {
    const amount = wholeNumberOf(values, "amount", 1);
    return ({ payments }, options) => payments.capture(id!, { amount }, options);
  },
  describe: paymentText,
});

const REFUND_REASONS = "duplicate, fraudulent, requested_by_customer or other";

export const PAYMENTS_REFUND = serviceCommand({
  ...CHANGE,
  name: "payments refund",
  summary: "Refund a payment, whole or in part",
  id: "pay_…",
  options: {
    amount: amountOption("the rest of the payment"),
    reason: { value: "REASON", help: REFUND_REASONS },
    destination: { value: "ADDRESS", help: "the payer's wallet, for stablecoins" },
  },
  examples: [
    "payments refund pay_1m7wvb3bsdsgqhzksxxwbk1970",
    "payments refund pay_1m7wvb3bsdsgqhzksxxwbk1970 --amount 500 --reason requested_by_customer",
  ],
  begin(values, [id]) {
    const address = textOf(values, "destination");
    const input = {
      amount: wholeNumberOf(values, "amount", 1),
      reason: textOf(values, "reason") as RefundReason | undefined,
      destination: address === undefined ? undefined : { address },
    };
    return ({ payments }, options) => payments.refund(id!, input, options);
  },
  describe: refundText,
});

export const PAYMENTS_CANCEL = serviceCommand({
  ...CHANGE,
  name: "payments cancel",
  summary: "Cancel a payment whose money has not moved",
  id: "pay_…",
  examples: ["payments cancel pay_1m7wvb3bsdsgqhzksxxwbk1970"],
  begin: (_, [id]) => ({ payments }, options) => payments.cancel(id!, options),
  describe: paymentText,
});

export const INSTRUMENTS_END = serviceCommand({
  ...CHANGE,
  name: "instruments end",
  summary: "End a saved card or mandate: no later payment can use it",
  id: "ins_…",
  examples: ["instruments end ins_1m7wvb3bsdsgqhzksxxwbk1970"],
  begin: (_, [id]) => ({ instruments }, options) => instruments.end(id!, options),
  describe: instrumentText,
});

/** Options that say how the payer pays. Without any of them it is the approved card. */
const WAYS = ["card", "iban", "instrument", "method", "currency"] as const;

export const CHECKOUTS_PAY = serviceCommand({
  ...CHANGE,
  name: "checkouts pay",
  summary:
    "Pay a checkout as its payer does; by default with the test card that is always approved",
  id: "chk_…",
  options: {
    card: { value: "NUMBER", help: "number of a test card" },
    iban: { value: "IBAN", help: "collect from a bank account" },
    instrument: { value: "ID", help: "pay with this saved one, ins_…" },
    method: { value: "METHOD", help: "sepa, swift or stablecoin: the payer sends" },
    currency: { value: "CODE", help: "pay the price in this currency" },
    save: { help: "the payer lets you save the card or the account" },
    authenticate: { value: "RESULT", help: "of 3-D Secure: success or failure" },
  },
  examples: [
    "checkouts pay chk_1m7wvb3bsdsgqhzksxxwbk1970",
    'checkouts pay chk_1m7wvb3bsdsgqhzksxxwbk1970 --card "4000 0000 0000 9995"',
    "checkouts pay chk_1m7wvb3bsdsgqhzksxxwbk1970 --method sepa --json",
  ],
  begin(values, [id]) {
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
    return ({ sandbox }, options) => sandbox.payCheckout(id!, input, options);
  },
  describe: ({ payment, ...checkout }) => `${paymentText(payment)}\n${checkoutText(checkout)}`,
  fails: ({ payment }) => payment.status === "declined" || hasFailed(payment),
});

export const CHECKOUTS_CANCEL = serviceCommand({
  ...CHANGE,
  name: "checkouts cancel",
  summary: "Cancel a checkout: nobody can pay it any more",
  id: "chk_…",
  examples: ["checkouts cancel chk_1m7wvb3bsdsgqhzksxxwbk1970"],
  begin: (_, [id]) => ({ checkouts }, options) => checkouts.cancel(id!, options),
  describe: checkoutText,
});
