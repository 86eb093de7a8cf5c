/**
 * The address of a payment below the extended public key of an account, and the link that asks a
 * wallet to pay. The key is that of the path m/44'/60'/0', and addresses are `0/index` below it, the
 * external chain of BIP-44. A wallet with the same seed shows the same addresses.
 * Sources: BIP-32, BIP-44, EIP-55, EIP-681.
 */

import { HDKey } from "@scure/bip32";
import { secp256k1 } from "@noble/curves/secp256k1.js";
import { keccak_256 } from "@noble/hashes/sha3.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { invalidParameter } from "../../core/errors.ts";
import { withChecksumCase } from "../../core/wallet_address.ts";

/** Depth of m/44'/60'/0'. */
const ACCOUNT_DEPTH = 3;
const EXTERNAL_CHAIN = 0;

/** The external chains by extended public key: each costs a derivation. */
const chains = new Map<string, HDKey>();
/** More keys than an installation has. */
const CHAINS_MAX = 100;

/**
 * Derives an address.
 *
 * @param index 0 … 2³¹ − 1
 * @returns EIP-55
 * @throws {ApiError} `invalid_parameter` for `xpub`
 */
export function depositAddress(xpub: string, index: number): string {
  const { publicKey } = externalChain(xpub).deriveChild(index);
  const point = secp256k1.Point.fromBytes(publicKey!).toBytes(false);
  const hash = keccak_256(point.subarray(1));
  return `0x${withChecksumCase(bytesToHex(hash.subarray(-20)))}`;
}

/**
 * Checks an extended public key with its checksum, its point and its depth.
 *
 * @throws {ApiError} `invalid_parameter` for `xpub`
 */
export function checkXpub(xpub: string): void {
  externalChain(xpub);
}

/** Returns the link of EIP-681 that asks a wallet for a transfer of a token. */
export function paymentUri(
  { contract, chain_id, address, amount_minor }: {
    contract: string;
    chain_id: number;
    address: string;
    amount_minor: number;
  },
): string {
  return `ethereum:${contract}@${chain_id}/transfer?address=${address}&uint256=${amount_minor}`;
}

function externalChain(xpub: string): HDKey {
  const known = chains.get(xpub);
  if (known) return known;
  const key = readKey(xpub);
  if (key.depth !== ACCOUNT_DEPTH) {
    throw invalidParameter(
      "xpub",
      `must be the key of the path m/44'/60'/0', with the depth 3: it has the depth ${key.depth}`,
    );
  }
  const chain = key.deriveChild(EXTERNAL_CHAIN);
  if (chains.size >= CHAINS_MAX) chains.clear();
  chains.set(xpub, chain);
  return chain;
}

function readKey(xpub: string): HDKey {
  try {
    return HDKey.fromExtendedKey(xpub);
  } catch {
    throw invalidParameter("xpub", "is not an extended public key: a character is wrong");
  }
}
