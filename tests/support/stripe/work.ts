/** One change of the books: it collects the objects that the double commits with the response. */

import type { Engine } from "./engine.ts";
import type { Journal, StripeObject } from "./journal.ts";

/** Parameters of a request, by their flat names, such as `metadata[order]`. */
export type Form = Record<string, string>;

/** The response to a call. */
export interface Outcome {
  status: number;
  body: unknown;
  /** Whether the idempotency key keeps an error. Stripe does not keep one of an invalid request. */
  keep?: boolean;
  /** Changes that Stripe makes after the response. They are committed with it. */
  later?: () => void;
}

/** The version of the shapes in this double. */
const API_VERSION = "2026-10-28.endive";
/** Stripe's fee for a dispute, in minor units. */
const DISPUTE_FEE = 1500;
/** Time in which a dispute takes evidence. */
const EVIDENCE_S = 9 * 24 * 3600;

/** Returns the time as Stripe writes it. */
export const nowSeconds = () => Math.floor(Date.now() / 1000);

/** A change of the objects of one owner: a secret key, or a connected account under it. */
export class Work {
  readonly changed: StripeObject[] = [];

  constructor(
    readonly journal: Journal,
    readonly engine: Engine,
    readonly owner: string,
    readonly livemode: boolean,
    /** The base URL of the page where the payer authenticates. */
    readonly public_url: string,
  ) {}

  /** Returns an object as of this change. */
  find(kind: string, id: unknown): StripeObject | undefined {
    return this.changed.findLast((object) => object.object === kind && object.id === id) ??
      this.journal.find(this.owner, kind, id);
  }

  /** Adds an object. Later changes of it in this work count too. */
  put(object: StripeObject): StripeObject {
    if (!this.changed.includes(object)) this.changed.push(object);
    return object;
  }

  /** Adds a new object. */
  make(object: string, prefix: string, fields: object): StripeObject {
    const id = `${prefix}_${crypto.randomUUID().replaceAll("-", "").slice(8)}`;
    return this.put({ id, object, created: nowSeconds(), livemode: this.livemode, ...fields });
  }

  /** Adds an event with the object as it is now. */
  event(type: string, object: StripeObject): void {
    const [, account] = this.owner.split("/");
    this.make("event", "evt", {
      type,
      api_version: API_VERSION,
      pending_webhooks: 1,
      request: { id: null, idempotency_key: null },
      ...(account ? { account } : {}),
      data: { object: shown(structuredClone(object)) },
    });
  }

  /** Adds a movement of the balance. A `source` of null: it belongs to the account. */
  move(
    type: string,
    source: StripeObject | { id: null; currency: string },
    amount: number,
    fee = 0,
  ): StripeObject {
    const { id, currency } = source;
    const net = amount - fee;
    const fields = { amount, fee, net, currency, source: id, type, status: "available" };
    return this.make("balance_transaction", "txn", fields);
  }

  /** Opens a dispute, which takes the money and a fee. */
  dispute(charge: StripeObject, requested?: number, reason = "fraudulent"): StripeObject {
    const dispute = this.make("dispute", "du", {
      amount: requested ?? charge.amount_captured - charge.amount_refunded,
      charge: charge.id,
      currency: charge.currency,
      reason,
      metadata: {},
      payment_intent: charge.payment_intent,
      evidence: {},
      evidence_details: { due_by: nowSeconds() + EVIDENCE_S, submission_count: 0 },
      status: "needs_response",
      is_charge_refundable: false,
      balance_transactions: [],
    });
    this.put(charge).disputed = true;
    this.event("charge.dispute.created", dispute);
    const moved = this.move("adjustment", dispute, -dispute.amount, DISPUTE_FEE);
    dispute.balance_transactions.push(moved);
    this.event("charge.dispute.funds_withdrawn", dispute);
    return dispute;
  }

  /** Takes evidence. Submitted evidence goes to the bank, once. */
  addEvidence(id: string, form: Form): Outcome {
    const dispute = this.find("dispute", id);
    if (dispute?.status !== "needs_response") return unexpectedState(dispute);
    this.put(dispute).evidence = { uncategorized_text: form["evidence[uncategorized_text]"] };
    if (form.submit !== "false") {
      dispute.evidence_details.submission_count++;
      dispute.status = "under_review";
    }
    this.event("charge.dispute.updated", dispute);
    return done(dispute);
  }

  /** Ends a dispute as won, which returns the money and the fee, as lost or as prevented. */
  closeDispute(id: string, status: string): Outcome {
    const dispute = this.find("dispute", id);
    if (!dispute || ["won", "lost", "prevented"].includes(dispute.status)) {
      return unexpectedState(dispute);
    }
    this.put(dispute).status = status;
    this.event("charge.dispute.closed", dispute);
    if (status === "won") {
      const moved = this.move("adjustment", dispute, dispute.amount, -DISPUTE_FEE);
      dispute.balance_transactions.push(moved);
      this.event("charge.dispute.funds_reinstated", dispute);
    }
    return done(dispute);
  }
}

/** Returns the response that shows an object. */
export function done(object: StripeObject): Outcome {
  return { status: 200, body: object };
}

/** Returns a refusal in the shape of Stripe's errors. `keep`: the call had begun its work. */
export function refuse(error: object, keep = false, status = 400): Outcome {
  return { status, body: { error: { type: "invalid_request_error", ...error } }, keep };
}

/** Returns the refusal for an object that does not exist. */
export function missing(param: string, status = 404): Outcome {
  return refuse({ code: "resource_missing", param, message: `No such ${param}` }, false, status);
}

/** Returns the refusal of a change that the state does not allow. */
export function unexpectedState(object: StripeObject | undefined): Outcome {
  if (!object) return missing("id");
  const code = `${object.object}_unexpected_state`;
  return refuse({ code, [object.object]: shown(object) }, true);
}

/** Returns an object without the fields that only the double keeps. */
export function shown(object: StripeObject): StripeObject {
  const fields = Object.entries(object).filter(([name]) => !name.startsWith("_"));
  return Object.fromEntries(fields) as StripeObject;
}

/** Returns the metadata of a request. */
export function metadataOf(form: Form): Form {
  return Object.fromEntries(
    Object.entries(form).flatMap(([name, value]) => {
      const field = /^metadata\[(.+)\]$/.exec(name)?.[1];
      return field === undefined ? [] : [[field, value]];
    }),
  );
}
