/** The bodies and the query of requests on checkouts (contract §2). */

import * as z from "zod";
import { methodsFor } from "../core/checkout_methods.ts";
import { CHECKOUT_METHODS, CHECKOUT_STATUSES } from "../core/vocabulary.ts";
import { IbanInput } from "./bank_account.ts";
import { MAX_OTHER_PRICES, MAX_REFERENCE } from "./limits.ts";
import { page } from "./list.ts";
import {
  AuthenticatePaymentBody,
  CaptureMethod,
  CardInput,
  CreatePaymentBody,
  InstrumentUsage,
  ReturnUrl,
  wholePerson,
} from "./payment_body.ts";
import { mustBe } from "./requirement.ts";
import { rule, type RuleContext } from "./rule.ts";
import {
  AmountMinor,
  amountOf,
  Currency,
  CustomerId,
  Description,
  id,
  Metadata,
  PersonInput,
  requiredAmount,
  sameAmount,
  Time,
} from "./values.ts";

export const CheckoutStatus = z.enum(CHECKOUT_STATUSES).describe(
  "Status of a checkout. Only an `open` one takes attempts",
);
export type CheckoutStatus = z.infer<typeof CheckoutStatus>;

export const CheckoutMethod = z.enum(CHECKOUT_METHODS).describe(
  "A way to pay: `card`; `sepa_debit` collects from the payer's `iban`; by `sepa`, `swift` and " +
    "`stablecoin` the payer sends the money",
);

export const PriceInput = z.object({ amount_minor: AmountMinor, currency: Currency })
  .describe("A price in another currency");

export const MaxPayments = mustBe(
  z.literal(1).nullable().describe(
    "1; null: a link, which any number of payers can pay until it expires or you cancel it",
  ),
  "1, or null for a link",
);

const { amount, amount_minor } = CreatePaymentBody.shape;

const CheckoutFields = z.object({
  amount,
  amount_minor,
  currency: Currency,
  other_prices: mustBe(
    z.array(PriceInput).max(MAX_OTHER_PRICES).optional().describe(
      `At most ${MAX_OTHER_PRICES} prices in other currencies, which are your own: nothing is ` +
        "exchanged. Stablecoins are offered only for a price in their currency",
    ),
    `a list of at most ${MAX_OTHER_PRICES} prices`,
  ),
  methods: mustBe(
    z.array(CheckoutMethod).min(1).max(CHECKOUT_METHODS.length).optional().describe(
      "The methods that the payer can choose. By default all that take one of the currencies, " +
        "with a live key those for which the operator has configured a provider",
    ),
    `a list of 1 to ${CHECKOUT_METHODS.length} methods`,
  ),
  customer: PersonInput.optional(),
  description: Description.optional(),
  reference: z.string().min(1).max(MAX_REFERENCE).optional()
    .describe("Your own number of the order or invoice. Each payment of the checkout has it too"),
  metadata: Metadata.optional(),
  capture: CaptureMethod.optional().describe("Of attempts by card. Other methods have no capture"),
  save: InstrumentUsage.optional().describe(
    "The usage of an instrument that the payer lets you save. Needs `customer.id`",
  ),
  locale: mustBe(
    z.string().regex(/^[a-z]{2}$/).optional().describe("Language of the page: ISO 639-1"),
    'a language of two letters, such as "de"',
  ),
  return_url: ReturnUrl.optional(),
  cancel_url: ReturnUrl.optional().describe("The page of your shop for a payer who gives up"),
  max_payments: MaxPayments.optional(),
  expires_at: mustBe(
    Time.nullable().optional().describe(
      "The end of new attempts, at most 30 days ahead. By default 24 hours after the creation. " +
        "Null only for a link; one of a sandbox then expires 30 days after its creation or its " +
        "last payment",
    ),
    "a date and time with its time zone, such as 2026-01-31T09:00:00Z, or null for a link",
  ),
});

export const CreateCheckoutBody = CheckoutFields.check(rule(sameAmount))
  .check(rule(requiredAmount)).check(rule(wholePerson)).check(rule(agreeingMembers))
  .describe("A checkout. An amount of 0 with `save` only saves an instrument");
export type CreateCheckoutBody = z.infer<typeof CreateCheckoutBody>;

/** Refuses members that do not go together. */
function agreeingMembers(
  body: z.output<typeof CheckoutFields>,
  context: RuleContext,
): void {
  const refuse = (path: (string | number)[], message: string) =>
    context.addIssue({ code: "custom", path, message });
  const sum = amountOf(body);
  const { save, other_prices = [], methods } = body;
  if (sum === 0 && save === undefined) {
    refuse(
      [body.amount === 0 ? "amount" : "amount_minor"],
      'of 0 is only for a checkout with "save"',
    );
  }
  if (save !== undefined && body.customer?.id === undefined) {
    refuse(["customer", "id"], 'is required with "save": send your own id of the customer');
  }
  if (sum === 0 && other_prices.length > 0) {
    refuse(["other_prices"], "cannot be sent with an amount of 0: leave it out");
  }
  const prices = [{ amount_minor: sum ?? 1, currency: body.currency }, ...other_prices];
  const currencies = prices.map(({ currency }) => currency);
  const twice = currencies.findIndex((currency, i) => currencies.indexOf(currency) < i);
  if (twice > 0) {
    refuse(
      ["other_prices", twice - 1, "currency"],
      "has a price already: send one for each currency",
    );
  }
  const taken = new Set(prices.flatMap((price) => methodsFor(price.currency, price.amount_minor)));
  methods?.forEach((method, i) => {
    if (!taken.has(method)) refuse(["methods", i], "takes none of the prices: leave it out");
    else if (methods.indexOf(method) < i) refuse(["methods", i], "is there twice: send it once");
  });
  if (taken.size === 0) refuse(["currency"], "has no method that saves an instrument");
  if (body.expires_at === null && body.max_payments !== null) {
    refuse(["expires_at"], 'can be null only for a link, which has "max_payments": null');
  }
}

/** The members with which a payer pays. */
export const PAYER = {
  card: CardInput.optional(),
  iban: IbanInput.optional().describe("Collects from this account, under a mandate of today"),
  method: CheckoutMethod.optional().describe("By default that of `card`, `iban` or `currency`"),
  currency: Currency.optional().describe("One of the prices. By default the first of the method"),
  save: mustBe(
    z.literal(true).optional().describe(
      "The payer lets you save the card or the account, for the `save` of the checkout",
    ),
    "true, or absent",
  ),
};

export const PayCheckoutBody = z.object({
  ...PAYER,
  instrument: id("ins_").optional().describe(
    "A saved instrument of the customer. Needs the scope `instruments:use`",
  ),
  authenticate: AuthenticatePaymentBody.shape.result.unwrap().optional().describe(
    "The result of 3-D Secure, if the payment asks for it. Without it the payment waits",
  ),
}).describe("The choices of a payer on the page");
export type PayCheckoutBody = z.infer<typeof PayCheckoutBody>;

/** The query of `GET /v1/checkouts`. */
export const ListCheckoutsQuery = z.object({
  ...page("chk_"),
  status: CheckoutStatus.optional().describe("Only checkouts in this status"),
  reference: z.string().min(1).max(MAX_REFERENCE).optional()
    .describe("Only checkouts with this reference"),
  customer_id: CustomerId.optional().describe("Only checkouts of this customer"),
});
