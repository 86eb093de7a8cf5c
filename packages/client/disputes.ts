/** Disputes: payments that the payer has charged back (contract §3). */

import type { RequestOptions } from "./request_options.ts";
import { Collection } from "./resource.ts";
import type { Dispute, ListDisputesParams, SubmitEvidenceInput } from "./resources.ts";

/** Operations on disputes. A failed one throws a `PaymentsError`. */
export class Disputes extends Collection<Dispute, ListDisputesParams> {
  protected readonly path = "/api-v1-payments/v1/disputes";

  /** Sends evidence. In the sandbox the text `winning_evidence` wins the dispute at once. */
  submitEvidence(
    id: string,
    input: SubmitEvidenceInput,
    options?: RequestOptions,
  ): Promise<Dispute> {
    return this.transport.post([this.path, id, "evidence"], input, options);
  }

  /** Gives up an open dispute: it is `lost`. In another status: 409 `invalid_state`. */
  accept(id: string, options?: RequestOptions): Promise<Dispute> {
    return this.transport.post([this.path, id, "accept"], undefined, options);
  }
}
