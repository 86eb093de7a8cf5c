/**
 * The published test values of the sandbox with their behaviour (interface §4, contract §2). Pure.
 */

import { normalizeIban } from "../../core/iban.ts";

/** The behaviour of a test value: it decides the answer of the sandbox provider. */
export type TestBehaviour =
  | "approve"
  | "decline"
  | "no_funds"
  | "authenticate"
  | "aml_block"
  | "expired"
  | "bank_return"
  | "revert";

/** Test cards, digits only. The service refuses any other number. */
export const TEST_CARDS: ReadonlyMap<string, TestBehaviour> = new Map([
  ["4242424242424242", "approve"],
  ["4000000000000002", "decline"],
  ["4000000000009995", "no_funds"],
  ["4000002500003155", "authenticate"],
  ["4100000000000019", "aml_block"],
  ["4000000000000069", "expired"],
  ["5555555555554444", "approve"],
  ["5200828282828210", "approve"],
  ["378282246310005", "approve"],
  ["6011111111111117", "approve"],
  // For tests of chargebacks: the payment completes, and an advance charges it back.
  ["4000000000000259", "approve"],
]);

/** Test IBANs in normal form, with their behaviour and rail. */
export const TEST_IBANS: ReadonlyMap<string, { behaviour: TestBehaviour; kind: "sepa" | "swift" }> =
  new Map([
    ["DE89370400440532013000", { behaviour: "approve", kind: "sepa" }],
    ["DE00000000000000000099", { behaviour: "bank_return", kind: "sepa" }],
    ["GB82WEST12345698765432", { behaviour: "approve", kind: "swift" }],
  ]);

/** Test wallets in lower case. They work on every network. */
export const TEST_WALLETS: ReadonlyMap<string, TestBehaviour> = new Map([
  ["0x000000000000000000000000000000000000dead", "approve"],
  ["0x0000000000000000000000000000000000000bad", "revert"],
]);

/** Returns behaviour and rail of a test IBAN, or undefined for any other IBAN. */
export function testIban(iban: string) {
  return TEST_IBANS.get(normalizeIban(iban));
}

/** Returns the behaviour of a test wallet, or undefined for any other address. */
export function testWallet(address: string): TestBehaviour | undefined {
  return TEST_WALLETS.get(address.replace(/\s/g, "").toLowerCase());
}
