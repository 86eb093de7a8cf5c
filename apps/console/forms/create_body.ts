/**
 * Builds the body of a new payment from the fields of the form, in either variant. It only refuses
 * a text that cannot become JSON of the right type. The API checks everything else.
 */

import type {
  Capability,
  CaptureMethod,
  CreatePaymentInput,
  IbanInput,
  MandateSequence,
  MethodKind,
  Network,
  Outcome,
  PaymentFields,
  PostalAddress,
  Settlement,
  Stablecoin,
  WalletInput,
} from "../../../packages/client/mod.ts";
import { STABLECOINS } from "../../../shared/core/currency.ts";
import { MANDATE_SEQUENCES, METHOD_KINDS, OUTCOMES } from "../../../shared/core/vocabulary.ts";
import {
  TEST_CARDS,
  TEST_IBANS,
  TEST_TOKENS,
  TEST_WALLETS,
} from "../../../shared/domain/providers/test_values.ts";
import { RAILS } from "../../../shared/domain/rails.ts";
import { FieldError } from "../data/failure.ts";
import type { MetadataRows } from "./metadata_fields.tsx";
import { parseAmount } from "../data/money.ts";

/**
 * The instruments of the form. A test value or an outcome decides the result of the payment and has
 * a settlement. Money that the payer sends has none: it comes.
 */
export const INSTRUMENTS = {
  card: { name: "Test card", has_settlement: true },
  token: { name: "Card token", has_settlement: true },
  iban: { name: "IBAN", has_settlement: true },
  transfer: { name: "Bank transfer", has_settlement: false },
  wallet: { name: "Wallet", has_settlement: true },
  address: { name: "Own address", has_settlement: false },
  outcome: { name: "Forced outcome", has_settlement: true },
};
export type Instrument = keyof typeof INSTRUMENTS;

/** The instruments of each rail. An outcome is for every rail. */
const INSTRUMENTS_OF: Readonly<Record<MethodKind, readonly Instrument[]>> = {
  card: ["card", "token"],
  sepa: ["iban", "transfer"],
  swift: ["iban", "transfer"],
  stablecoin: ["wallet", "address"],
};

/** The fields of a bank account, with the address of its holder, and of a wallet. */
export const FIRST_ACCOUNT = {
  iban: TEST_IBANS[0]!.value,
  bic: "",
  holder_name: "",
  line1: "",
  line2: "",
  city: "",
  /** Also that of a card. */
  postal_code: "",
  country: "",
  address: TEST_WALLETS[0]!.value,
  network: "",
  asset: "",
};
export type AccountDraft = typeof FIRST_ACCOUNT;

/** The first values of the form. Each is a text; an empty one is left out. */
export const FIRST_DRAFT = {
  ...FIRST_ACCOUNT,
  variant: "A" as "A" | "B",
  instrument: "card" as Instrument,
  amount: "19.99",
  currency: "EUR",
  card_number: TEST_CARDS[0]!.value,
  exp_month: "12",
  exp_year: String(new Date().getFullYear() + 4),
  cvc: "123",
  token: Object.keys(TEST_TOKENS)[0]!,
  /** The rail, if the instrument has several. */
  rail: TEST_IBANS[0]!.kind as MethodKind,
  mandate_id: "",
  signed_at: new Date().toISOString().slice(0, 10),
  sequence: MANDATE_SEQUENCES[0] as string,
  outcome: OUTCOMES[0] as string,
  method_kind: "card",
  capture: "",
  settlement: "",
  return_url: "",
  email: "ada@example.com",
  name: "",
  customer_id: "",
  description: "",
  reference: "",
  metadata: [] as MetadataRows,
};
export type Draft = typeof FIRST_DRAFT;

/**
 * Builds the body.
 * @throws {FieldError} if a text cannot become JSON of the right type
 */
export function createBody(draft: Draft): CreatePaymentInput {
  const { variant } = draft;
  const amount = amountOf(draft);
  const kind = kindOf(draft);
  const person = `${draft.customer_id}${draft.email}${draft.name}` === "" ? undefined : {
    ...present({ id: draft.customer_id }),
    email: draft.email,
    ...present({ name: draft.name }),
  };
  const fields: PaymentFields = {
    currency: draft.currency.trim(),
    ...(variant === "A"
      ? { capability: `${kind}_payment` as Capability, ...(person && { customer: person }) }
      : { method_kind: kind, ...(person && { payer: person }) }),
    ...instrumentOf(draft),
    ...present({
      description: draft.description,
      reference: draft.reference,
      return_url: draft.return_url,
    }),
    ...metadataOf(draft),
    // The form shows the capture for these rails only.
    ...(RAILS[kind].has_manual_capture && draft.capture !== "" &&
      { capture: draft.capture as CaptureMethod }),
    ...(INSTRUMENTS[draft.instrument].has_settlement && draft.settlement !== "" &&
      { settlement: draft.settlement as Settlement }),
  };
  return variant === "A" ? { amount, ...fields } : { amount_minor: amount, ...fields };
}

