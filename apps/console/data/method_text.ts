/** Names the card, bank account or wallet of a payment or a transfer: "Visa ···· 4242". */

import type { Instrument, Payment, TransferDestination } from "../../../packages/client/mod.ts";
import { RAILS } from "../../../shared/domain/rails.ts";

const BRANDS: Readonly<Record<string, string>> = {
  visa: "Visa",
  mastercard: "Mastercard",
  amex: "Amex",
  discover: "Discover",
};

function cardText({ brand, last4 }: { brand: string; last4: string }): string {
  return `${BRANDS[brand] ?? brand} ···· ${last4}`;
}

export function methodText({ method, method_kind }: Payment | Instrument): string {
  if (method === null) return RAILS[method_kind].name;
  switch (method.type) {
    case "card":
      return cardText(method.card);
    case "stablecoin":
      return `${method.wallet.asset} ···· ${method.wallet.address.slice(-4)}`;
    case "sepa":
    case "swift":
      return `${RAILS[method.type].name} ${method.iban.country} ···· ${method.iban.last4}`;
    default:
      return method satisfies never;
  }
}

export function destinationText(destination: TransferDestination): string {
  if (destination.type === "iban") {
    const { country, last4 } = destination.iban;
    return `IBAN ${country} ···· ${last4}`;
  }
  const { asset, address } = destination.wallet;
  return `${asset} ···· ${address.slice(-4)}`;
}
