/**
 * Instruments: cards and SEPA mandates that a payment saves, and that later payments use (contract
 * §2). The status of an instrument follows from the payment that has saved it. Pure.
 */

import { formatTime } from "../../core/clock.ts";
import { ApiError, invalidParameter } from "../../core/errors.ts";
import { normalizeIban } from "../../core/iban.ts";
import type { Instrument } from "../../schema/instrument.ts";
import type { CreatePaymentBody } from "../../schema/payment_body.ts";
import { amountOf } from "../../schema/values.ts";
import type { Vault } from "../../core/vault.ts";
import type { InstrumentProvider } from "../../store/instrument_provider.ts";
import { notActive } from "../../store/inactive_instrument.ts";
import type { PaymentChange } from "../changes/change_builder.ts";
import { maskedMethod } from "../changes/saved_instrument.ts";
import type { RequestContext } from "../changes/event.ts";
import type { BankDetails } from "../providers/bank_details.ts";
import { checkCurrency, type Instrument as ReadInstrument } from "../providers/instrument.ts";
import { openDetails } from "../providers/sealed_details.ts";
import type { TestBehaviour } from "../providers/test_values.ts";
import { RAILS } from "../rails.ts";
import { collectionOf, dueDateOfNew, sandboxFingerprint } from "./collection.ts";

/** An instrument that a payment uses, as it is stored. */
export interface StoredInstrument {
  shown: Instrument;
  test_behaviour: TestBehaviour | null;
  provider: InstrumentProvider | null;
  /** Of a live one by SEPA that is kept and has not ended. */
  details: BankDetails | null;
}

/**
 * Reads an instrument and its detail, as the database returns them. Throws the errors of
 * `openDetails`.
 */
export async function readStoredInstrument(
  body: string,
  detail: string,
  vault: Vault | null,
): Promise<StoredInstrument> {
  const shown: Instrument = JSON.parse(body);
  const { key_id, sealed, ...more } = JSON.parse(detail);
  const text = { id: shown.id, key_id, sealed };
  return { ...more, shown, details: sealed === null ? null : await openDetails(text, vault) };
}

/**
 * Returns the instrument of a create that uses a saved one. Throws `invalid_parameter` for members
 * that do not agree with it, and `invalid_state` if it is not active.
 */
export function useInstrument(
  body: CreatePaymentBody,
  { shown, test_behaviour, provider }: StoredInstrument,
  context: Pick<RequestContext, "at_ms" | "livemode">,
): ReadInstrument {
  checkUse(body, shown);
  const kind = shown.method_kind;
  checkCurrency(kind, body.currency);
  const { mandate } = shown;
  const method = shown.method && "iban" in shown.method
    ? {
      ...shown.method,
      mandate: mandate && { ...mandate, sequence: "recurring" as const },
      due_on: dueDateOfNew(context),
    }
    : shown.method;
  const token = provider?.token;
  return { kind, method, behaviour: test_behaviour, ...(token !== undefined && { token }) };
}

function checkUse(body: CreatePaymentBody, shown: Instrument): void {
  const { method_kind, capability, off_session, return_url } = body;
  if (method_kind !== undefined && method_kind !== shown.method_kind) {
    throw otherKind("method_kind", method_kind, shown.method_kind);
  }
  if (capability !== undefined && capability !== `${shown.method_kind}_payment`) {
    throw otherKind("capability", capability, `${shown.method_kind}_payment`);
  }
  const person = body.customer ? "customer" : "payer";
  const sent = body[person]?.id;
  if (sent !== undefined && sent !== shown.customer?.id) {
    throw invalidParameter(
      `${person}.id`,
      `"${person}.id" is another customer than that of the instrument: leave it out`,
    );
  }
  if (!shown.is_kept && shown.status === "active") {
    throw invalidParameter(
      "instrument",
      'The service has not the IBAN of this mandate: send "iban" and "mandate", or save them with ' +
        '"save"',
    );
  }
  if (off_session && shown.usage !== "off_session") {
    throw invalidParameter(
      "off_session",
      'The payer has allowed this instrument only for payments with "off_session": false',
    );
  }
  if (off_session && return_url !== undefined) {
    throw invalidParameter(
      "off_session",
      'No payer comes back to "return_url" from a payment with "off_session": leave one of them out',
    );
  }
  if (shown.status !== "active") throw notActive("use", shown);
}

function otherKind(param: string, sent: string, kind: string): ApiError {
  return invalidParameter(
    param,
    `"${param}" is "${sent}", but that of the instrument is "${kind}": leave it out`,
  );
}

