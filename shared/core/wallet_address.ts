/**
 * Wallet addresses on the networks of stablecoins. The module checks the form of the text and does
 * not ask the network.
 *
 * The provider looks for test wallets before this check, so they need not pass it (contract §2).
 * Sources: EIP-55 for the chains of the Ethereum family, base58 of a 32-byte key for Solana,
 * base58check for Tron.
 */

import { createHash } from "node:crypto";
import { keccak_256 } from "@noble/hashes/sha3.js";
import { base58, createBase58check } from "@scure/base";
import type { NETWORKS } from "./vocabulary.ts";

export type Network = typeof NETWORKS[number];

/** Longest address of any network: 32 bytes in base58. The limit bounds the work of decoding. */
const MAX_ADDRESS_LENGTH = 44;

const EVM_SHAPE = /^0x[0-9a-fA-F]{40}$/;
const SOLANA_SHAPE = /^[1-9A-HJ-NP-Za-km-z]{32,44}$/;
const SOLANA_KEY_LENGTH = 32;
const TRON_SHAPE = /^T[1-9A-HJ-NP-Za-km-z]{33}$/;
const TRON_PAYLOAD_LENGTH = 21;
const TRON_VERSION = 0x41;

const base58check = createBase58check((bytes: Uint8Array) =>
  createHash("sha256").update(bytes).digest()
);

export function isValidAddress(network: Network, address: string): boolean {
  if (address.length > MAX_ADDRESS_LENGTH) return false;
  switch (network) {
    case "solana":
      return isSolanaAddress(address);
    case "tron":
      return isTronAddress(address);
    default:
      return isEvmAddress(address);
  }
}

/**
 * Chooses the network of an address that comes without one: Ethereum for `0x…`, Tron for 34
 * characters that begin with `T`, Solana for other base58, else null. The other chains of the
 * Ethereum family use the same format, so a request must name them. The function does not check
 * checksums.
 */
export function inferNetwork(address: string): Network | null {
  if (address.length > MAX_ADDRESS_LENGTH) return null;
  if (EVM_SHAPE.test(address)) return "ethereum";
  // 34 base58 characters are about 25 bytes, so a Solana key of 32 bytes never looks like Tron's.
  if (TRON_SHAPE.test(address)) return "tron";
  if (SOLANA_SHAPE.test(address)) return "solana";
  return null;
}

/** Text in one case carries no checksum. Text in mixed case must satisfy EIP-55. */
function isEvmAddress(address: string): boolean {
  if (!EVM_SHAPE.test(address)) return false;
  const digits = address.slice(2);
  const lower = digits.toLowerCase();
  if (digits === lower || digits === digits.toUpperCase()) return true;
  return digits === withChecksumCase(lower);
}

/**
 * Returns 40 lower-case hex digits in the case of EIP-55: a letter is upper case where the hash of
 * the lower-case text has a hex digit above 7.
 */
export function withChecksumCase(lower: string): string {
  const hash = keccak_256(new TextEncoder().encode(lower));
  let result = "";
  for (let at = 0; at < lower.length; at++) {
    const byte = hash[at >> 1]!;
    const nibble = at % 2 === 0 ? byte >> 4 : byte & 15;
    result += nibble > 7 ? lower.charAt(at).toUpperCase() : lower.charAt(at);
  }
  return result;
}

function isSolanaAddress(address: string): boolean {
  return SOLANA_SHAPE.test(address) && base58.decode(address).length === SOLANA_KEY_LENGTH;
}

function isTronAddress(address: string): boolean {
  if (!TRON_SHAPE.test(address)) return false;
  try {
    const payload = base58check.decode(address);
    return payload.length === TRON_PAYLOAD_LENGTH && payload[0] === TRON_VERSION;
  } catch {
    return false; // the checksum is wrong
  }
}
