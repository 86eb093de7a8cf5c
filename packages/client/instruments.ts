/**
 * Instruments: cards and SEPA mandates that a payment has saved, for later payments (contract §2).
 */

import type { RequestOptions } from "./request_options.ts";
import { Collection } from "./resource.ts";
import type { Instrument, ListInstrumentsParams } from "./resources.ts";

/** Operations on instruments. A failed one throws a `PaymentsError`. */
export class Instruments extends Collection<Instrument, ListInstrumentsParams> {
  protected readonly path = "/api-v1-payments/v1/instruments";

  /** Ends an instrument. One that was never active: 409 `invalid_state`. */
  end(id: string, options?: RequestOptions): Promise<Instrument> {
    return this.transport.delete([this.path, id], options);
  }
}
