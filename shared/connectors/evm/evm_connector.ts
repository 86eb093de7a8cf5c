/**
 * The connector of chains of the Ethereum family: payments by stablecoin. It holds no private key.
 * A create derives an address without a request, and the poll reads the rest from the chain
 * (architecture §7).
 */

import { STABLECOINS } from "../../core/currency.ts";
import { ApiError, invalidParameter } from "../../core/errors.ts";
import type {
  Connector,
  ProviderAccount,
  ProviderCall,
  ProviderReply,
} from "../../domain/providers/connector.ts";
import { checkXpub, depositAddress, paymentUri } from "./evm_address.ts";
import { openedFact } from "./evm_facts.ts";
import { pollChain } from "./evm_poll.ts";
import { readEvmSettings } from "./evm_settings.ts";
import { testChain } from "./evm_test_call.ts";
import { readChainTotals } from "./evm_totals.ts";

/** Makes the connector. */
export function evmConnector(): Connector {
  return {
    name: "evm",
    method_kinds: ["stablecoin"],
    secret_is_optional: true,
    checkSettings: (settings) => checkXpub(readEvmSettings(settings).xpub),
    send: (account, call) => Promise.resolve(open(account, call)),
    look: (account, call) => Promise.resolve(open(account, call)),
    find: () => Promise.resolve({ absent: true }),
    poll: pollChain,
    readNotification: () =>
      Promise.reject(new ApiError("unauthorized", "A chain sends no notifications")),
    totals: readChainTotals,
    test: testChain,
  };
}

/** Gives a payment its address. The same call always gets the same one. */
function open(account: ProviderAccount, call: ProviderCall): ProviderReply {
  if (call.op !== "authorize" || !call.deposit) {
    const message = "This account takes payments by stablecoin, and does nothing else";
    return { refused: "provider_refused", message };
  }
  const currency = STABLECOINS.find((asset) => asset === call.currency);
  const { network, chain_id, contracts, xpub } = readEvmSettings(account.settings);
  const contract = currency && contracts[currency];
  if (!currency || !contract) {
    const taken = Object.keys(contracts).join(" and ");
    const { message } = invalidParameter("currency", `must be ${taken} on ${network}`);
    return { refused: "invalid_parameter", message, param: "currency" };
  }
  const { amount_minor } = call;
  const { index, expires_at } = call.deposit;
  const address = depositAddress(xpub, index);
  const uri = paymentUri({ contract, chain_id, address, amount_minor });
  const deposit = { payment_id: call.subject.id, address, currency };
  return {
    facts: [{
      ...openedFact(account, deposit, amount_minor, call.created_at_ms),
      next_action: {
        type: "send_stablecoin",
        network,
        asset: currency,
        contract,
        address,
        amount_minor,
        expires_at,
        uri,
      },
    }],
  };
}
