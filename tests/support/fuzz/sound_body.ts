/**
 * Generates bodies whose members fit together, which a schema cannot express: one amount, an
 * instrument of the method, and a currency of the method. The schema gives all other members.
 */

import fc from "fast-check";

// deno-lint-ignore no-explicit-any
type Json = any;

/** A method kind with some of its currencies and instruments. */
interface Rail {
  kind: "card" | "sepa" | "swift" | "stablecoin";
  currencies: string[];
  /** Members of a payment, or of the destination of a transfer. */
  instruments: Record<string, unknown>[];
}

const CARDS = [
  ...["4242 4242 4242 4242", "4000000000000002", "4000-0000-0000-9995", "4000002500003155"],
  ...["4100000000000019", "4000000000000259"],
].map((number) => ({ card: { number, exp_month: 12, exp_year: 2034, cvc: "123" } }));
const WALLETS = [
  "0x000000000000000000000000000000000000dEaD",
  "0x0000000000000000000000000000000000000BAD",
];
const RAILS: Rail[] = [
  { kind: "card", currencies: ["EUR", "usd", "JPY"], instruments: [...CARDS, {}] },
  {
    kind: "sepa",
    currencies: ["EUR"],
    instruments: [{ iban: "DE89370400440532013000" }, { iban: { iban: "DE00000000000000000099" } }],
  },
  {
    kind: "swift",
    currencies: ["EUR", "USD"],
    instruments: [{ iban: "GB82 WEST 1234 5698 7654 32" }],
  },
  {
    kind: "stablecoin",
    currencies: ["USDC", "usdt"],
    instruments: WALLETS.flatMap((address) => [{ wallet: address }, { wallet: { address } }]),
  },
];
/** The rails of transfers, in the currency of the balance that the fuzz test's sandbox has. */
const PAYOUT_RAILS = RAILS.slice(1, 3).map((rail) => ({ ...rail, currencies: ["EUR"] }));

/** Makes bodies that an operation should accept from bodies that its schema allows. */
export function soundBody(
  schema: string | undefined,
  mixed: fc.Arbitrary<Json>,
): fc.Arbitrary<Json> {
  switch (schema) {
    case "CreatePaymentBody":
      return fc.record({
        body: mixed,
        rail: railOf(RAILS),
        is_a: fc.boolean(),
        amount: fc.integer({ min: 1, max: 100_000 }),
        is_named: fc.boolean(),
      }).map(({ body, rail: { kind, currency, instrument }, is_a, amount, is_named }) => ({
        ...without(body, [
          ...["amount", "amount_minor", "capability", "method_kind", "card", "iban", "wallet"],
          ...["mandate", is_a ? "payer" : "customer", kind === "card" ? "settlement" : ""],
        ]),
        ...instrument,
        currency,
        [is_a ? "amount" : "amount_minor"]: amount,
        ...is_named && (is_a ? { capability: `${kind}_payment` } : { method_kind: kind }),
      }));
    case "CreateTransferBody":
      return fc.record({ body: mixed, rail: railOf(PAYOUT_RAILS), amount: fc.nat(50) })
        .map(({ body, rail: { currency, instrument }, amount }) => ({
          ...without(body, ["amount", "amount_minor", "speed"]),
          destination: instrument,
          currency,
          amount: 1 + amount,
        }));
    case "CreateRefundBody":
      return fc.record({ body: mixed, amount: fc.option(fc.integer({ min: 1, max: 5 })) })
        .map(({ body, amount }) => ({
          ...without(body, ["amount", "amount_minor", "destination", "speed"]),
          ...amount !== null && { amount },
        }));
    case "AdvancePaymentBody":
      return mixed.map((body) =>
        without(body, ["amount_received", "return_code", body.to === "chargeback" ? "" : "reason"])
      );
    case "RecoverDeliveriesBody":
      return mixed.map((body) => ({
        ...without(body, ["until", "starting_after"]),
        since: new Date(Date.now() - 60_000).toISOString(),
      }));
  }
  return mixed;
}

function railOf(rails: readonly Rail[]) {
  return fc.constantFrom(...rails).chain(({ kind, currencies, instruments }) =>
    fc.record({
      kind: fc.constant(kind),
      currency: fc.constantFrom(...currencies),
      instrument: fc.constantFrom(...instruments),
    })
  );
}

function without(body: Json, names: readonly string[]): Json {
  return Object.fromEntries(Object.entries(body).filter(([name]) => !names.includes(name)));
}
