/**
 * The published test values of the sandbox and what each does (interface §4, contract §2). Pure.
 */

import { normalizeIban } from "../../core/iban.ts";

/** What a test value makes a provider answer. */
export type TestBehaviour =
  | "approve"
  | "decline"
  | "no_funds"
  | "authenticate"
  | "aml_block"
  | "expired"
  | "bank_return"
  | "revert";

/** Test cards, digits only. Any other number is refused. */
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
  // Completes; there to be charged back by an advance.
  ["4000000000000259", "approve"],
]);

/** Test IBANs in normal form, with the rail that each one stands for. */
export const TEST_IBANS: ReadonlyMap<string, { behaviour: TestBehaviour; kind: "sepa" | "swift" }> =
  new Map([
    ["DE89370400440532013000", { behaviour: "approve", kind: "sepa" }],
    ["DE00000000000000000099", { behaviour: "bank_return", kind: "sepa" }],
    ["GB82WEST12345698765432", { behaviour: "approve", kind: "swift" }],
  ]);

/** Test wallets in lower case; they work on every network. */
export const TEST_WALLETS: ReadonlyMap<string, TestBehaviour> = new Map([
  ["0x000000000000000000000000000000000000dead", "approve"],
  ["0x0000000000000000000000000000000000000bad", "revert"],
]);

/** What a test IBAN does, or undefined for another one. */
export function testIban(iban: string) {
  return TEST_IBANS.get(normalizeIban(iban));
}

/** What a test wallet does, or undefined for another one. */
export function testWallet(address: string): TestBehaviour | undefined {
  return TEST_WALLETS.get(address.replace(/\s/g, "").toLowerCase());
}
