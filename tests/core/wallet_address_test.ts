/**
 * Wallet addresses: published examples of each network, and errors that each format must detect.
 */

import assert from "node:assert/strict";
import { sha256 } from "@noble/hashes/sha2.js";
import { base58, createBase58check } from "@scure/base";
import { NETWORKS } from "../../shared/core/vocabulary.ts";
import { inferNetwork, isValidAddress, type Network } from "../../shared/core/wallet_address.ts";

const EVM_NETWORKS = NETWORKS.filter((network) => network !== "solana" && network !== "tron");

const CHECKSUM = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
const USDC_ON_SOLANA = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v";
const SOLANA_FROM_T = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA";
const USDT_ON_TRON = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t";

const VALID: [network: Network, address: string][] = [
  ["ethereum", CHECKSUM],
  ["ethereum", "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"],
  ["base", "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB"],
  ["polygon", "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb"],
  ["arbitrum", "0x52908400098527886E0F7030069857D2E4169EE7"],
  ["optimism", "0xde709f2102306220921060314715629080e2fb77"],
  ["ethereum", CHECKSUM.toLowerCase()],
  ["ethereum", "0x" + "0".repeat(40)],
  ["solana", USDC_ON_SOLANA],
  ["solana", "So11111111111111111111111111111111111111112"],
  ["solana", "1".repeat(32)],
  ["solana", SOLANA_FROM_T],
  ["tron", USDT_ON_TRON],
];

for (const [network, address] of VALID) {
  Deno.test(`isValidAddress() accepts ${address} on ${network}`, () => {
    assert.ok(isValidAddress(network, address));
  });
}

const base58check = createBase58check(sha256);
const OTHER_VERSION = base58check.encode(Uint8Array.of(0x42, ...new Uint8Array(20)));
const LONGER_PAYLOAD = base58check.encode(new Uint8Array(22).fill(0x41));

const REFUSED: [reason: string, network: Network, address: string][] = [
  ["an empty text", "ethereum", ""],
  ["a wrong checksum", "ethereum", CHECKSUM.replace("aA", "Aa")],
  ["a mixed-case address on every chain of the family", "base", CHECKSUM.replace("aA", "Aa")],
  ["39 digits", "ethereum", CHECKSUM.slice(0, -1)],
  ["41 digits", "ethereum", CHECKSUM + "0"],
  ["no 0x", "ethereum", CHECKSUM.slice(2)],
  ["0X", "ethereum", CHECKSUM.replace("0x", "0X")],
  ["a letter beyond hex", "ethereum", "0x" + "g".repeat(40)],
  ["a space", "ethereum", CHECKSUM + " "],
  ["a Tron address", "ethereum", USDT_ON_TRON],
  ["a line feed at the end", "solana", USDC_ON_SOLANA + "\n"],
  ["a character outside base58", "solana", "0" + USDC_ON_SOLANA.slice(1)],
  ["31 bytes", "solana", base58.encode(new Uint8Array(31).fill(255))],
  ["33 bytes", "solana", base58.encode(new Uint8Array(33).fill(1))],
  ["33 bytes in 33 characters", "solana", "1".repeat(33)],
  ["44 characters beyond 32 bytes", "solana", "z".repeat(44)],
  ["an Ethereum address", "solana", CHECKSUM],
  ["a Tron address", "solana", USDT_ON_TRON],
  ["a wrong checksum", "tron", USDT_ON_TRON.replace("TR7", "TR8")],
  ["a cut address", "tron", USDT_ON_TRON.slice(0, -1)],
  ["another version byte", "tron", OTHER_VERSION],
  ["a longer payload", "tron", LONGER_PAYLOAD],
  ["a Solana address", "tron", SOLANA_FROM_T],
  ["a very long text", "solana", "1".repeat(1_000_000)],
];

for (const [reason, network, address] of REFUSED) {
  Deno.test(`isValidAddress() refuses ${reason} on ${network}`, () => {
    assert.equal(isValidAddress(network, address), false);
  });
}

Deno.test("isValidAddress() refuses every changed letter case of a checksum address", () => {
  for (const network of EVM_NETWORKS) {
    for (let at = 2; at < CHECKSUM.length; at++) {
      const letter = CHECKSUM.charAt(at);
      const other = letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase();
      const changed = CHECKSUM.slice(0, at) + other + CHECKSUM.slice(at + 1);
      assert.equal(isValidAddress(network, changed), changed === CHECKSUM, changed);
    }
  }
});

const INFERRED: [address: string, network: Network | null][] = [
  [CHECKSUM, "ethereum"],
  [CHECKSUM.replace("aA", "Aa"), "ethereum"],
  [USDT_ON_TRON, "tron"],
  [USDT_ON_TRON.replace("TR7", "TR8"), "tron"],
  [USDC_ON_SOLANA, "solana"],
  [SOLANA_FROM_T, "solana"],
  ["1".repeat(32), "solana"],
  ["", null],
  ["0x", null],
  ["hello", null],
  [CHECKSUM + "0", null],
  ["0".repeat(40), null],
  ["z".repeat(100_000), null],
];

for (const [address, network] of INFERRED) {
  Deno.test(`inferNetwork() of ${JSON.stringify(address.slice(0, 44))} is ${network}`, () => {
    assert.equal(inferNetwork(address), network);
  });
}
