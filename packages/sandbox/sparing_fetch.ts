/**
 * Reads that leave declared faults to the requests that the user tests (contract §7). The console
 * and the command line send all their reads in this way.
 */

import type { PaymentsClientOptions } from "../client/mod.ts";

/** Sends a request. A read uses up no declared fault; the API takes this with test keys only. */
export const fetchSparingFaults: NonNullable<PaymentsClientOptions["fetch"]> = (url, init) =>
  fetch(
    url,
    init.method === "GET"
      ? { ...init, headers: { ...init.headers, "Sandbox-Fault": "none" } }
      : init,
  );
