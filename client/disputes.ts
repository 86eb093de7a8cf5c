/**
 * Disputes: payments that the payer has charged back (contract §3).
 */

import { type List, listOf, type ListParams } from "./list.ts";
import type { ReadOptions, RequestOptions } from "./request_options.ts";
import type { Transport } from "./transport.ts";
import type { DisputeReason, DisputeStatus } from "./vocabulary.ts";

/** The evidence of a merchant. */
export interface DisputeEvidence {
  text: string;
  /** Null: the evidence is saved, and not submitted. */
  submitted_at: string | null;
}

/** A dispute. Times are RFC 3339 in UTC. */
export interface Dispute {
  /** `dp_…` */
  id: string;
  object: "dispute";
  payment_id: string;
  /** Minor units of the currency. */
  amount_minor: number;
  currency: string;
  reason: DisputeReason;
  status: DisputeStatus;
  evidence: DisputeEvidence | null;
  /** Evidence is taken until then. Null if the provider of a live payment names no time. */
  evidence_due_by: string | null;
  created_at: string;
  /** The time at which the dispute was won or lost. */
  closed_at: string | null;
}

/** `POST /v1/disputes/{id}/evidence` */
export interface SubmitEvidenceInput {
  /** At most 20 000 characters. It replaces saved evidence. */
  text: string;
  /** False only saves the evidence. By default true: it is submitted, which is possible once. */
  submit?: boolean | undefined;
}

/** `GET /v1/disputes` */
export interface ListDisputesParams extends ListParams {
  payment_id?: string | undefined;
  status?: DisputeStatus | undefined;
}

const DISPUTES = "/api-v1-payments/v1/disputes";

/** Operations on disputes. A failed one throws a `PaymentsError`. */
export class Disputes {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Retrieves a dispute. */
  retrieve(id: string, options?: ReadOptions): Promise<Dispute> {
    return this.#transport.send({ method: "GET", path: [DISPUTES, id] }, options);
  }

  /** Lists disputes, newest first. */
  list(params?: ListDisputesParams, options?: ReadOptions): List<Dispute> {
    return listOf(this.#transport, [DISPUTES], params, options);
  }

  /** Sends evidence. In the sandbox the text `winning_evidence` wins the dispute at once. */
  submitEvidence(
    id: string,
    input: SubmitEvidenceInput,
    options?: RequestOptions,
  ): Promise<Dispute> {
    const path = [DISPUTES, id, "evidence"];
    return this.#transport.send({ method: "POST", path, body: input }, options);
  }

  /** Gives up an open dispute: it is `lost`. In another status: 409 `invalid_state`. */
  accept(id: string, options?: RequestOptions): Promise<Dispute> {
    return this.#transport.send({ method: "POST", path: [DISPUTES, id, "accept"] }, options);
  }
}
