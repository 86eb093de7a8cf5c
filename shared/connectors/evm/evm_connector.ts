/**
 * The connector for chains of the Ethereum family: payments by stablecoin. It holds no private key.
 * A create derives an address without a request, and the poll reads everything else from the chain
 * (architecture §7). Each method loads its module at its first use, so an installation without
 * accounts on chains starts without this code (ADR 0035).
 */

import { ApiError } from "../../core/errors.ts";
import type { Connector } from "../../domain/providers/connector.ts";

/** Sends a call, or looks at its state. Both do the next step that is still missing. */
const call: Connector["send"] = async (account, call, signal, books) => {
  if (call.op === "refund" || call.op === "transfer") {
    const { payOut } = await import("./evm_payout.ts");
    return await payOut(account, call, signal, books);
  }
  const { openDeposit } = await import("./evm_deposit.ts");
  return openDeposit(account, call);
};

/** Makes the connector. */
export function evmConnector(): Connector {
  return {
    name: "evm",
    method_kinds: ["stablecoin"],
    secret_is_optional: true,
    has_no_notifications: true,
    changeable_settings: [
      "rpc_urls",
      "confirmations",
      "finality",
      "expires_after_seconds",
      "signer_url",
      "max_fee",
      "max_tip",
    ],
    async checkSettings(settings) {
      const { checkEvmSettings } = await import("./evm_deposit.ts");
      return checkEvmSettings(settings);
    },
    send: call,
    look: call,
    find: () => Promise.resolve({ absent: true }),
    async poll(account, cursor, signal, books) {
      const { pollChain } = await import("./evm_poll.ts");
      return await pollChain(account, cursor, signal, books);
    },
    readNotification: () =>
      Promise.reject(new ApiError("unauthorized", "A chain sends no notifications")),
    reread: {
      async after(account, number, signal) {
        const { rereadAfter } = await import("./evm_reread.ts");
        return await rereadAfter(account, number, signal);
      },
      async gone(account, facts, signal) {
        const { goneFrom } = await import("./evm_reread.ts");
        return await goneFrom(account, facts, signal);
      },
    },
    async totals(account, time, cursor, signal, books) {
      const { readChainTotals } = await import("./evm_totals.ts");
      return await readChainTotals(account, time, cursor, signal, books);
    },
    async test(account, signal) {
      const { testChain } = await import("./evm_test_call.ts");
      return await testChain(account, signal);
    },
  };
}
