/**
 * The published test values of the sandbox and the result of each (contract §2). The
 * console offers these values, and `deno task generate` writes them into docs/errors.md. Pure.
 */

import type { BankRail } from "../../core/bank_schemes.ts";
import { normalizeCardNumber } from "../../core/card_number.ts";
import type { DeclineCode } from "../../core/errors.ts";
import { normalizeIban } from "../../core/iban.ts";
import type { DisputeReason } from "../../schema/statuses.ts";
import type { FailureCode, ShownCard } from "../../schema/payment.ts";
import type { InstrumentUsage } from "../../schema/payment_body.ts";
import type { OUTCOMES } from "../../core/vocabulary.ts";

export const TEST_RESULTS = {
  approve: { result: "completed" },
  authenticate: { result: "requires_action" },
  decline: { result: "declined", code: "payment_declined" },
  no_funds: { result: "declined", code: "insufficient_funds" },
  aml_block: { result: "declined", code: "aml_blocked" },
  /** The service refuses the request with an error for this field, and stores no payment. */
  expired: { result: "refused", param: "card.exp_year" },
  bank_return: { result: "failed", code: "bank_return", return_code: "R01" },
  revert: { result: "failed", code: "onchain_reverted" },
  /** Completes where the payer is not present, if it was saved for that. */
  authenticate_always: { result: "requires_action" },
  /** Completes if the card itself is sent. */
  decline_saved: { result: "completed" },
  /** Returns of collections. Elsewhere these IBANs are approved. */
  revoked: { result: "failed", code: "bank_return", return_code: "MD01" },
  account_closed: { result: "failed", code: "bank_return", return_code: "AC04" },
  no_cover: { result: "failed", code: "bank_return", return_code: "AM04" },
  return_later: { result: "returned", return_code: "MS03" },
  /** The response of the provider is late: the payment completes by itself after 2 seconds. */
  late: { result: "processing" },
  /** The payment completes, and the payer disputes it at once. */
  dispute: { result: "chargeback", reason: "fraudulent" },
} as const;

/** The results of cards that are saved, where they differ: with the payer present, and without. */
export const SAVED_RESULTS: Readonly<
  Partial<Record<TestBehaviour, Partial<Record<InstrumentUsage, SimulatedResult>>>>
> = {
  authenticate: { off_session: { result: "completed" } },
  authenticate_always: { off_session: { result: "declined", code: "authentication_required" } },
  decline_saved: {
    on_session: { result: "declined", code: "payment_declined" },
    off_session: { result: "declined", code: "payment_declined" },
  },
};

/** The behaviours that only a collection under a mandate has. */
export const OF_COLLECTIONS: ReadonlySet<TestBehaviour | null> = new Set([
  "revoked",
  "account_closed",
  "no_cover",
  "return_later",
]);

export const OUTCOME_RESULTS = {
  success: { result: "completed" },
  declined: { result: "declined", code: "payment_declined" },
  pending: { result: "pending" },
  refunded: { result: "refunded" },
  chargeback: { result: "chargeback" },
} as const satisfies Record<typeof OUTCOMES[number], { result: string; code?: DeclineCode }>;

export type SimulatedResult =
  | { result: "completed" | "refunded" | "pending" | "processing" | "requires_action" }
  | { result: "chargeback"; reason?: DisputeReason }
  /** Completed, and returned later. */
  | { result: "returned"; return_code: string }
  | { result: "declined"; code: DeclineCode }
  | { result: "failed"; code: FailureCode; return_code?: string };

export type TestBehaviour = keyof typeof TEST_RESULTS;

/** A test value, written as people read it. */
export interface TestValue {
  value: string;
  /** A few words for the tile of the console. */
  name: string;
  behaviour: TestBehaviour;
}

interface TestIban extends TestValue {
  kind: BankRail;
}

/** Test cards. The sandbox refuses every other number. */
export const TEST_CARDS: readonly TestValue[] = [
  { value: "4242 4242 4242 4242", name: "Approved", behaviour: "approve" },
  { value: "4000 0000 0000 0002", name: "Declined by the issuer", behaviour: "decline" },
  { value: "4000 0000 0000 9995", name: "Insufficient funds", behaviour: "no_funds" },
  { value: "4000 0025 0000 3155", name: "3-D Secure", behaviour: "authenticate" },
  { value: "4000 0027 6000 3184", name: "3-D Secure every time", behaviour: "authenticate_always" },
  { value: "4100 0000 0000 0019", name: "Fraud or AML block", behaviour: "aml_block" },
  { value: "4000 0000 0000 0069", name: "Expired card", behaviour: "expired" },
  { value: "5555 5555 5555 4444", name: "Mastercard", behaviour: "approve" },
  { value: "5200 8282 8282 8210", name: "Mastercard debit", behaviour: "approve" },
  { value: "3782 822463 10005", name: "American Express", behaviour: "approve" },
  { value: "6011 1111 1111 1117", name: "Discover", behaviour: "approve" },
  { value: "4000 0000 0000 0259", name: "Disputed at once", behaviour: "dispute" },
  { value: "4000 0000 0000 0119", name: "Late response", behaviour: "late" },
  { value: "4000 0000 0000 0341", name: "Declined once saved", behaviour: "decline_saved" },
];

