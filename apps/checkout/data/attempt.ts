/**
 * Checks what a payer has typed, and makes the body of an attempt. A card number that is no
 * published test card stays in the page.
 */

import { isInEea } from "../../../shared/core/bank_countries.ts";
import {
  cardBrand,
  containsCardNumber,
  normalizeCardNumber,
} from "../../../shared/core/card_number.ts";
import { type CheckoutMethod, methodsFor } from "../../../shared/core/checkout_methods.ts";
import { isValidIban, normalizeIban } from "../../../shared/core/iban.ts";
import { testCard, testIban } from "../../../shared/domain/providers/test_values.ts";
import type { CheckoutPrice } from "../../../shared/schema/checkout.ts";
import type { CheckoutPage, PayPageBody } from "../../../shared/schema/checkout_page.ts";
import type { Key } from "./words.ts";

type Values = Readonly<Record<string, string>>;

/** The choice of a payer: a method, and the text of each field by its name. */
interface Choice {
  method: CheckoutMethod;
  currency: string;
  values: Values;
}

/** Returns the body of the attempt, or an error for each field that needs another value. */
export function attemptOf(
  page: CheckoutPage,
  { method, currency, values }: Choice,
): { body: PayPageBody } | { faults: Record<string, Key> } {
  const faults: Record<string, Key> = {
    ...(method === "card" && cardFaults(values, page.now)),
    ...(method === "sepa_debit" && accountFaults(values)),
    ...(page.amount_minor === 0 && values["save"] !== "yes" && { save: "error_consent" as const }),
  };
  if (Object.keys(faults).length > 0) return { faults };
  return {
    body: {
      ...(method === "card" && { card: cardOf(values) }),
      ...(method === "sepa_debit" && { iban: accountOf(values) }),
      method,
      currency,
      ...(values["save"] === "yes" && savesBy(page, method) && { save: true as const }),
    },
  };
}

/** The prices among which a payer can choose by a method. */
export function pricesFor(
  { amount_minor, currency, other_prices }: CheckoutPage,
  method: CheckoutMethod,
): CheckoutPrice[] {
  return [{ amount_minor, currency }, ...other_prices].filter((price) =>
    methodsFor(price.currency, price.amount_minor).includes(method)
  );
}

/** Whether a method can be saved and the merchant has asked for it. */
export function savesBy({ save }: CheckoutPage, method: CheckoutMethod): boolean {
  return save !== null && (method === "card" || method === "sepa_debit");
}

function cardFaults(values: Values, now: string): Record<string, Key> {
  const number = normalizeCardNumber(values["card_number"] ?? "");
  const { month, year } = expiryOf(values);
  const is_over = Date.UTC(year, month) <= Date.parse(now);
  const digits = cardBrand(number) === "amex" ? 4 : 3;
  const cvc = (values["cvc"] ?? "").trim();
  return {
    ...(number === "" && { card_number: "error_number" as const }),
    ...(number !== "" && !testCard(number) && { card_number: "error_test_number" as const }),
    ...(month === 0 && { expiry: "error_expiry" as const }),
    ...(month > 0 && is_over && { expiry: "error_expired" as const }),
    ...(!(/^\d+$/.test(cvc) && cvc.length === digits) && { cvc: "error_cvc" as const }),
  };
}

/** Reads `08 / 29` and `8/2029`. The month is 0 if the text is no date. */
function expiryOf(values: Values): { month: number; year: number } {
  const [, month, year] = /^(0?[1-9]|1[0-2])[ /.-]*(\d{2}|20\d{2})$/
    .exec((values["expiry"] ?? "").trim()) ?? [];
  return { month: Number(month ?? 0), year: 2000 + Number(year?.slice(-2) ?? 0) };
}

function cardOf(values: Values) {
  const { month, year } = expiryOf(values);
  const [number, cvc] = [normalizeCardNumber(values["card_number"]!), values["cvc"]!.trim()];
  return { number, exp_month: month, exp_year: year, cvc };
}

function accountFaults(values: Values): Record<string, Key> {
  const iban = normalizeIban(values["iban"] ?? "");
  const texts = needsAddress(values["iban"] ?? "")
    ? (["holder", "street", "postal_code", "city"] as const)
    : (["holder"] as const);
  return {
    ...(!isValidIban(iban) && !testIban(iban) && { iban: "error_iban" as const }),
    ...Object.fromEntries(texts.flatMap((name): [string, Key][] => {
      const text = values[name]?.trim() ?? "";
      if (text === "") return [[name, `error_${name}`]];
      return containsCardNumber(text) ? [[name, "error_card_in_text"]] : [];
    })),
    ...(values["mandate"] !== "yes" && { mandate: "error_mandate" as const }),
  };
}

/** Whether banks need the address of the holder of an account: outside the EEA. */
export function needsAddress(typed: string): boolean {
  const iban = normalizeIban(typed);
  return isValidIban(iban) && !isInEea(iban.slice(0, 2));
}

function accountOf(values: Values) {
  const iban = normalizeIban(values["iban"]!);
  const text = (name: string) => values[name]!.trim();
  return {
    iban,
    holder_name: text("holder"),
    ...(needsAddress(iban) && {
      address: {
        line1: text("street"),
        postal_code: text("postal_code"),
        city: text("city"),
        country: iban.slice(0, 2),
      },
    }),
  };
}

/** The fields of the page for the fields of the body that the API names in errors. */
const FIELDS: readonly [param: string, name: string, fault: Key][] = [
  ["card.exp", "expiry", "error_expired"],
  ["card.cvc", "cvc", "error_cvc"],
  ["card", "card_number", "error_refused"],
  ["iban.holder_name", "holder", "error_refused"],
  ["iban.address", "street", "error_refused"],
  ["iban", "iban", "error_iban"],
  ["save", "save", "error_consent"],
];

/** Returns the error at the field of the `param` of a refusal; none: the page has no such field. */
export function faultsOf(param: string | null): Record<string, Key> {
  const found = FIELDS.find(([start]) => param?.startsWith(start));
  return found ? { [found[1]]: found[2] } : {};
}
