/**
 * The connector of the sandbox's provider, for operations whose result comes later by itself: a
 * late or lost response, and the end of an authorization, of a payment whose payer does nothing, or
 * of a dispute that the merchant has not won in time. The worker asks it as it asks live providers.
 */

import type { Connector, OperationPort } from "../domain/providers/connector.ts";
import { laterReply } from "./sandbox_replies.ts";

const port: OperationPort = {
  send: (_account, operation) => Promise.resolve(laterReply(operation)),
  sync: (_account, operation) => Promise.resolve(laterReply(operation)),
  find: (_account, operation) => Promise.resolve(laterReply(operation)),
};

export function sandboxConnector(): Connector {
  return {
    name: "sandbox",
    needs_secret: false,
    changeable_settings: [],
    checkSettings: (settings) => Promise.resolve(settings),
    takes: () => Promise.resolve(true),
    test: () => Promise.resolve("The sandbox needs no provider"),
    charges: port,
    payouts: port,
    notifications: null,
    feed: {
      poll: (_account, cursor) => Promise.resolve({ provider_events: [], cursor, more: false }),
      totals: () => Promise.resolve({ totals: [] }),
    },
  };
}