/**
 * The amount in minor units.
 * @param param the name of the field in errors
 * @throws {FieldError}
 */
export function amountOf(
  { amount, currency }: Pick<Draft, "amount" | "currency">,
  param = "amount",
): number {
  try {
    return parseAmount(amount, currency);
  } catch (error) {
    throw new FieldError(param, (error as Error).message);
  }
}

/** The rails of an instrument. */
export function kindsOf(instrument: Instrument): readonly MethodKind[] {
  if (instrument === "outcome") return METHOD_KINDS;
  return METHOD_KINDS.filter((kind) => INSTRUMENTS_OF[kind].includes(instrument));
}

/** The rail of the payment. */
export function kindOf({ instrument, rail, method_kind }: Draft): MethodKind {
  if (instrument === "outcome") return method_kind as MethodKind;
  const kinds = kindsOf(instrument);
  return kinds.includes(rail) ? rail : kinds[0]!;
}

/** The usual currency of an instrument. */
export function currencyOf(instrument: Instrument): string {
  const { only_currency, is_for_stablecoins } = RAILS[kindsOf(instrument)[0]!];
  return only_currency ?? (is_for_stablecoins ? STABLECOINS[0] : "EUR");
}

function instrumentOf(draft: Draft): Partial<PaymentFields> {
  switch (draft.instrument) {
    case "card":
      return {
        card: {
          number: draft.card_number,
          exp_month: integerOf("card.exp_month", draft.exp_month),
          exp_year: integerOf("card.exp_year", draft.exp_year),
          cvc: draft.cvc,
          ...present({ postal_code: draft.postal_code }),
        },
      };
    case "token":
      return { card: { token: draft.token } };
    case "iban":
      return { iban: ibanOf(draft), ...mandateOf(draft) };
    case "wallet":
      return { wallet: walletOf(draft) };
    // The response has the account or address to which the payer sends.
    case "transfer":
    case "address":
      return {};
    case "outcome":
      return { outcome: draft.outcome as Outcome };
  }
}

/** The bank account. */
export function ibanOf({ iban, bic, holder_name, ...draft }: AccountDraft): IbanInput {
  const { line1, line2, city, postal_code, country } = draft;
  const address = present({ line1, line2, city, postal_code, country }) as PostalAddress;
  const has_address = Object.keys(address).length > 0;
  return { iban, ...present({ bic, holder_name }), ...(has_address && { address }) };
}

/** The member `mandate`, or nothing without one. */
function mandateOf(
  draft: Draft,
): Pick<PaymentFields, "mandate"> {
  const { mandate_id, signed_at, sequence } = draft;
  if (!RAILS[kindOf(draft)].collects || mandate_id === "") return {};
  return { mandate: { id: mandate_id, signed_at, sequence: sequence as MandateSequence } };
}

/** The wallet. */
export function walletOf({ address, network, asset }: AccountDraft): WalletInput {
  return {
    address,
    ...(network !== "" && { network: network as Network }),
    ...(asset !== "" && { asset: asset as Stablecoin }),
  };
}

function integerOf(param: string, text: string): number {
  if (/^\d{1,9}$/.test(text.trim())) return Number(text);
  throw new FieldError(param, text.trim() === "" ? "Enter a number" : "Enter a whole number");
}

/**
 * The member `metadata`, or nothing without metadata.
 * @throws {FieldError} if a name occurs twice
 */
export function metadataOf(
  { metadata }: Pick<Draft, "metadata">,
): { metadata?: Record<string, string> } {
  const rows = metadata.filter(([name, value]) => name !== "" || value !== "");
  if (rows.length === 0) return {};
  const entries: Record<string, string> = Object.create(null);
  for (const [name, value] of rows) {
    if (name in entries) throw new FieldError("metadata", `The name "${name}" occurs twice`);
    entries[name] = value;
  }
  return { metadata: entries };
}

/** The texts that are not empty. */
export function present<T extends Record<string, string>>(texts: T): Partial<T> {
  return Object.fromEntries(Object.entries(texts).filter(([, text]) => text !== "")) as Partial<T>;
}
