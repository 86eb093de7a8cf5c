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
  /** The mandate has no id, which only a save allows. */
  is_for_saving?: boolean;
  /** Why the bank ends a mandate on the due date. */
  ends?: string;
  /** The bank returns a completed collection after 20 days. */
  returned_later?: boolean;
  /** Statuses of later payments, with the payer and without; absent: they complete. */
  uses?: [on_session: string, off_session: string];
  /** Code of their declines. */
  use_code?: string;
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
/** The payer authenticates for a save, and later only if present. */
const ONCE: Pick<Instrument, "uses"> = { uses: ["requires_action", "completed"] };

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
  card_3ds: { ...card("4000002500003155", "requires_action"), ...ONCE },
  card_3ds_captured_later: {
    ...card("4000002500003155", "requires_action", {
      ...LATER,
      return_url: "https://example.com/return",
    }),
    ...ONCE,
  },
  // Without manual settlement this card completes by itself after a while.
  card_late: {
    ...card("4000000000000119", "processing", MANUAL),
    uses: ["processing", "processing"],
  },
  token: token("pm_card_visa", "completed"),
  token_captured_later: token("pm_card_mastercard", "authorized", LATER),
  token_declined: token("pm_card_chargeDeclined", "declined", {}, "payment_declined"),
  token_no_funds: token(
    "pm_card_chargeDeclinedInsufficientFunds",
    "declined",
    {},
    "insufficient_funds",
  ),
  token_3ds: {
    ...token("pm_card_authenticationRequired", "requires_action"),
    ...{ uses: ["requires_action", "declined"], use_code: "authentication_required" },
  },
  token_declined_later: {
    ...token("pm_card_chargeCustomerFail", "completed"),
    ...{ uses: ["declined", "declined"], use_code: "payment_declined" },
  },
  token_disputed: {
    ...token("pm_card_createDispute", "chargeback"),
    uses: ["chargeback", "chargeback"],
  },
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
  sepa_saved: collection(IBAN.sepa, "completed"),
  sepa_saved_returned: collection(RETURNED, "failed"),
  sepa_revoked: { ...collection("DE78370400440532013101", "failed"), ends: "revoked" },
  sepa_closed: { ...collection("DE94370400440532013104", "failed"), ends: "account_closed" },
  sepa_no_funds: collection("DE92370400440532013140", "failed"),
  sepa_returned_later: {
    ...collection("DE71370400440532013130", "completed"),
    returned_later: true,
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

/** A collection under a mandate that is saved with the payment. */
function collection(iban: string, on_due_date: string): Instrument {
  const body = { iban, mandate: { signed_at: MANDATE.signed_at } };
  return { body, kind: "sepa", status: "processing", on_due_date, is_for_saving: true };
}

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
