/** `checkouts create`: makes a checkout or a link. */

import type { CheckoutFields, CheckoutMethod, CreateCheckoutInput } from "../../client/mod.ts";
import { checkoutText } from "../resource_text.ts";
import {
  amountOf,
  CHANGE_OPTIONS,
  customerOf,
  SALE_OPTIONS,
  textOf,
  UsageError,
  type Values,
} from "../command.ts";
import { serviceCommand } from "./service_command.ts";

export const CHECKOUTS_CREATE = serviceCommand({
  name: "checkouts create",
  summary: "Make a page on which a payer chooses how to pay, or a link for many payers",
  options: {
    ...SALE_OPTIONS,
    "other-prices": { value: "LIST", help: "such as 2199USD,21990000USDC" },
    link: { help: "any number of payers can pay it" },
    methods: { value: "LIST", help: "such as card,sepa; default: all that fit" },
    description: { value: "TEXT", help: "for the payer" },
    metadata: { value: "LIST", help: "your own data: shop=berlin,table=7" },
    save: { value: "USAGE", help: "offer to save: on_session or off_session" },
    locale: { value: "CODE", help: "language of the page, such as de" },
    "cancel-url": { value: "URL", help: "for a payer who gives up" },
    "expires-at": { value: "TIME", help: "by default in 24 hours" },
  },
  live: CHANGE_OPTIONS,
  examples: [
    "checkouts create --amount 1999",
    'checkouts create --amount 1500 --link --description "Donation"',
    "checkouts create --amount 1999 --methods card,sepa --reference order-7 --json",
  ],
  begin(values) {
    const input = readInput(values);
    return ({ checkouts }, options) => checkouts.create(input, options);
  },
  describe: checkoutText,
});

function readInput(values: Values): CreateCheckoutInput {
  const amount = amountOf(values);
  // The API checks every value and names the field at fault.
  const fields = {
    currency: textOf(values, "currency") ?? "EUR",
    other_prices: listOf(values, "other-prices")?.map(priceOf),
    methods: listOf(values, "methods") as CheckoutMethod[] | undefined,
    customer: customerOf(values) as CheckoutFields["customer"],
    description: textOf(values, "description"),
    reference: textOf(values, "reference"),
    metadata: metadataOf(values),
    capture: textOf(values, "capture") as CheckoutFields["capture"],
    save: textOf(values, "save") as CheckoutFields["save"],
    locale: textOf(values, "locale"),
    return_url: textOf(values, "return-url"),
    cancel_url: textOf(values, "cancel-url"),
    max_payments: values["link"] === true ? null : undefined,
    expires_at: textOf(values, "expires-at"),
  } satisfies Record<keyof CheckoutFields, unknown>;
  return { amount, ...fields };
}

function listOf(values: Values, name: string): string[] | undefined {
  return textOf(values, name)?.split(",").map((text) => text.trim());
}

function priceOf(text: string) {
  const [, amount, currency] = /^(\d+) *([A-Za-z]+)$/.exec(text) ?? [];
  if (amount !== undefined) return { amount_minor: Number(amount), currency: currency! };
  throw new UsageError(`--other-prices has "${text}": write minor units and a code, 2199USD`);
}

function metadataOf(values: Values): Record<string, string> | undefined {
  const pairs = listOf(values, "metadata")?.map((text) => {
    const [name, ...value] = text.split("=");
    if (name && value.length > 0) return [name, value.join("=")];
    throw new UsageError(`--metadata has "${text}": write name=value`);
  });
  return pairs && Object.fromEntries(pairs);
}
