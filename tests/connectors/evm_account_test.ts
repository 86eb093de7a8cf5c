/**
 * Accounts on a chain: their settings, the addresses below their key, and the operation that opens
 * the address of a payment. viem is the reference. No test needs a node.
 */

import assert from "node:assert/strict";
import { HDKey } from "@scure/bip32";
import { getAddress, parseEther, parseGwei } from "viem";
import { publicKeyToAddress } from "viem/accounts";
import { bytesToHex } from "@noble/hashes/utils.js";
import { secp256k1 } from "@noble/curves/secp256k1.js";
import { ApiError } from "../../shared/core/errors.ts";
import { tokenTransferUri } from "../../shared/core/token_transfer_uri.ts";
import { depositAddress } from "../../shared/connectors/evm/evm_address.ts";
import { evmConnector } from "../../shared/connectors/evm/evm_connector.ts";
import { EVM_NETWORKS } from "../../shared/connectors/evm/evm_networks.ts";
import { rpcUrls } from "../../shared/connectors/evm/evm_rpc.ts";
import { readEvmSettings } from "../../shared/connectors/evm/evm_settings.ts";
import type { Operation } from "../../shared/domain/providers/connector.ts";
import type { Payment } from "../../shared/schema/payment.ts";
import { DOUBLE_TOKEN } from "../support/chain/node_double.ts";
import { chainAccount, NO_CHAIN, XPUB } from "../support/chain/watched.ts";
import { operation, patient } from "../support/connectors/stripe_case.ts";
import { readProjectFile } from "../support/documents/project_files.ts";

const GOOD = { network: "base", rpc_urls: "https://one.example/{secret}", xpub: XPUB };
const WALLET = HDKey.fromMasterSeed(new Uint8Array(32).fill(7));
const TOKEN = EVM_NETWORKS.base.contracts.USDC;
const MINE = { chain_id: "31337", "contract.USDC": TOKEN };

/** Settings to add to good ones, and the setting that is refused; null: none. */
const CASES: [string, Record<string, string>, string | null][] = [
  ["a main network", {}, null],
  ["two nodes", { rpc_urls: "https://a.example,https://b.example" }, null],
  ["three nodes", { rpc_urls: "https://a.io,https://b.io,https://c.io" }, "rpc_urls"],
  ["one node twice", { rpc_urls: "https://a.example,https://a.example" }, "rpc_urls"],
  ["no node", { rpc_urls: "" }, "rpc_urls"],
  ["a node without TLS", { rpc_urls: "http://one.example" }, "rpc_urls"],
  ["a node on this machine", { rpc_urls: "http://127.0.0.1:8545" }, null],
  ["a node here, one elsewhere", { rpc_urls: "http://127.0.0.1:1,https://a.example" }, "rpc_urls"],
  ["a secret as the host", { rpc_urls: "https://{secret}/" }, "rpc_urls"],
  ["another network", { network: "tron" }, "network"],
  ["the chain of another main network", { chain_id: "1" }, "chain_id"],
  ["a pinned contract once more", { "contract.USDC": TOKEN }, null],
  ["another contract on a main network", {
    "contract.USDC": EVM_NETWORKS.ethereum.contracts.USDC,
  }, "contract.USDC"],
  ["a test chain", MINE, null],
  ["a test chain without a contract", { chain_id: "31337" }, "contract.USDC"],
  ["one contract for both assets", { ...MINE, "contract.USDT": TOKEN }, "contract.USDT"],
  ["a contract with a wrong checksum", {
    ...MINE,
    "contract.USDC": TOKEN.replace("f", "F"),
  }, "contract.USDC"],
  ["confirmations", { confirmations: "12" }, null],
  ["no confirmations", { confirmations: "0" }, "confirmations"],
  ["both kinds of finality", { confirmations: "12", finality: "finalized" }, "confirmations"],
  ["another kind of finality", { finality: "latest" }, "finality"],
  ["an expiry of seconds", { expires_after_seconds: "10" }, "expires_after_seconds"],
  ["a signer without an address", { signer_url: "https://signer.example" }, "signer_address"],
  ["the zero address as the signer", { signer_address: `0x${"0".repeat(40)}` }, "signer_address"],
  ["a highest fee", { max_fee: "0.005", max_tip: "2.5" }, null],
  ["a highest fee of 100 times the default", { max_fee: "0.1", max_tip: "100" }, null],
  ["a highest fee above that", { max_fee: "0.1000001" }, "max_fee"],
  ["a highest tip above that", { max_tip: "100.1" }, "max_tip"],
  ["a highest fee of zero", { max_fee: "0" }, "max_fee"],
  ["a highest fee below a wei", { max_fee: `0.${"0".repeat(18)}1` }, "max_fee"],
  ["a negative highest fee", { max_fee: "-1" }, "max_fee"],
  ["a highest fee with a unit", { max_fee: "0.01 ETH" }, "max_fee"],
  ["a highest tip in wei", { max_tip: "1000000000" }, "max_tip"],
  ["an unknown setting", { base_url: "https://one.example" }, "base_url"],
  ["a private key", { xpub: WALLET.derive("m/44'/60'/0'").privateExtendedKey }, "xpub"],
  ["the key of another path", { xpub: WALLET.derive("m/44'/60'").publicExtendedKey }, "xpub"],
  [
    "a key with a wrong character",
    { xpub: XPUB.replace(/.$/, XPUB.endsWith("E") ? "F" : "E") },
    "xpub",
  ],
];

