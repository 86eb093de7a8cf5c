/** Builds the body of a new checkout from the fields of its form. The API checks the rest. */

import type {
  CaptureMethod,
  CheckoutMethod,
  CreateCheckoutInput,
  InstrumentUsage,
} from "../../../packages/client/mod.ts";
import { timeOf } from "../data/times.ts";
import { amountOf, metadataOf, personOf, present } from "./create_body.ts";
import type { MetadataRows } from "./metadata_fields.tsx";

/** The first values of the form. An empty text is left out. */
export const FIRST_CHECKOUT = {
  kind: "one" as "one" | "link",
  amount: "19.99",
  currency: "EUR",
  other_prices: "",
  methods: [] as readonly CheckoutMethod[],
  description: "",
  reference: "",
  email: "",
  name: "",
  customer_id: "",
  return_url: "",
  cancel_url: "",
  expires_at: "",
  locale: "",
  capture: "automatic",
  save: "",
  metadata: [] as MetadataRows,
};

/**
 * Builds the body.
 * @param now_ms the present time of the sandbox
 * @throws {FieldError} if a text cannot become JSON of the right type
 */
export function checkoutBody(
  draft: typeof FIRST_CHECKOUT,
  now_ms: number,
): CreateCheckoutInput {
  const { methods, description, reference, return_url, cancel_url, locale, save } = draft;
  const person = personOf(draft);
  const prices = draft.other_prices.split("\n").filter((line) => line.trim() !== "");
  const end = draft.expires_at.trim();
  return {
    amount: amountOf(draft),
    currency: draft.currency.trim(),
    ...(prices.length > 0 && { other_prices: prices.map(priceOf) }),
    ...(methods.length > 0 && { methods: [...methods] }),
    ...(person && { customer: person }),
    ...present({ description, reference, return_url, cancel_url, locale }),
    ...(draft.capture !== "automatic" && { capture: draft.capture as CaptureMethod }),
    ...(save !== "" && { save: save as InstrumentUsage }),
    ...(draft.kind === "link" && { max_payments: null }),
    ...(end !== "" &&
      { expires_at: end.toLowerCase() === "never" ? null : timeOf("expires_at", end, now_ms) }),
    ...metadataOf(draft),
  };
}

/** Reads a line such as `22.00 USD`. */
function priceOf(line: string) {
  const [, amount, currency = ""] = /^(.*?)\s*([A-Za-z]*)$/.exec(line.trim())!;
  return {
    amount_minor: amountOf({ amount: amount!, currency }, "other_prices"),
    currency: currency.toUpperCase(),
  };
}
