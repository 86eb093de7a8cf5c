/**
 * Sends payouts (refunds and transfers to a wallet) through an external signer (ADR 0020). The
 * nonce and the fees of a payout are committed before it is sent. A repeated transaction has the
 * same nonce, so it replaces the first one and never pays twice. The response of the signer settles
 * nothing; evm_payout_poll.ts finds the transaction on the chain.
 */

import { formatAmount, STABLECOINS } from "../../core/currency.ts";
import { isValidAddress, withChecksumCase } from "../../core/wallet_address.ts";
import type {
  Operation,
  ProviderAccount,
  ProviderReply,
} from "../../domain/providers/connector.ts";
import type { ChainPayout, ChainStore } from "../../store/chain_store.ts";
import { paddedAddress } from "./evm_chain.ts";
import {
  costOf,
  excessOf,
  type Fees,
  firstFees,
  isBelowMarket,
  isTooDear,
  limitsText,
  raisedFees,
} from "./evm_fees.ts";
import { PayoutChain } from "./evm_payout_chain.ts";
import { RpcError } from "./evm_rpc.ts";
import { type EvmSettings, readEvmSettings } from "./evm_settings.ts";

/**
 * A transaction that is in no block after this time is sent again with higher fees; at once if it
 * offers less than the base fee.
 */
const STUCK_SECONDS = 180;
/** Time after which another transaction with the nonce of a payout is for the operator. */
const USED_SECONDS = 3_600;
/** Time after which a used nonce counts as final, if no node knows its count at the final block. */
const FINAL_SECONDS = 7_200;
/** `transfer(address,uint256)` of ERC-20. */
const TRANSFER_SELECTOR = "0xa9059cbb";

type Waiting = Extract<ProviderReply, { waiting: string }>;
type Refusal = Extract<ProviderReply, { refused: unknown }>;

/** Where a payout goes. */
interface Target {
  /** EIP-55. */
  destination: string;
  contract: string;
}

/**
 * Sends a payout, or checks its state. Never throws: after a failure of a node or of the signer the
 * operation stays under way.
 */
export async function payOut(
  account: ProviderAccount,
  operation: Operation,
  signal: AbortSignal,
  store: ChainStore,
): Promise<ProviderReply> {
  const settings = readEvmSettings(account.settings);
  const target = targetOf(operation, settings);
  if ("refused" in target) return target;
  try {
    const payout = await store.storePayout(account.id, operation.id, target.destination);
    if (payout.is_exported) return forOperator("exported, and waiting for people to sign it");
    const { signer_url, signer_address } = settings;
    if (signer_url === null || signer_address === null) {
      const { nonce } = payout;
      if (nonce !== null) {
        return forOperator(`no signer_url, and its nonce ${nonce} needs the signer`);
      }
      return forOperator('no signer_url: export it with "deno task payouts export", and sign it');
    }
    const chain = new PayoutChain(settings, signer_address, account.secret, signal);
    const sender = new Sender(account, operation, store, chain, {
      settings,
      signer_url,
      ...target,
    });
    return await sender.send(payout);
  } catch (error) {
    return { waiting: error instanceof Error ? error.message : String(error) };
  }
}

/** The parts of a payout that all of its attempts share. */
interface Route extends Target {
  settings: EvmSettings;
  signer_url: string;
}

class Sender {
  readonly #account: ProviderAccount;
  readonly #operation: Operation;
  readonly #store: ChainStore;
  readonly #chain: PayoutChain;
  readonly #route: Route;
  readonly #data: string;

  constructor(
    account: ProviderAccount,
    operation: Operation,
    store: ChainStore,
    chain: PayoutChain,
    route: Route,
  ) {
    this.#account = account;
    this.#operation = operation;
    this.#store = store;
    this.#chain = chain;
    this.#route = route;
    this.#data = transferData(route.destination, operation.amount_minor);
  }

