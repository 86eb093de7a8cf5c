/** Disputes: payments that the payer has charged back (contract §3). */

import { type List, listOf } from "./list.ts";
import type { ReadOptions, RequestOptions } from "./request_options.ts";
import type { Transport } from "./transport.ts";
import type { Dispute, ListDisputesParams, SubmitEvidenceInput } from "./resources.ts";

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