/** Makes the 400 for an instrument that is not in the key's environment. */
export function unknownInstrument(): ApiError {
  return invalidParameter(
    "instrument",
    "There is no such instrument here. GET /v1/instruments lists those of a customer",
  );
}

/**
 * Throws `invalid_parameter` for members of a create that do not go together with `save`, with an
 * amount of 0, or with `off_session`. `instrument`: of the body, or the used one.
 * @param has_page true: the payer is on the page of a checkout
 */
export function checkSave(
  body: CreatePaymentBody,
  { kind, method, token }: ReadInstrument,
  has_page = false,
): void {
  const { save, capture, outcome, return_url, off_session } = body;
  if (off_session && body.instrument === undefined) {
    throw invalidParameter(
      "off_session",
      '"off_session" is only for a payment by a saved "instrument": leave it out',
    );
  }
  if (save === undefined) return;
  const person = body.payer && !body.customer ? "payer" : "customer";
  if (body[person]?.id === undefined) {
    throw invalidParameter(
      `${person}.id`,
      `"save" needs your own id of the customer: send it as "${person}.id"`,
    );
  }
  const { needs_token, collects, is_for_stablecoins } = RAILS[kind];
  const is_known = method !== null || token !== undefined;
  if (!is_known || !needs_token && !collects) {
    throw invalidParameter(
      "save",
      is_for_stablecoins
        ? '"save" is for cards and SEPA: a chain cannot pull money. Send the payer a payment link ' +
          "each period"
        : '"save" needs a "card", or an "iban" by SEPA',
    );
  }
  if (collects) {
    if (body.mandate === undefined) {
      throw invalidParameter(
        "mandate",
        'To save an "iban" the "mandate" of the payer is needed: send its "signed_at"',
      );
    }
    const { sequence = "recurring" } = body.mandate;
    if (sequence !== "first" && sequence !== "recurring") {
      throw invalidParameter(
        "mandate.sequence",
        `A mandate that is saved is used again: "mandate.sequence" is "first" or "recurring"`,
      );
    }
  }
  if (amountOf(body) !== 0) return;
  if (capture === "manual") {
    const param = body.amount === undefined ? "amount_minor" : "amount";
    throw invalidParameter(param, 'There is nothing to capture: leave "capture" out');
  }
  if (needs_token && return_url === undefined && !has_page) {
    throw invalidParameter(
      "return_url",
      'A card is saved with the payer present: send the "return_url" to which the payer comes back',
    );
  }
  if (outcome === "refunded" || outcome === "chargeback") {
    throw invalidParameter("outcome", `A payment of 0 cannot be "${outcome}": leave it out`);
  }
}

/**
 * Records what a new payment does with instruments: it uses one, saves one, or is collected under a
 * mandate whose IBAN the caller sends each time.
 * @param used the saved one that it uses
 */
export function recordInstrument(
  change: PaymentChange,
  body: CreatePaymentBody,
  used: StoredInstrument | null,
  behaviour: TestBehaviour | null,
): void {
  const { subject: payment } = change;
  if (used !== null) {
    const { id, sequence } = used.shown;
    change.addInstrument({ act: "use", id, sequence });
    return;
  }
  const { mandate } = collectionOf(payment);
  if (body.save === undefined && mandate === null) return;
  const { customer, livemode } = payment;
  const is_over = mandate?.sequence === "final" || mandate?.sequence === "one_off";
  change.addInstrument({
    act: body.save === undefined ? "mandate" : "save",
    id: payment.instrument_id ?? change.context.newId("ins_"),
    status: body.save === undefined ? "active" : "pending",
    customer_id: customer?.id ?? null,
    // A person is known by the id, also to an erasure.
    email: customer?.id === undefined ? null : customer.email,
    name: customer?.id === undefined ? null : customer.name ?? null,
    method_kind: payment.method_kind,
    method: maskedMethod(payment),
    usage: body.save ?? "off_session",
    payment_id: payment.id,
    is_use: payment.amount_minor > 0,
    ...(mandate && {
      mandate_id: mandate.id,
      mandate_sequence: mandate.sequence,
      // Without the offset of its time zone, of which the database takes fewer.
      signed_at: signedAt(mandate.signed_at),
      ibans: livemode ? [] : [sandboxFingerprint(normalizeIban(body.iban!.iban))],
    }),
    ...(!livemode && { test_behaviour: behaviour ?? "approve" }),
    ...(body.save === undefined && is_over && { reason: "used_up" }),
  });
}

/** A date stays a date; a time is shown in UTC. */
function signedAt(text: string): string {
  return text.length === "2026-01-31".length ? text : formatTime(Date.parse(text));
}
