/**
 * The provider of the sandboxes, with its declared faults (contract §7). An operation asks for a
 * fault before it decides, and its commit counts the fault together with the result. So a request
 * that is refused or replayed uses no fault up.
 */

import { PROVIDER_OPERATIONS } from "../core/vocabulary.ts";
import type { FaultStore } from "./fault_store.ts";
import { type ServiceRequest, withoutRateCount } from "../domain/changes/service_request.ts";
import type { ProviderAtOnce, ReplyAtOnce } from "../domain/operations/operations.ts";
import type { Begun } from "../domain/providers/operation.ts";
import { methodOf } from "../domain/rails.ts";
import type { PayerUrls } from "./challenge_url.ts";
import { replyAtOnce } from "./sandbox_replies.ts";

/** Creates the provider. One round trip for an operation if the sandbox has faults, else none. */
export function createSandboxProvider(faults: FaultStore, urls: PayerUrls): ProviderAtOnce {
  async function faulty(begun: Begun, request: ServiceRequest): Promise<ReplyAtOnce> {
    const { operation: { op }, change } = begun;
    const { at_ms, random } = change.context;
    const operation = PROVIDER_OPERATIONS.find((name) => name === op);
    const fault = operation
      ? await faults.find(withoutRateCount(request.access), {
        operation,
        method_kind: methodOf(change.subject),
      })
      : null;
    const reply = replyAtOnce(begun, fault, at_ms, { random, urls });
    return fault === null ? { reply } : { reply, fault };
  }

  return {
    reply(begun, request) {
      if (hasFaults(request)) return faulty(begun, request);
      const { at_ms, random } = begun.change.context;
      return { reply: replyAtOnce(begun, null, at_ms, { random, urls }) };
    },
  };
}

function hasFaults({ settings }: ServiceRequest): boolean {
  return settings?.fault_kinds.includes("provider") ?? false;
}