for (const [name, settings, refused] of CASES) {
  Deno.test(`checkSettings() ${name}: ${refused ? `${refused} is refused` : "accepted"}`, async () => {
    const given = { ...GOOD, ...settings };
    let param: unknown = null;
    try {
      await evmConnector(NO_CHAIN).checkSettings(given);
    } catch (error) {
      assert(error instanceof ApiError);
      param = error.details.param;
      if (name === "a private key") {
        assert.match(error.message, /Keep it offline/);
        assert(!error.message.includes(given.xpub));
      }
    }
    assert.equal(param, refused);
  });
}

Deno.test("EVM_NETWORKS pins contracts with the checksum that viem computes", () => {
  for (const { contracts } of Object.values(EVM_NETWORKS)) {
    for (const contract of Object.values(contracts)) assert.equal(contract, getAddress(contract));
  }
});

Deno.test("depositAddress() is the address of the private key of the path m/44'/60'/0'/0/index", () => {
  for (const seed of [1, 2, 3]) {
    const wallet = HDKey.fromMasterSeed(new Uint8Array(32).fill(seed));
    const xpub = wallet.derive("m/44'/60'/0'").publicExtendedKey;
    for (const index of [0, 1, 2, 255, 65_536, 1_000_003, 2 ** 31 - 1]) {
      const { privateKey } = wallet.derive(`m/44'/60'/0'/0/${index}`);
      const key = bytesToHex(secp256k1.getPublicKey(privateKey!, false));
      assert.equal(depositAddress(xpub, index), publicKeyToAddress(`0x${key}`));
    }
  }
});

Deno.test("checkSettings() gives one key one spelling, with the same addresses", async () => {
  const { depth, publicKey, chainCode } = HDKey.fromExtendedKey(XPUB);
  const spellings = [0, 1, 0x80000000].flatMap((index) =>
    [0, 0xdeadbeef].map((parentFingerprint) => {
      const fields = { depth, index, parentFingerprint, chainCode: chainCode! };
      return new HDKey({ ...fields, publicKey: publicKey! }).publicExtendedKey;
    })
  );
  assert.equal(new Set(spellings).size, 6);
  const stored = new Set<string>();
  for (const xpub of [XPUB, ...spellings]) {
    stored.add((await evmConnector(NO_CHAIN).checkSettings({ ...GOOD, xpub })).xpub!);
  }
  assert.equal(stored.size, 1);
  for (const xpub of stored) assert.equal(depositAddress(xpub, 5), depositAddress(XPUB, 5));
});

Deno.test("tokenTransferUri() has the form of EIP-681", () => {
  assert.equal(
    tokenTransferUri({ contract: TOKEN, chain_id: 8453, address: "0xab", amount_minor: 1_990_000 }),
    `ethereum:${TOKEN}@8453/transfer?address=0xab&uint256=1990000`,
  );
});

