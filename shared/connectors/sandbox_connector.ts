/**
 * The connector of the sandbox's provider, for operations whose result comes later by itself: a late
 * or lost answer, and the end of an authorization, of a payment whose payer does nothing, or of a
 * dispute that the merchant has not won in time. The worker asks it as it asks live providers.
 */

import { METHOD_KINDS } from "../core/vocabulary.ts";
import type { Connector } from "../domain/providers/connector.ts";
import { laterReply } from "../domain/sandbox/sandbox_provider.ts";

/** Creates the connector of the sandbox. */
export function sandboxConnector(): Connector {
  return {
    name: "sandbox",
    secret_is_optional: true,
    method_kinds: METHOD_KINDS,
    checkSettings: (settings) => Promise.resolve(settings),
    send: (_account, call) => Promise.resolve(laterReply(call)),
    look: (_account, call) => Promise.resolve(laterReply(call)),
    find: (_account, call) => Promise.resolve(laterReply(call)),
    poll: (_account, cursor) => Promise.resolve({ facts: [], cursor, more: false }),
    readNotification: () => Promise.resolve([]),
    totals: () => Promise.resolve({ totals: [] }),
    test: () => Promise.resolve("The sandbox needs no provider"),
  };
}