/**
 * Test tokens of cards, with the number of the card that each stands for. Those with a name of
 * Stripe (docs.stripe.com/testing) stand for the card of Stripe.
 */
export const TEST_TOKENS: Readonly<Record<string, string>> = {
  pm_card_visa: "4242 4242 4242 4242",
  pm_card_mastercard: "5555 5555 5555 4444",
  pm_card_amex: "3782 822463 10005",
  pm_card_chargeDeclined: "4000 0000 0000 0002",
  pm_card_chargeDeclinedInsufficientFunds: "4000 0000 0000 9995",
  pm_card_authenticationRequired: "4000 0027 6000 3184",
  pm_card_authenticationRequiredOnSetup: "4000 0025 0000 3155",
  pm_card_chargeCustomerFail: "4000 0000 0000 0341",
  pm_card_late: "4000 0000 0000 0119",
  pm_card_createDispute: "4000 0000 0000 0259",
};

/** Test IBANs. Other valid IBANs are approved. */
export const TEST_IBANS: readonly TestIban[] = [
  {
    value: "DE89 3704 0044 0532 0130 00",
    name: "SEPA, approved",
    behaviour: "approve",
    kind: "sepa",
  },
  {
    value: "DE00 0000 0000 0000 0000 99",
    name: "SEPA return R01",
    behaviour: "bank_return",
    kind: "sepa",
  },
  {
    value: "DE78 3704 0044 0532 0131 01",
    name: "Mandate revoked, MD01",
    behaviour: "revoked",
    kind: "sepa",
  },
  {
    value: "DE94 3704 0044 0532 0131 04",
    name: "Account closed, AC04",
    behaviour: "account_closed",
    kind: "sepa",
  },
  {
    value: "DE92 3704 0044 0532 0131 40",
    name: "Insufficient funds, AM04",
    behaviour: "no_cover",
    kind: "sepa",
  },
  {
    value: "DE71 3704 0044 0532 0131 30",
    name: "Returned after 20 days, MS03",
    behaviour: "return_later",
    kind: "sepa",
  },
  {
    value: "GB82 WEST 1234 5698 7654 32",
    name: "SWIFT, approved",
    behaviour: "approve",
    kind: "swift",
  },
];

/**
 * The bank accounts of every sandbox. That of SEPA takes EUR, also by SWIFT. Their check
 * digits are right, and no bank has their bank codes: German bank codes begin with 1 to 8, and no
 * British sort code is 00-00-00. The last character of each BIC marks a test (ISO 9362).
 */
export const OWN_TEST_ACCOUNTS = {
  sepa: { iban: "DE09000000000000000001", bic: "PAYSDEF0", holder_name: "Payments Sandbox" },
  swift: { iban: "GB34PAYS00000000000001", bic: "PAYSGBL0", holder_name: "Payments Sandbox" },
} as const satisfies Record<BankRail, unknown>;

/** Test wallets, which work on every network. Other valid addresses are approved. */
export const TEST_WALLETS: readonly TestValue[] = [
  {
    value: "0x000000000000000000000000000000000000dEaD",
    name: "Approved",
    behaviour: "approve",
  },
  { value: "0x0000000000000000000000000000000000000BAD", name: "Reverted", behaviour: "revert" },
];

const cards = byForm(TEST_CARDS, normalizeCardNumber);
const ibans = byForm(TEST_IBANS, normalizeIban);
const wallets = byForm(TEST_WALLETS, normalizeAddress);

/** Returns the behaviour of a test card, or undefined for any other number. */
export function testCard(number: string): TestBehaviour | undefined {
  return cards.get(normalizeCardNumber(number))?.behaviour;
}

/** Returns the test card behind the shown parts of a card, if it is the only one with them. */
export function testCardOf({ last4 }: Pick<ShownCard, "last4">): TestValue | undefined {
  const found = TEST_CARDS.filter(({ value }) => value.endsWith(last4));
  return found.length === 1 ? found[0] : undefined;
}

/** Returns the entry of a test IBAN, or undefined for any other IBAN. */
export function testIban(iban: string): TestIban | undefined {
  return ibans.get(normalizeIban(iban));
}

/** Reports whether an IBAN is of a bank account of the sandbox itself. */
export function isOwnTestIban(iban: string): boolean {
  return Object.values(OWN_TEST_ACCOUNTS).some((own) => own.iban === normalizeIban(iban));
}

/** Returns the behaviour of a test wallet, or undefined for any other address. */
export function testWallet(address: string): TestBehaviour | undefined {
  return wallets.get(normalizeAddress(address))?.behaviour;
}

function normalizeAddress(address: string): string {
  return address.replace(/\s/g, "").toLowerCase();
}

function byForm<Value extends TestValue>(
  values: readonly Value[],
  normalize: (text: string) => string,
): ReadonlyMap<string, Value> {
  return new Map(values.map((entry) => [normalize(entry.value), entry]));
}