Deno.test("readEvmSettings() has a highest fee and tip for each network", () => {
  const read = (network: string, more = {}) => readEvmSettings({ ...GOOD, network, ...more });
  for (const [network, { max_fee, max_tip }] of Object.entries(EVM_NETWORKS)) {
    const settings = read(network);
    assert.equal(settings.max_fee, parseEther(max_fee));
    assert.equal(settings.max_tip, Number(parseGwei(max_tip)));
  }
  const { max_fee, max_tip } = read("polygon", { max_fee: "0.000000000000000001", max_tip: "0.5" });
  assert.deepEqual([max_fee, max_tip], [1n, 5e8]);
});

Deno.test("docs/going-live/chain.md has the highest fees and tips of the networks", async () => {
  const text = await readProjectFile("docs/going-live/chain.md");
  for (const [network, { coin, max_fee, max_tip }] of Object.entries(EVM_NETWORKS)) {
    const row = text.split("\n").find((line) =>
      line.includes(`\`${network}\``) && /\| `[\d.]+` (ETH|POL)/.test(line)
    );
    const cells = row?.split("|").map((cell) => cell.trim()).slice(2, 4);
    assert.deepEqual(cells, [`\`${max_fee}\` ${coin}`, `\`${max_tip}\``], network);
  }
});

Deno.test("rpcUrls() gives each node its own secret", () => {
  const rpc_urls = "https://one.example/{secret},https://two.example/?key={secret}";
  const settings = readEvmSettings({ ...GOOD, rpc_urls });
  assert.deepEqual(rpcUrls(settings, "k1,k2"), [
    "https://one.example/k1",
    "https://two.example/?key=k2",
  ]);
  assert.throws(() => rpcUrls(settings, null), /is not set/);
});

const account = chainAccount({ rpc_urls: "http://127.0.0.1:1", "contract.USDC": DOUBLE_TOKEN });
const expires_at = "2027-01-02T04:04:05.000Z";
const { charges: { send, sync, find } } = evmConnector(NO_CHAIN);

const opening = (parts: Partial<Operation> = {}) =>
  operation({
    subject_id: "pay_1",
    subject: { id: "pay_1" } as Payment,
    amount_minor: 1_990_000,
    currency: "USDC",
    request: { token: null },
    created_at: "2027-01-02T03:04:05.000Z",
    reserved: { index: 7, expires_at },
    ...parts,
  });

Deno.test("send() opens the address of the index, and sync() opens the same one", async () => {
  const address = depositAddress(XPUB, 7);
  const reply = await send(account, opening(), patient());
  assert.deepEqual(reply, {
    provider_events: [{
      account_id: account.id,
      reference: `${address}:opened`,
      object_id: address,
      op: "authorize",
      state: "pending",
      subject_id: "pay_1",
      refund_id: null,
      provider_reference: address,
      amount_minor: 1_990_000,
      currency: "USDC",
      at: "2027-01-02T03:04:05.000Z",
      livemode: false,
      next_action: {
        type: "send_stablecoin",
        network: "ethereum",
        asset: "USDC",
        contract: DOUBLE_TOKEN,
        address,
        amount_minor: 1_990_000,
        expires_at,
        uri: `ethereum:${DOUBLE_TOKEN}@31337/transfer?address=${address}&uint256=1990000`,
      },
    }],
  });
  assert.deepEqual(await sync(account, opening(), patient()), reply);
});

/** Parts of an operation that is refused, and the field at fault. */
const REFUSED: Record<string, [parts: Partial<Operation>, param: string | undefined]> = {
  "an asset without a contract": [{ currency: "USDT" }, "currency"],
  "money of a bank": [{ currency: "EUR" }, "currency"],
  "a capture": [{ op: "capture" }, undefined],
};

for (const [name, [parts, param]] of Object.entries(REFUSED)) {
  Deno.test(`send() refuses ${name}`, async () => {
    const reply = await send(account, opening(parts), patient());
    assert("refused" in reply, JSON.stringify(reply));
    assert.equal(reply.param, param);
  });
}

Deno.test("find() has nothing", async () => {
  assert.deepEqual(await find(account, opening(), "0x1", patient()), { absent: true });
});
