/**
 * Instruments: cards and SEPA mandates that a payment has saved, for later payments (contract §2).
 */

import { type List, listOf } from "./list.ts";
import type { ReadOptions, RequestOptions } from "./request_options.ts";
import type { Transport } from "./transport.ts";
import type { Instrument, ListInstrumentsParams } from "./resources.ts";

const INSTRUMENTS = "/api-v1-payments/v1/instruments";

/** Operations on instruments. A failed one throws a `PaymentsError`. */
export class Instruments {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Retrieves an instrument. */
  retrieve(id: string, options?: ReadOptions): Promise<Instrument> {
    return this.#transport.send({ method: "GET", path: [INSTRUMENTS, id] }, options);
  }

  /** Lists instruments, newest first. */
  list(params?: ListInstrumentsParams, options?: ReadOptions): List<Instrument> {
    return listOf(this.#transport, [INSTRUMENTS], params, options);
  }

  /** Ends an instrument. One that was never active: 409 `invalid_state`. */
  end(id: string, options?: RequestOptions): Promise<Instrument> {
    return this.#transport.send({ method: "DELETE", path: [INSTRUMENTS, id] }, options);
  }
}