  async send(payout: ChainPayout): Promise<ProviderReply> {
    const nonce = payout.nonce ?? await this.#begin();
    if (typeof nonce !== "number") return nonce;
    if (await this.#chain.count("latest", false) > nonce) return await this.#used(payout, nonce);
    const { contract, signer_url, settings } = this.#route;
    const gas = await this.#chain.gas(contract, this.#data);
    const next = await this.#fees(payout, gas);
    if ("waiting" in next) return next;
    const { fees, note } = next;
    await this.#store.storePayoutFees(this.#account.id, this.#operation.id, fees);
    const transaction = { contract, data: this.#data, nonce, gas, ...fees };
    const tx_hash = await this.#chain.send(signer_url, transaction).catch((error) => {
      throw new Error(`${error.message}${note}`);
    });
    await this.#store.storePayoutHash(this.#account.id, this.#operation.id, tx_hash);
    const cost = costOf(gas, fees.max_fee, settings);
    const waiting = `sent as ${tx_hash} with the nonce ${nonce}, for at most ${cost}${note}`;
    return { waiting, needs_operator: note !== "" };
  }

  async #begin(): Promise<number | ProviderReply> {
    const { contract, settings } = this.#route;
    // A nonce without a transaction would block every later one.
    const shortage = await this.#shortage();
    if (shortage) return shortage;
    let gas: number;
    try {
      gas = await this.#chain.gas(contract, this.#data);
    } catch (error) {
      if (!(error instanceof RpcError && error.kind === "refused")) throw error;
      if (!/revert/i.test(error.message)) throw error;
      // Another payout can have taken the money in the meantime.
      const late_shortage = await this.#shortage();
      if (late_shortage) return late_shortage;
      const message = "The token refuses the payment to this address, so nothing was sent";
      return { refused: "provider_refused", message, reason: error.message };
    }
    const excess = excessOf(await this.#chain.quotes(), gas, settings);
    if (excess !== null) return forOperator(`not sent: ${excess}`);
    // The least: one node that counts too many would make a gap that nothing fills.
    const count = await this.#chain.count("pending", true);
    const signer = { chain_id: settings.chain_id, address: settings.signer_address!, count };
    const nonce = await this.#store.assignNonce(this.#account.id, this.#operation.id, signer);
    return nonce ?? forOperator("exported, and waiting for people to sign it");
  }

