/**
 * Derives the address of a payment from the extended public key of an account. The key has the path
 * m/44'/60'/0', and the address is its child `0/index`, in the external chain of BIP-44. A wallet
 * with the same seed shows the same addresses. Sources: BIP-32, BIP-44, EIP-55.
 */

import { HDKey } from "@scure/bip32";
import { secp256k1 } from "@noble/curves/secp256k1.js";
import { keccak_256 } from "@noble/hashes/sha3.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { invalidParameter } from "../../core/errors.ts";
import { RecentMap } from "../../core/recent_map.ts";
import { withChecksumCase } from "../../core/wallet_address.ts";

/** Depth of m/44'/60'/0'. */
const ACCOUNT_DEPTH = 3;
const EXTERNAL_CHAIN = 0;

/** Far more keys than one installation uses. */
const CHAINS_MAX = 100;
/** The external chain of each extended public key, cached because its derivation is slow. */
const chains = new RecentMap<string, HDKey>(CHAINS_MAX);

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
 * Checks the checksum, the curve point and the depth of an extended public key, and clears what
 * derives no address: the fingerprint of the parent, and the child number. Some wallets leave these
 * out. The counter of indexes belongs to the text, so one key must always be the same text. Throws
 * `invalid_parameter` for `xpub`.
 */
export function canonicalXpub(xpub: string): string {
  const { depth, publicKey, chainCode } = readKey(xpub);
  return new HDKey({ depth, publicKey: publicKey!, chainCode: chainCode! }).publicExtendedKey;
}

function externalChain(xpub: string): HDKey {
  const known = chains.get(xpub);
  if (known) return known;
  const chain = readKey(xpub).deriveChild(EXTERNAL_CHAIN);
  chains.set(xpub, chain);
  return chain;
}

function readKey(xpub: string): HDKey {
  const key = decodeKey(xpub);
  if (key.depth === ACCOUNT_DEPTH) return key;
  throw invalidParameter(
    "xpub",
    `must be the key of the path m/44'/60'/0', which has depth 3: this key has depth ${key.depth}`,
  );
}

function decodeKey(xpub: string): HDKey {
  try {
    return HDKey.fromExtendedKey(xpub);
  } catch {
    throw invalidParameter("xpub", "is not a valid extended public key: its checksum is wrong");
  }
}
