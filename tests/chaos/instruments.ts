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

const CARD = { card: cardOf("4242424242424242") };
const CARD_3DS = { card: cardOf("4000002500003155") };

/** A mandate of one IBAN that begins before the time of the model test. It is idle from 2029 on. */
export const MANDATE = {
  id: "M-1",
  signed_at: "2026-02-01",
  sequence: "recurring",
};

/** The result of each test value in the sandbox, by the names that plans use. */
export const INSTRUMENTS: Readonly<Record<string, Instrument>> = {
  none: { body: {}, kind: "card", status: "pending" },
  none_captured_later: { body: { capture: "manual" }, kind: "card", status: "pending" },
  card: { body: CARD, kind: "card", status: "completed" },
  card_captured_later: {
    body: { ...CARD, capture: "manual" },
    kind: "card",
    status: "authorized",
  },
  card_refunds_wait: {
    body: { ...CARD, settlement: "manual" },
    kind: "card",
    status: "completed",
  },
  card_both_wait: {
    body: { ...CARD, capture: "manual", settlement: "manual" },
    kind: "card",
    status: "authorized",
  },
  mastercard: { body: { card: cardOf("5555555555554444") }, kind: "card", status: "completed" },
  card_declined: {
    body: { card: cardOf("4000000000000002") },
    kind: "card",
    status: "declined",
    code: "payment_declined",
  },
  card_no_funds: {
    body: { card: cardOf("4000000000009995") },
    kind: "card",
    status: "declined",
    code: "insufficient_funds",
  },
  card_aml: {
    body: { card: cardOf("4100000000000019") },
    kind: "card",
    status: "declined",
    code: "aml_blocked",
  },
  card_3ds: { body: CARD_3DS, kind: "card", status: "requires_action" },
  card_3ds_captured_later: {
    body: { ...CARD_3DS, capture: "manual", return_url: "https://example.com/return" },
    kind: "card",
    status: "requires_action",
  },
  // Without manual settlement this card completes by itself after a while.
  card_late: {
    body: { card: cardOf("4000000000000119"), settlement: "manual" },
    kind: "card",
    status: "processing",
  },
  token: { body: tokenOf("pm_card_visa"), kind: "card", status: "completed" },
  token_captured_later: {
    body: { ...tokenOf("pm_card_mastercard"), capture: "manual" },
    kind: "card",
    status: "authorized",
  },
  token_declined: {
    body: tokenOf("pm_card_chargeDeclined"),
    kind: "card",
    status: "declined",
    code: "payment_declined",
  },
  token_no_funds: {
    body: tokenOf("pm_card_chargeDeclinedInsufficientFunds"),
    kind: "card",
    status: "declined",
    code: "insufficient_funds",
  },
  token_3ds: {
    body: tokenOf("pm_card_authenticationRequired"),
    kind: "card",
    status: "requires_action",
  },
  sepa: { body: { iban: "DE89370400440532013000" }, kind: "sepa", status: "completed" },
  sepa_returned: { body: { iban: "DE00000000000000000099" }, kind: "sepa", status: "failed" },
  sepa_manual: {
    body: { iban: "DE89370400440532013000", settlement: "manual" },
    kind: "sepa",
    status: "pending",
  },
  sepa_collected: {
    body: { iban: "DE89370400440532013000", mandate: MANDATE },
    kind: "sepa",
    status: "processing",
    on_due_date: "completed",
  },
  sepa_collected_returned: {
    body: { iban: "DE00000000000000000099", mandate: { ...MANDATE, id: "M-2" } },
    kind: "sepa",
    status: "processing",
    on_due_date: "failed",
  },
  swift: { body: { iban: "GB82WEST12345698765432" }, kind: "swift", status: "completed" },
  swift_manual: {
    body: { iban: "GB82WEST12345698765432", settlement: "manual" },
    kind: "swift",
    status: "pending",
  },
  wallet: {
    body: { wallet: "0x000000000000000000000000000000000000dEaD" },
    kind: "stablecoin",
    status: "completed",
  },
  wallet_reverted: {
    body: { wallet: "0x0000000000000000000000000000000000000BAD" },
    kind: "stablecoin",
    status: "failed",
  },
  wallet_manual: {
    body: { wallet: "0x000000000000000000000000000000000000dEaD", settlement: "manual" },
    kind: "stablecoin",
    status: "pending",
  },
};

/** The status after each forced outcome. */
export const OUTCOMES: Readonly<Record<string, string>> = {
  success: "completed",
  declined: "declined",
  pending: "pending",
  refunded: "refunded",
  chargeback: "chargeback",
};

function cardOf(number: string): Record<string, unknown> {
  return { number, exp_month: 12, exp_year: 2034, cvc: "123" };
}

function tokenOf(token: string): Record<string, unknown> {
  return { card: { token } };
}
