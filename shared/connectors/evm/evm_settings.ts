/**
 * Settings of an account on a chain: the network, the RPC addresses, the extended public key, and
 * the signer of payouts. They are checked when an account is added, and again for each request. No
 * setting is a secret: `{secret}` in an RPC address stands for the key of its provider.
 */

import { type Stablecoin, STABLECOINS } from "../../core/currency.ts";
import { invalidParameter } from "../../core/errors.ts";
import { isLoopback } from "../../core/loopback.ts";
import { isValidAddress, withChecksumCase } from "../../core/wallet_address.ts";
import { type FeeLimits, parseCoins, parseUnits } from "./evm_fees.ts";
import { EVM_NETWORKS, type EvmNetwork, isMainChain } from "./evm_networks.ts";

/** Stands for the secret of the account in `rpc_urls`. */
export const SECRET_MARK = "{secret}";

/** 1 hour: the payer sees the QR code and pays at once, and the amount is fixed. */
const EXPIRES_AFTER_SECONDS = 3_600;
const EXPIRES_AFTER_SECONDS_MIN = 300;
/** 30 days, as long as a closed address is watched. */
const EXPIRES_AFTER_SECONDS_MAX = 2_592_000;
const CONFIRMATIONS_MAX = 10_000;
const RPC_URLS_MAX = 2;
/** Highest `max_fee` and `max_tip`, as a multiple of the default: more is a typing error. */
const LIMIT_OF_DEFAULT = 100n;
const GWEI_DIGITS = 9;

const NAMES: readonly string[] = [
  "network",
  "chain_id",
  "rpc_urls",
  "xpub",
  ...STABLECOINS.map((asset) => `contract.${asset}`),
  "confirmations",
  "finality",
  "expires_after_seconds",
  "signer_url",
  "signer_address",
  "max_fee",
  "max_tip",
];
const XPUB = /^xpub[1-9A-HJ-NP-Za-km-z]{107}$/;
const PRIVATE_KEY = /^[a-z]prv|^(0x)?[0-9a-fA-F]{64}$|\s/i;

export interface EvmSettings extends FeeLimits {
  chain_id: number;
  /** One or two. */
  rpc_urls: readonly string[];
  xpub: string;
  /** EIP-55. An asset without a contract is not taken. */
  contracts: Readonly<Partial<Record<Stablecoin, string>>>;
  /** Blocks with which a transfer is final, counting its own. Null: the block tag `finalized`. */
  confirmations: number | null;
  expires_after_seconds: number;
  /** The JSON-RPC address of the signer; null: people sign payouts. */
  signer_url: string | null;
  /** The address that sends payouts, EIP-55. */
  signer_address: string | null;
  /** The chain is a main network, so its tokens are money. */
  is_main: boolean;
}

type Texts = Readonly<Record<string, string>>;

/**
 * Reads the settings of an account. The curve point in `xpub` is not checked here. Throws
 * `invalid_parameter` with the name of the setting.
 */
export function readEvmSettings(settings: Texts): EvmSettings {
  for (const name of Object.keys(settings)) {
    if (NAMES.includes(name)) continue;
    throw invalidParameter(name, `is not a setting of evm: the settings are ${NAMES.join(", ")}`);
  }
  const network = readNetwork(settings.network);
  const chain_id = readNumber(settings, "chain_id", EVM_NETWORKS[network].chain_id, 1, 2 ** 52);
  const signer_address = readAddress(settings, "signer_address");
  const signer_url = settings.signer_url === undefined
    ? null
    : readUrl("signer_url", settings.signer_url);
  if (signer_url !== null && signer_address === null) {
    throw invalidParameter("signer_address", "is required with signer_url");
  }
  return {
    network,
    chain_id,
    rpc_urls: readRpcUrls(settings.rpc_urls),
    xpub: readXpub(settings.xpub),
    contracts: readContracts(settings, network, chain_id),
    confirmations: readConfirmations(settings),
    expires_after_seconds: readNumber(
      settings,
      "expires_after_seconds",
      EXPIRES_AFTER_SECONDS,
      EXPIRES_AFTER_SECONDS_MIN,
      EXPIRES_AFTER_SECONDS_MAX,
    ),
    signer_url,
    signer_address,
    max_fee: readLimit(settings, "max_fee", network, EVM_NETWORKS[network].coin, parseCoins),
    max_tip: Number(
      readLimit(settings, "max_tip", network, "gwei", (text) => parseUnits(text, GWEI_DIGITS)),
    ),
    is_main: isMainChain(chain_id),
  };
}

function readNetwork(text: string | undefined): EvmNetwork {
  if (text !== undefined && Object.hasOwn(EVM_NETWORKS, text)) return text as EvmNetwork;
  throw invalidParameter("network", `must be one of ${Object.keys(EVM_NETWORKS).join(", ")}`);
}

