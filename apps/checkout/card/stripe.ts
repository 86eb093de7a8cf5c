/**
 * The Payment Element of Stripe. Its frames take the card, so no script of this page can read the
 * number, and the service gets a token. Wallets are off.
 */

import type { CheckoutPrice } from "../../../shared/schema/checkout.ts";
import type { CheckoutPage } from "../../../shared/schema/checkout_page.ts";
import { toStripeAmount } from "../../../shared/connectors/stripe/stripe_amount.ts";

/** Stripe asks every page to load the script from here, and never a copy. */
const SCRIPT = "https://js.stripe.com/v3/";

interface Elements {
  create(type: "payment", options: object): { mount(place: HTMLElement): void };
  submit(): Promise<{ error?: { message?: string } }>;
  update(options: object): void;
}
interface Stripe {
  elements(options: object): Elements;
  createPaymentMethod(options: { elements: Elements }): Promise<
    { paymentMethod?: { id: string }; error?: { message?: string } }
  >;
}
type MakeStripe = (key: string, options?: { stripeAccount: string }) => Stripe;

export interface CardFields {
  stripe: Stripe;
  elements: Elements;
  setPrice(price: CheckoutPrice): void;
}

/** Loads Stripe's script, and shows its fields in a place. Rejects if Stripe cannot be reached. */
export async function mountFields(
  place: HTMLElement,
  { publishable_key, connected_account: account, merchant: { color } }: CheckoutPage,
  price: CheckoutPrice,
  language: string,
): Promise<CardFields> {
  const makeStripe = await loadStripe();
  const stripe = makeStripe(publishable_key!, account ? { stripeAccount: account } : undefined);
  const elements = stripe.elements({
    ...amountOf(price),
    mode: price.amount_minor === 0 ? "setup" : "payment",
    paymentMethodTypes: ["card"],
    paymentMethodCreation: "manual",
    locale: language.split("-")[0],
    appearance: {
      theme: matchMedia("(prefers-color-scheme: dark)").matches ? "night" : "stripe",
      ...(color !== null && { variables: { colorPrimary: color } }),
    },
  });
  const never = "never";
  elements.create("payment", { wallets: { applePay: never, googlePay: never, link: never } })
    .mount(place);
  return { stripe, elements, setPrice: (price) => elements.update(amountOf(price)) };
}

/** Returns the token of the card that the payer has typed, or what Stripe says against it. */
export async function makeToken(
  { stripe, elements }: CardFields,
): Promise<{ token: string } | { error: string }> {
  const checked = await elements.submit();
  if (checked.error) return { error: checked.error.message ?? "" };
  const { paymentMethod, error } = await stripe.createPaymentMethod({ elements });
  return paymentMethod ? { token: paymentMethod.id } : { error: error?.message ?? "" };
}

function amountOf({ amount_minor, currency }: CheckoutPrice) {
  const amount = toStripeAmount(amount_minor, currency);
  return { currency: currency.toLowerCase(), ...(amount_minor > 0 && { amount }) };
}

function loadStripe(): Promise<MakeStripe> {
  const script = document.createElement("script");
  script.src = SCRIPT;
  document.head.append(script);
  return new Promise((resolve, reject) => {
    script.onload = () => resolve((globalThis as unknown as { Stripe: MakeStripe }).Stripe);
    script.onerror = reject;
  });
}
