/** `payments create`: makes a payment. */

import {
  ApiError,
  type CaptureMethod,
  type CreatePaymentInput,
  type InstrumentUsage,
  type Outcome,
} from "../../client/mod.ts";
import type { CreatePaymentBody } from "../../../shared/schema/payment_body.ts";
import {
  amountOf,
  CHANGE_OPTIONS,
  customerOf,
  SALE_OPTIONS,
  textOf,
  type Values,
} from "../command.ts";
import { paymentText } from "../resource_text.ts";
import { APPROVED_CARD, testCard } from "../test_card.ts";
import { serviceCommand } from "./service_command.ts";

/** Options that say how the payer pays. Without any of them it is the approved card. */
const METHODS = ["card", "iban", "wallet", "instrument", "outcome"] as const;

/** The fields of a create without an option. */
type WithoutOption =
  | ("amount_minor" | "capability" | "method_kind" | "payer")
  | ("description" | "metadata" | "settlement");

export const PAYMENTS_CREATE = serviceCommand({
  name: "payments create",
  summary: "Make a payment; by default with the test card that is always approved",
  options: {
    ...SALE_OPTIONS,
    card: { value: "NUMBER", help: "number of a test card" },
    iban: { value: "IBAN", help: "pay from a bank account" },
    wallet: { value: "ADDRESS", help: "pay from a wallet" },
    instrument: { value: "ID", help: "pay with this saved one, ins_…" },
    "off-session": { help: "the payer of --instrument is not present" },
    save: { value: "USAGE", help: "save it: on_session or off_session" },
    "mandate-signed-at": { value: "DATE", help: "of the mandate to --save --iban" },
    outcome: { value: "OUTCOME", help: "force success, declined, pending, refunded or chargeback" },
  },
  live: CHANGE_OPTIONS,
  examples: [
    "payments create --amount 1999",
    'payments create --amount 1999 --card "4000 0000 0000 9995"',
    "payments create --amount 4200 --currency USD --outcome refunded --json",
    "payments create --amount 1999 --save off_session --customer-id u1 --email ada@example.com",
    "payments create --amount 1999 --instrument ins_1m7wvb3bsdsgqhzksxxwbk1970 --off-session",
  ],
  begin(values, _, { print }) {
    const input = readInput(values);
    return async ({ payments }, options) => {
      try {
        return await payments.create(input, options);
      } catch (error) {
        // A declined payment is stored, so its id is part of the output. The error follows.
        if (error instanceof ApiError && error.payment !== undefined && !values["json"]) {
          print(`${paymentText(error.payment)}\n`);
        }
        throw error;
      }
    };
  },
  describe: paymentText,
  // The bank has returned it, or the chain has reverted it: nothing was paid.
  fails: ({ status }) => status === "failed",
});

function readInput(values: Values): CreatePaymentInput {
  const amount = amountOf(values);
  const [card, iban, wallet, instrument, outcome] = METHODS.map((name) => textOf(values, name));
  const signed_at = textOf(values, "mandate-signed-at");
  const is_other = METHODS.some((name) => textOf(values, name) !== undefined);
  const number = card ?? (is_other ? undefined : APPROVED_CARD);
  // The API checks every value and names the field at fault.
  return {
    amount,
    currency: textOf(values, "currency") ?? "EUR",
    card: number === undefined ? undefined : testCard(number),
    iban,
    wallet,
    instrument,
    off_session: values["off-session"] === true ? true : undefined,
    save: textOf(values, "save") as InstrumentUsage | undefined,
    mandate: signed_at === undefined ? undefined : { signed_at },
    outcome: outcome as Outcome | undefined,
    capture: textOf(values, "capture") as CaptureMethod | undefined,
    customer: customerOf(values) as CreatePaymentInput["customer"],
    reference: textOf(values, "reference"),
    return_url: textOf(values, "return-url"),
  } satisfies Record<Exclude<keyof CreatePaymentBody, WithoutOption>, unknown>;
}