function readNumber(settings: Texts, name: string, absent: number, min: number, max: number) {
  const text = settings[name];
  if (text === undefined) return absent;
  const value = /^\d{1,16}$/.test(text) ? Number(text) : NaN;
  if (value >= min && value <= max) return value;
  throw invalidParameter(name, `must be a whole number from ${min} to ${max}`);
}

function readLimit(
  settings: Texts,
  name: "max_fee" | "max_tip",
  network: EvmNetwork,
  unit: string,
  parse: (text: string) => bigint | null,
): bigint {
  const absent = EVM_NETWORKS[network][name];
  const most = parse(absent)! * LIMIT_OF_DEFAULT;
  const value = parse(settings[name] ?? absent);
  if (value !== null && value > 0n && value <= most) return value;
  const times = `${LIMIT_OF_DEFAULT} times the default of ${absent}`;
  throw invalidParameter(
    name,
    `must be a number of ${unit} above 0, such as 0.5, at most ${times}`,
  );
}

function readRpcUrls(text: string | undefined): string[] {
  const urls = (text ?? "").split(",").map((part) => part.trim());
  if (urls.length > RPC_URLS_MAX || urls[0] === "") {
    throw invalidParameter("rpc_urls", "must be one or two addresses, separated by a comma");
  }
  for (const url of urls) readUrl("rpc_urls", url);
  if (new Set(urls).size < urls.length) {
    throw invalidParameter("rpc_urls", "must be addresses of two different providers");
  }
  const local = urls.filter((url) => isLoopback(new URL(url).hostname)).length;
  if (local === 0 || local === urls.length) return urls;
  throw invalidParameter("rpc_urls", "must be both on this machine, or both elsewhere");
}

/** Messages never contain the text, because it can contain a key. */
function readUrl(name: string, text: string): string {
  const url = URL.parse(text);
  const is_safe = url !== null && (url.protocol === "https:" ||
    url.protocol === "http:" && isLoopback(url.hostname));
  // A mark in the name of the host would let the secret choose the host.
  if (is_safe && !url.username && !url.password && !url.hash && !/[{}%]/.test(url.hostname)) {
    return text;
  }
  throw invalidParameter(
    name,
    "must begin with https, or with http on this machine, without a user name, password or " +
      "fragment",
  );
}

/** Messages never contain the value, because it can be a private key. */
function readXpub(text: string | undefined): string {
  if (text !== undefined && XPUB.test(text)) return text;
  if (text !== undefined && PRIVATE_KEY.test(text)) {
    throw invalidParameter(
      "xpub",
      "is a private key or a seed phrase. Keep it offline: no server may have it. Anybody who " +
        "has seen it can take the money, so move the money if it was shown. Give the extended " +
        "public key",
    );
  }
  throw invalidParameter(
    "xpub",
    "must be the extended public key of the path m/44'/60'/0', which begins with xpub",
  );
}

function readContracts(settings: Texts, network: EvmNetwork, chain_id: number) {
  const pinned = EVM_NETWORKS[network];
  const is_pinned = chain_id === pinned.chain_id;
  if (!is_pinned && isMainChain(chain_id)) {
    throw invalidParameter("chain_id", `is the chain id of a main network other than ${network}`);
  }
  const contracts: Partial<Record<Stablecoin, string>> = {};
  for (const asset of STABLECOINS) {
    const name = `contract.${asset}`;
    const given = readAddress(settings, name);
    if (is_pinned && given !== null && given !== pinned.contracts[asset]) {
      throw invalidParameter(name, `must be left out: it is pinned for ${network}`);
    }
    const contract = is_pinned ? pinned.contracts[asset] : given;
    if (contract !== null) contracts[asset] = contract;
  }
  const count = Object.keys(contracts).length;
  if (count === 0) {
    throw invalidParameter("contract.USDC", `is required for a chain other than ${network}'s own`);
  }
  if (new Set(Object.values(contracts)).size < count) {
    throw invalidParameter("contract.USDT", "must differ from contract.USDC");
  }
  return contracts;
}

function readConfirmations(settings: Texts): number | null {
  const { confirmations, finality } = settings;
  if (finality !== undefined && finality !== "finalized") {
    throw invalidParameter(
      "finality",
      'must be "finalized": to count blocks instead, set confirmations',
    );
  }
  if (confirmations === undefined) return null;
  if (finality !== undefined) {
    throw invalidParameter("confirmations", "cannot be combined with finality: set one of them");
  }
  return readNumber(settings, "confirmations", 1, 1, CONFIRMATIONS_MAX);
}

function readAddress(settings: Texts, name: string): string | null {
  const text = settings[name];
  if (text === undefined) return null;
  const digits = text.slice(2).toLowerCase();
  if (isValidAddress("ethereum", text) && /[^0]/.test(digits)) {
    return `0x${withChecksumCase(digits)}`;
  }
  throw invalidParameter(name, "must be an address, 0x and 40 hex digits, with a valid checksum");
}
