/**
 * Derives the address of a payment by stablecoin, without a request. Only a create of such a
 * payment and the operator's commands load this module, because the code of the curve is large (ADR
 * 0009).
 */

import * as z from "zod";
import { STABLECOINS } from "../../core/currency.ts";
import { invalidParameter } from "../../core/errors.ts";
import { tokenTransferUri } from "../../core/token_transfer_uri.ts";
import type {
  Operation,
  ProviderAccount,
  ProviderReply,
} from "../../domain/providers/connector.ts";
import { canonicalXpub, depositAddress } from "./evm_address.ts";
import { openedEvent } from "./evm_events.ts";
import { readEvmSettings } from "./evm_settings.ts";

/** The place of a payment's address below the extended public key of its account. */
const Reserved = z.object({
  /** Allocated by the database, never used twice. */
  index: z.number().int(),
  /** RFC 3339. The payer can send until then. */
  expires_at: z.string(),
});

/** Derives the address of an authorization. The same operation always gets the same address. */
export function openDeposit(account: ProviderAccount, operation: Operation): ProviderReply {
  const reserved = Reserved.safeParse(operation.reserved);
  if (operation.op !== "authorize" || !reserved.success) {
    const message = "A chain takes only payments by stablecoin, refunds and transfers";
    return { refused: "provider_refused", message };
  }
  const currency = STABLECOINS.find((asset) => asset === operation.currency);
  const { network, chain_id, contracts, xpub } = readEvmSettings(account.settings);
  const contract = currency && contracts[currency];
  if (!currency || !contract) {
    const taken = Object.keys(contracts).join(" and ");
    const { message } = invalidParameter("currency", `must be ${taken} on ${network}`);
    return { refused: "invalid_parameter", message, param: "currency" };
  }
  const { amount_minor } = operation;
  const { index, expires_at } = reserved.data;
  const address = depositAddress(xpub, index);
  const uri = tokenTransferUri({ contract, chain_id, address, amount_minor });
  const deposit = { payment_id: operation.subject.id, address, currency };
  return {
    provider_events: [{
      ...openedEvent(account, deposit, amount_minor, Date.parse(operation.created_at)),
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

/**
 * Checks the settings of an account, with the curve point of its key.
 *
 * @returns the settings to store, with the one spelling of the key
 * @throws {ApiError} `invalid_parameter` with the name of the setting
 */
export function checkEvmSettings(settings: Readonly<Record<string, string>>) {
  return { ...settings, xpub: canonicalXpub(readEvmSettings(settings).xpub) };
}
