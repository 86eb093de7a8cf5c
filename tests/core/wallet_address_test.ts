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

const VALID: [network: Network, ...addresses: string[]][] = [
  ["ethereum", CHECKSUM, CHECKSUM.toLowerCase(), "0x" + "0".repeat(40)],
  ["ethereum", "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"],
  ["base", "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB"],
  ["polygon", "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb"],
  ["arbitrum", "0x52908400098527886E0F7030069857D2E4169EE7"],
  ["optimism", "0xde709f2102306220921060314715629080e2fb77"],
  ["solana", USDC_ON_SOLANA, SOLANA_FROM_T, "1".repeat(32)],
  ["solana", "So11111111111111111111111111111111111111112"],
  ["tron", USDT_ON_TRON],
];
for (const [network, ...addresses] of VALID) {
  Deno.test(`isValidAddress() accepts ${addresses.join(", ")} on ${network}`, () => {
    for (const address of addresses) assert.ok(isValidAddress(network, address), address);
  });
}

const base58check = createBase58check(sha256);
const OTHER_VERSION = base58check.encode(Uint8Array.of(0x42, ...new Uint8Array(20)));
const LONGER_PAYLOAD = base58check.encode(new Uint8Array(22).fill(0x41));

const WRONG_CHECKSUM = CHECKSUM.replace("aA", "Aa");
/** Texts that each network refuses: wrong check digits, lengths and characters, other networks. */
const REFUSED: [network: Network, ...texts: string[]][] = [
  ["ethereum", "", WRONG_CHECKSUM, CHECKSUM.slice(0, -1), CHECKSUM + "0", CHECKSUM.slice(2)],
  ["ethereum", CHECKSUM.replace("0x", "0X"), "0x" + "g".repeat(40), CHECKSUM + " ", USDT_ON_TRON],
  ["base", WRONG_CHECKSUM],
  ["solana", USDC_ON_SOLANA + "\n", "0" + USDC_ON_SOLANA.slice(1), CHECKSUM, USDT_ON_TRON],
  [
    "solana",
    base58.encode(new Uint8Array(31).fill(255)),
    base58.encode(new Uint8Array(33).fill(1)),
  ],
  // 33 bytes, and more than 32 bytes in 44 characters.
  ["solana", "1".repeat(33), "z".repeat(44), "1".repeat(1_000_000)],
  ["tron", USDT_ON_TRON.replace("TR7", "TR8"), USDT_ON_TRON.slice(0, -1), SOLANA_FROM_T],
  ["tron", OTHER_VERSION, LONGER_PAYLOAD],
];
for (const [network, ...texts] of REFUSED) {
  for (const text of texts) {
    Deno.test(`isValidAddress() refuses ${JSON.stringify(text.slice(0, 50))} on ${network}`, () => {
      assert.equal(isValidAddress(network, text), false);
    });
  }
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

const INFERRED: [network: Network | null, ...addresses: string[]][] = [
  ["ethereum", CHECKSUM, WRONG_CHECKSUM],
  ["tron", USDT_ON_TRON, USDT_ON_TRON.replace("TR7", "TR8")],
  ["solana", USDC_ON_SOLANA, SOLANA_FROM_T, "1".repeat(32)],
  [null, "", "0x", "hello", CHECKSUM + "0", "0".repeat(40), "z".repeat(100_000)],
];
for (const [network, ...addresses] of INFERRED) {
  Deno.test(`inferNetwork() finds ${network}`, () => {
    for (const address of addresses) assert.equal(inferNetwork(address), network, address);
  });
}
