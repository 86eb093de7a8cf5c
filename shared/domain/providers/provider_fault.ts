/**
 * Declared faults of the sandbox's provider (contract §7). The operation asks for a fault before it
 * decides, and its commit counts the fault together with the result. So a request that is refused or
 * replayed uses no fault up.
 */

import type { CallRow, Change } from "../../store/commit_rows.ts";
import type { SimulatedResult } from "../../store/provider_call.ts";
import type { FaultStore, MatchedFault } from "../../store/fault_store.ts";
import type { PROVIDER_OPERATIONS } from "../../core/vocabulary.ts";
import type { MethodKind } from "../../schema/payment.ts";
import { type Reply, type ServiceRequest, withoutRateCount } from "../changes/service_request.ts";
import { type Authorization, RAIL_FAILURES } from "./sandbox_provider.ts";
import { TEST_RESULTS } from "./test_values.ts";

/** A declared fault of the provider. */
export type ProviderFault = MatchedFault<"provider">;

/** An operation of the provider that a fault can concern. */
type ProviderOperation = typeof PROVIDER_OPERATIONS[number];

/** Time after which a call settles whose answer has been lost by a declared timeout. */
const TIMEOUT_MS = 60_000;

/** The fault of one request: an operation can ask for it several times, and uses one at most. */
export class FaultOfRequest {
  readonly #store: FaultStore;
  readonly #request: ServiceRequest;
  #fault: ProviderFault | null = null;

  constructor(store: FaultStore, request: ServiceRequest) {
    this.#store = store;
    this.#request = request;
  }

  /** Finds the next fault of an operation. One round trip if the sandbox has faults, else none. */
  async find(operation: ProviderOperation, method_kind: MethodKind): Promise<ProviderFault | null> {
    const { access, has_provider_faults } = this.#request;
    if (!has_provider_faults) return null;
    const call = { operation, method_kind };
    return this.#fault = await this.#store.find(withoutRateCount(access), call);
  }

  /**
   * Adds the name of the fault to the reply that it has decided. A refused request has found the
   * fault and has not used it.
   */
  name(reply: Reply): Reply {
    if (this.#fault === null || reply.fault_id !== this.#fault.id) return reply;
    return { ...reply, fault: this.#fault.fault };
  }
}

/** Makes the commit of a change count its fault. */
export function countFault(fault: ProviderFault | null, change: Change): Change {
  return fault === null ? change : { ...change, fault_id: fault.id };
}

/** Returns the answer of the provider to an authorization with a fault. */
export function faultyAuthorization({ fault }: ProviderFault, kind: MethodKind): Authorization {
  switch (fault) {
    case "timeout":
      return TEST_RESULTS.late;
    case "declined":
      return { result: "declined", code: "payment_declined" };
    case "failed": {
      const { code, return_code } = RAIL_FAILURES[kind];
      return { result: "failed", code, ...(return_code !== null && { return_code }) };
    }
  }
}

/**
 * Returns the members of a call whose answer has been lost. The worker asks again after
 * `TIMEOUT_MS`, and gets the usual answer: success, or that of a declined or failing instrument.
 */
export function lostCall(usual?: Authorization): Pick<CallRow, "delay_ms" | "request"> {
  const simulated = usual && laterResult(usual);
  return {
    delay_ms: TIMEOUT_MS,
    request: { token: null, return_url: null, ...(simulated && { simulated }) },
  };
}

function laterResult(usual: Authorization): SimulatedResult | null {
  switch (usual.result) {
    case "declined":
      return { state: "declined", decline_code: usual.code };
    case "failed": {
      const { code, return_code } = usual;
      return { state: "failed", failure_code: code, ...(return_code && { return_code }) };
    }
    default:
      return null;
  }
}
