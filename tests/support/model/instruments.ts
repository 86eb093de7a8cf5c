/** The test values of the sandbox and the forced outcomes, with their results (contract §2). */

/** An instrument of a plan. `body` is the part of the create that selects it. */
interface Instrument {
  body: Record<string, unknown>;
  kind: string;
  /** Status after the create. */
  status: string;
  /** Code of a decline. */
  code?: string;
  /** Status on the due date of a collection. */
  on_due_date?: string;
}

/** A mandate of one IBAN that begins before the time of the model test. It is idle from 2029 on. */
export const MANDATE = { id: "M-1", signed_at: "2026-02-01", sequence: "recurring" };

const IBAN = { sepa: "DE89370400440532013000", swift: "GB82WEST12345698765432" };
const RETURNED = "DE00000000000000000099";
const [WALLET, REVERTED] = ["dEaD", "0BAD"].map((end) => ({
  wallet: `0x${end.padStart(40, "0")}`,
}));
const MANUAL = { settlement: "manual" };
const LATER = { capture: "manual" };

/** The result of each test value in the sandbox, by the names that plans use. */
export const INSTRUMENTS: Readonly<Record<string, Instrument>> = {
  none: { body: {}, kind: "card", status: "pending" },
  none_captured_later: { body: LATER, kind: "card", status: "pending" },
  card: card("4242424242424242", "completed"),
  card_captured_later: card("4242424242424242", "authorized", LATER),
  card_refunds_wait: card("4242424242424242", "completed", MANUAL),
  card_both_wait: card("4242424242424242", "authorized", { ...LATER, ...MANUAL }),
  mastercard: card("5555555555554444", "completed"),
  card_declined: card("4000000000000002", "declined", {}, "payment_declined"),
  card_no_funds: card("4000000000009995", "declined", {}, "insufficient_funds"),
  card_aml: card("4100000000000019", "declined", {}, "aml_blocked"),
  card_3ds: card("4000002500003155", "requires_action"),
  card_3ds_captured_later: card("4000002500003155", "requires_action", {
    ...LATER,
    return_url: "https://example.com/return",
  }),
  // Without manual settlement this card completes by itself after a while.
  card_late: card("4000000000000119", "processing", MANUAL),
  token: token("pm_card_visa", "completed"),
  token_captured_later: token("pm_card_mastercard", "authorized", LATER),
  token_declined: token("pm_card_chargeDeclined", "declined", {}, "payment_declined"),
  token_no_funds: token(
    "pm_card_chargeDeclinedInsufficientFunds",
    "declined",
    {},
    "insufficient_funds",
  ),
  token_3ds: token("pm_card_authenticationRequired", "requires_action"),
  sepa: { body: { iban: IBAN.sepa }, kind: "sepa", status: "completed" },
  sepa_returned: { body: { iban: RETURNED }, kind: "sepa", status: "failed" },
  sepa_manual: { body: { iban: IBAN.sepa, ...MANUAL }, kind: "sepa", status: "pending" },
  sepa_collected: {
    body: { iban: IBAN.sepa, mandate: MANDATE },
    ...{ kind: "sepa", status: "processing", on_due_date: "completed" },
  },
  sepa_collected_returned: {
    body: { iban: RETURNED, mandate: { ...MANDATE, id: "M-2" } },
    ...{ kind: "sepa", status: "processing", on_due_date: "failed" },
  },
  swift: { body: { iban: IBAN.swift }, kind: "swift", status: "completed" },
  swift_manual: { body: { iban: IBAN.swift, ...MANUAL }, kind: "swift", status: "pending" },
  wallet: { body: WALLET!, kind: "stablecoin", status: "completed" },
  wallet_reverted: { body: REVERTED!, kind: "stablecoin", status: "failed" },
  wallet_manual: { body: { ...WALLET, ...MANUAL }, kind: "stablecoin", status: "pending" },
};

/** The status after each forced outcome. */
export const OUTCOMES: Readonly<Record<string, string>> = {
  success: "completed",
  declined: "declined",
  pending: "pending",
  refunded: "refunded",
  chargeback: "chargeback",
};

/** Destinations of transfers: the bank or chain takes them, or returns them. */
export const DESTINATIONS = {
  approved: { iban: { iban: IBAN.swift }, wallet: WALLET! },
  returned: { iban: { iban: RETURNED }, wallet: REVERTED! },
} as const;

function card(
  number: string,
  status: string,
  more: Record<string, unknown> = {},
  code?: string,
): Instrument {
  return ofCard({ number, exp_month: 12, exp_year: 2034, cvc: "123" }, status, more, code);
}

function token(
  token: string,
  status: string,
  more: Record<string, unknown> = {},
  code?: string,
): Instrument {
  return ofCard({ token }, status, more, code);
}

function ofCard(card: object, status: string, more: object, code?: string): Instrument {
  return { body: { card, ...more }, kind: "card", status, ...(code !== undefined && { code }) };
}
