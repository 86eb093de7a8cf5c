/**
 * The payment instructions of the sandbox (contract §2). They look like those of a live key, and
 * their accounts and addresses can take no money: people scan the QR codes of a sandbox with real
 * banking apps and wallets.
 */

import { createHash } from "node:crypto";
import { BANK_SCHEMES } from "../core/bank_schemes.ts";
import { formatTime } from "../core/clock.ts";
import { isStablecoin, type Stablecoin } from "../core/currency.ts";
import { tokenTransferUri } from "../core/token_transfer_uri.ts";
import { withChecksumCase } from "../core/wallet_address.ts";
import { bankTransferTo } from "../domain/payments/bank_transfer.ts";
import { RAILS } from "../domain/rails.ts";
import { OWN_TEST_ACCOUNTS } from "../domain/providers/test_values.ts";
import type { NextAction, Payment } from "../schema/payment.ts";

/** Chain id of Sepolia, the test network of Ethereum. A wallet asks for no real token there. */
const SEPOLIA_CHAIN_ID = 11_155_111;
/**
 * The tokens on Sepolia. That for USDC is Circle's test token
 * (developers.circle.com/stablecoins/usdc-contract-addresses). Tether has none there, so USDT has
 * an address that no contract can have.
 */
const SEPOLIA_CONTRACTS: Record<Stablecoin, string> = {
  USDC: "0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238",
  USDT: "0xD20B15ECC3013028c3CC89CB6220D12D185b9de0",
};

/** Where the payer sends the money, and the time in which that is possible. */
interface PaymentInstructions {
  next_action: NextAction;
  delay_ms: number;
}

/**
 * Returns the instructions for the payer of a payment from `at_ms` on. Null: the payer of this rail
 * sends nothing, or no chain has the currency.
 */
export function instructionsFor(payment: Payment, at_ms: number): PaymentInstructions | null {
  const { bank, payer_sends } = RAILS[payment.method_kind];
  if (payer_sends === null) return null;
  const delay_ms = payer_sends.window_ms;
  const expires_at = formatTime(at_ms + delay_ms);
  if (bank !== null) {
    const rail = payment.currency === BANK_SCHEMES.sepa.currency ? "sepa" : bank;
    const next_action = bankTransferTo(OWN_TEST_ACCOUNTS[rail], payment, expires_at);
    return { next_action, delay_ms };
  }
  payer_sends.to satisfies "address";
  if (!isStablecoin(payment.currency)) return null;
  return { next_action: sendAction(payment, payment.currency, expires_at), delay_ms };
}

/** `network` is that of a live payment, and the link leads to the test network. */
function sendAction({ id, amount_minor }: Payment, asset: Stablecoin, expires_at: string) {
  const contract = SEPOLIA_CONTRACTS[asset];
  const address = addressOf(`sandbox deposit ${id}`);
  const uri = tokenTransferUri({ contract, chain_id: SEPOLIA_CHAIN_ID, address, amount_minor });
  const place = { network: "ethereum", asset, contract, address } as const;
  return { type: "send_stablecoin", ...place, amount_minor, expires_at, uri } as const;
}

/** Makes an address from a hash. Nobody has a private key for it, so nobody can use it. */
function addressOf(text: string): string {
  const hash = createHash("sha256").update(text).digest("hex");
  return `0x${withChecksumCase(hash.slice(0, 40))}`;
}