  /** Returns `waiting` if the wallet has too little; null: it has enough. */
  async #shortage(): Promise<Waiting | null> {
    const { amount_minor, currency } = this.#operation;
    const balance = await this.#balance();
    if (balance >= amount_minor) return null;
    const has = formatAmount(Math.max(0, balance), currency);
    const needs = formatAmount(amount_minor, currency);
    return forOperator(`the signer has ${has}, and this payout needs ${needs}`);
  }

  /** Returns the balance of the signer less the payouts that were sent and are in no block yet. */
  async #balance(): Promise<number> {
    const count = await this.#chain.count("latest", true);
    const open = await this.#store.openPayouts(this.#account.id);
    const sent = open.filter(({ nonce, currency }) =>
      nonce !== null && nonce >= count && currency === this.#operation.currency
    );
    const balance = Number(await this.#chain.balance(this.#route.contract));
    return sent.reduce((left, { amount_minor }) => left - amount_minor, balance);
  }

  /** Decides about a payout whose nonce is already used on the chain. */
  async #used(payout: ChainPayout, nonce: number): Promise<ProviderReply> {
    const [mined] = await this.#chain.mined(payout.tx_hashes);
    if (mined) return { waiting: `${mined[0]} is in a block` };
    // If it is our own transaction with an unknown hash, the poll finds its transfer. Otherwise the
    // operator decides after an hour.
    if (!await this.#isUsedForever(payout, nonce)) {
      return { waiting: `a transaction with the nonce ${nonce} is in a block, but not final` };
    }
    if ((payout.sent_seconds ?? 0) > USED_SECONDS) return { absent: true };
    return { waiting: `another transaction has the nonce ${nonce}` };
  }

  async #isUsedForever({ sent_seconds }: ChainPayout, nonce: number): Promise<boolean> {
    const { final } = await this.#chain.heads();
    try {
      return await this.#chain.count(final, true) > nonce;
    } catch (error) {
      // Most nodes have the state of the last blocks only.
      if (!(error instanceof RpcError && error.kind === "refused")) throw error;
      return (sent_seconds ?? 0) > FINAL_SECONDS;
    }
  }

  /**
   * Returns the fees of the next transaction, and a note for the operator; `waiting` if the last
   * transaction is not stuck, or the next one would cost too much.
   */
  async #fees(
    { tx_hashes, max_fee, priority_fee, sent_seconds }: ChainPayout,
    gas: number,
  ): Promise<{ fees: Fees; note: string } | Waiting> {
    const { settings } = this.#route;
    const quotes = await this.#chain.quotes();
    const excess = excessOf(quotes, gas, settings);
    const note = excess === null ? "" : `; ${excess}`;
    // A payout with a nonce holds up the later ones, so it is sent within the limits in any case.
    if (max_fee === null || priority_fee === null) {
      return { fees: firstFees(quotes, gas, settings), note };
    }
    const last = { max_fee, priority_fee };
    const is_stuck = (sent_seconds ?? 0) >= STUCK_SECONDS || isBelowMarket(last, quotes);
    // Without a hash it is unknown whether the signer has got it.
    if (!is_stuck && tx_hashes.length > 0) {
      const waiting = `${tx_hashes.at(-1)} is in no block yet${note}`;
      return { waiting, needs_operator: note !== "" };
    }
    const raised = is_stuck ? raisedFees(last, quotes, gas, settings) : null;
    if (raised) return { fees: raised, note };
    if (isTooDear(gas, last, settings)) {
      return forOperator(`not sent again with ${gas} gas: ${limitsText(settings)} are too low`);
    }
    // Nodes drop transactions that wait long, so the last one is sent again.
    const limits = `; ${limitsText(settings)} allow no raise`;
    return { fees: last, note: is_stuck ? note || limits : note };
  }
}

/** A wait that only the operator can end. */
function forOperator(waiting: string): Waiting {
  return { waiting, needs_operator: true };
}

/** Reads and checks the destination and the token of a payout, because nobody can undo it. */
function targetOf(operation: Operation, settings: EvmSettings): Target | Refusal {
  const { network, contracts, signer_address } = settings;
  const asset = STABLECOINS.find((each) => each === operation.currency);
  const contract = asset && contracts[asset];
  if (!contract) return refusal("currency", `${operation.currency} is not a token of this account`);
  const wallet = walletOf(operation);
  if (wallet === null) return refusal("destination", "This account pays to wallets only");
  const { param, address } = wallet;
  if (wallet.network !== null && wallet.network !== network) {
    return refusal("destination.wallet.network", `The account pays on ${network} only`);
  }
  if (!isValidAddress("ethereum", address)) {
    return refusal(param, `This is not a wallet address on ${network}: check each character`);
  }
  const lower = address.toLowerCase();
  const own = [...Object.values(contracts), signer_address ?? ""].map((each) => each.toLowerCase());
  if (/^0x0{40}$/.test(lower) || own.includes(lower)) {
    return refusal(param, "Money sent to this address would be lost: use the address of a wallet");
  }
  return { destination: `0x${withChecksumCase(lower.slice(2))}`, contract };
}

function walletOf({ op, subject, refund }: Operation) {
  if (op === "refund") {
    const to = refund?.destination;
    return to && "address" in to
      ? { param: "destination.address", network: null, address: to.address }
      : null;
  }
  if (subject.object !== "transfer" || subject.destination.type !== "wallet") return null;
  const { network, address } = subject.destination.wallet;
  return { param: "destination.wallet.address", network, address };
}

function refusal(param: string, message: string): Refusal {
  return { refused: "invalid_parameter", message, param };
}

/** Encodes `transfer(destination, amount)`. */
export function transferData(destination: string, amount_minor: number): string {
  const amount = amount_minor.toString(16).padStart(64, "0");
  return TRANSFER_SELECTOR + paddedAddress(destination).slice(2) + amount;
}
