/**
 * The connector for chains of the Ethereum family: payments by stablecoin. It holds no private key.
 * A create derives an address without a request, and the poll reads everything else from the chain
 * (architecture §7). Each method loads its module at its first use, so an installation without
 * accounts on chains starts without this code (ADR 0009).
 */

import type { Connector, OperationPort } from "../../domain/providers/connector.ts";
import type { ChainStore } from "../../store/chain_store.ts";

export function evmConnector(store: ChainStore): Connector {
  /** Sends an operation, or syncs its state. Both do the next step that is still missing. */
  const send: OperationPort["send"] = async (account, operation, signal) => {
    if (operation.op === "cancel") {
      const message = "A transfer to a wallet is under way: nobody can take it back";
      return { refused: "provider_refused", message };
    }
    if (operation.op === "refund" || operation.op === "transfer") {
      const { payOut } = await import("./evm_payout.ts");
      return await payOut(account, operation, signal, store);
    }
    const { openDeposit } = await import("./evm_deposit.ts");
    return openDeposit(account, operation);
  };
  const port: OperationPort = {
    send,
    sync: send,
    find: () => Promise.resolve({ absent: true }),
  };
  return {
    name: "evm",
    needs_secret: false,
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
    async takes(settings, _method, { currency }) {
      const { readEvmSettings } = await import("./evm_settings.ts");
      return Object.hasOwn(readEvmSettings(settings).contracts, currency);
    },
    async test(account, signal) {
      const { testChain } = await import("./evm_test_call.ts");
      return await testChain(account, signal);
    },
    charges: port,
    payouts: port,
    notifications: null,
    feed: {
      async poll(account, cursor, signal) {
        const { pollChain } = await import("./evm_poll.ts");
        return await pollChain(account, cursor, signal, store);
      },
      async totals(account, time, cursor, signal) {
        const { readChainTotals } = await import("./evm_totals.ts");
        return await readChainTotals(account, time, cursor, signal, store);
      },
    },
  };
}
