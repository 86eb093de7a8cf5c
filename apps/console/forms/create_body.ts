/**
 * Builds the body of a new payment from the fields of the form, in either variant. It only refuses
 * a text that cannot become JSON of the right type. The API checks everything else.
 */

import type {
  Capability,
  CaptureMethod,
  CreatePaymentInput,
  IbanInput,
  InstrumentUsage,
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
import {
  KEPT_METHOD_KINDS,
  MANDATE_SEQUENCES,
  METHOD_KINDS,
  OUTCOMES,
} from "../../../shared/core/vocabulary.ts";
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
import { dayOf, formatDay } from "../data/times.ts";

/**
 * The methods of the form. A test value or an outcome decides the result of the payment and has a
 * settlement. Money that the payer sends has none: it comes. `is_account`: a card or an account of
 * the payer, which can be saved.
 */
export const METHODS = {
  card: { name: "Test card", has_settlement: true, is_account: true },
  token: { name: "Card token", has_settlement: true, is_account: true },
  iban: { name: "IBAN", has_settlement: true, is_account: true },
  transfer: { name: "Bank transfer", has_settlement: false, is_account: false },
  wallet: { name: "Wallet", has_settlement: true, is_account: false },
  address: { name: "Own address", has_settlement: false, is_account: false },
  saved: { name: "Saved instrument", has_settlement: true, is_account: false },
  outcome: { name: "Forced outcome", has_settlement: true, is_account: false },
};
export type Method = keyof typeof METHODS;

/** The methods of each rail. An outcome is for every rail. A saved instrument knows its own. */
const METHODS_OF: Readonly<Record<MethodKind, readonly [Method, ...Method[]]>> = {
  card: ["card", "token", "saved"],
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
  method: "card" as Method,
  amount: "19.99",
  currency: "EUR",
  card_number: TEST_CARDS[0]!.value,
  exp_month: "12",
  exp_year: String(new Date().getFullYear() + 4),
  cvc: "123",
  token: Object.keys(TEST_TOKENS)[0]!,
  /** The rail, if the method has several. */
  rail: TEST_IBANS[0]!.kind as MethodKind,
  mandate_id: "",
  signed_at: formatDay(new Date().toISOString().slice(0, 10)),
  sequence: MANDATE_SEQUENCES[0] as string,
  outcome: OUTCOMES[0] as string,
  instrument: "",
  off_session: "",
  save: "",
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
  const person = personOf(draft);
  const fields: PaymentFields = {
    currency: draft.currency.trim(),
    ...(draft.method !== "saved" &&
      (variant === "A" ? { capability: `${kind}_payment` as Capability } : { method_kind: kind })),
    ...(person && (variant === "A" ? { customer: person } : { payer: person })),
    ...methodOf(draft),
    ...(canSave(draft) && draft.save !== "" && { save: draft.save as InstrumentUsage }),
    ...present({
      description: draft.description,
      reference: draft.reference,
      return_url: draft.return_url,
    }),
    ...metadataOf(draft),
    // The form shows the capture for these rails only.
    ...(RAILS[kind].has_manual_capture && draft.capture !== "" &&
      { capture: draft.capture as CaptureMethod }),
    ...(METHODS[draft.method].has_settlement && draft.settlement !== "" &&
      { settlement: draft.settlement as Settlement }),
  };
  return variant === "A" ? { amount, ...fields } : { amount_minor: amount, ...fields };
}

/** The customer, or undefined if the fields are empty. */
export function personOf(
  { customer_id: id, email, name }: Pick<Draft, "customer_id" | "email" | "name">,
) {
  return `${id}${email}${name}` === "" ? undefined : {
    ...present({ id }),
    email,
    ...present({ name }),
  };
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

export function kindsOf(method: Method): readonly MethodKind[] {
  if (method === "outcome") return METHOD_KINDS;
  return METHOD_KINDS.filter((kind) => METHODS_OF[kind].includes(method));
}

export function kindOf({ method, rail, method_kind }: Draft): MethodKind {
  if (method === "outcome") return method_kind as MethodKind;
  const kinds = kindsOf(method);
  return kinds.includes(rail) ? rail : kinds[0]!;
}

/** The usual currency of a method. */
export function currencyOf(method: Method): string {
  const { only_currency, is_for_stablecoins } = RAILS[kindsOf(method)[0]!];
  return only_currency ?? (is_for_stablecoins ? STABLECOINS[0] : "EUR");
}

/** Whether the payment can save its card or account. */
export function canSave(draft: Draft): boolean {
  const kinds: readonly MethodKind[] = KEPT_METHOD_KINDS;
  return METHODS[draft.method].is_account && kinds.includes(kindOf(draft));
}

function methodOf(draft: Draft): Partial<PaymentFields> {
  switch (draft.method) {
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
    case "saved":
      return {
        instrument: draft.instrument.trim(),
        ...(draft.off_session !== "" && { off_session: true }),
      };
    case "outcome":
      return { outcome: draft.outcome as Outcome };
  }
}

export function ibanOf({ iban, bic, holder_name, ...draft }: AccountDraft): IbanInput {
  const { line1, line2, city, postal_code, country } = draft;
  const address = present({ line1, line2, city, postal_code, country }) as PostalAddress;
  const has_address = Object.keys(address).length > 0;
  return { iban, ...present({ bic, holder_name }), ...(has_address && { address }) };
}

/** Whether the payment is collected under a mandate. The service makes the id if it saves one. */
export function hasMandate(draft: Draft): boolean {
  return RAILS[kindOf(draft)].collects && `${draft.mandate_id}${draft.save}` !== "";
}

/** The member `mandate`, or nothing without one. */
function mandateOf(draft: Draft): Pick<PaymentFields, "mandate"> {
  if (!hasMandate(draft)) return {};
  const { mandate_id: id, sequence } = draft;
  const signed_at = dayOf("mandate.signed_at", draft.signed_at);
  return { mandate: { ...present({ id }), signed_at, sequence: sequence as MandateSequence } };
}

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

export function present<T extends Record<string, string>>(texts: T): Partial<T> {
  return Object.fromEntries(Object.entries(texts).filter(([, text]) => text !== "")) as Partial<T>;
}
