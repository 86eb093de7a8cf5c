/**
 * The chain of the run: a node that mines on command, and that is killed and restarted. It saves
 * its state after some blocks only, so a kill also undoes the blocks since then.
 */

import { type Anvil, startAnvil } from "../../../support/chain/anvil.ts";
import { type ChainTransfer, ChainWorld, type Hex } from "../../../support/chain/chain_world.ts";
import { XPUB } from "../../../support/chain/watched.ts";
import { freePort } from "../../../support/common/free_port.ts";

/** Blocks that one kill or one reorganisation can undo. */
const UNDONE_MAX = 3;
/** Blocks after which a transfer is final: more than several kills or reorganisations undo. */
export const CONFIRMATIONS = 3 * UNDONE_MAX + 1;

/** Time in which a payer has to send. */
export const EXPIRES_AFTER_S = 600;
const SIGNER_FUNDS = 10 ** 12;

export class ChainNode {
  readonly #token: Hex;
  /** The wallet that pays out. The node has its key, so it is the signer too. */
  readonly signer: Hex;
  readonly #port: number;
  reorganisations = 0;
  #node: Anvil;
  #world: ChainWorld;
  /** The last states, the oldest first. */
  #states: string[] = [];
  /** Blocks that this process has mined. It cannot reorganise blocks of a process before. */
  #mined = 0;
  /** The number of the last block, and the highest one so far. */
  #head = 0;
  #peak = 0;
  /** The payer's next nonce in the block that is being made; null: ask the chain. */
  #nonce: number | null = null;

  private constructor(node: Anvil, world: ChainWorld, token: Hex, signer: Hex) {
    this.#node = node;
    this.#world = world;
    this.#token = token;
    this.signer = signer;
    this.#port = Number(new URL(node.url).port);
  }

  static async start(): Promise<ChainNode> {
    const node = await startAnvil({ port: freePort() });
    const world = await ChainWorld.open(node);
    const token = await world.deployToken();
    const [, signer] = await node.call<Hex[]>("eth_accounts");
    const chain = new ChainNode(node, world, token, signer!);
    await chain.transfer(signer!, SIGNER_FUNDS);
    // A restarted node makes another block 0, so no pass may read this block 0 as final.
    await chain.mine(CONFIRMATIONS + 1);
    return chain;
  }

  get settings(): Record<string, string> {
    const { url } = this.#node;
    return {
      network: "ethereum",
      chain_id: "31337",
      rpc_urls: `${url},http://localhost:${this.#port}`,
      xpub: XPUB,
      "contract.USDC": this.#token,
      confirmations: String(CONFIRMATIONS),
      expires_after_seconds: String(EXPIRES_AFTER_S),
      signer_address: this.signer,
      signer_url: url,
    };
  }

  /** Sends a transfer of the payer. It is not in a block yet. */
  async transfer(to: string, amount: number): Promise<Hex> {
    // The node's own count is wrong after a reorganisation.
    this.#nonce ??= Number(
      await this.#node.call("eth_getTransactionCount", this.#world.payer, "latest"),
    );
    return await this.#world.transfer(this.#token, to, amount, this.#nonce++);
  }

  /** Mines a block, and keeps the state. */
  async mine(blocks = 1): Promise<void> {
    await this.#world.mine(blocks);
    this.#nonce = null;
    this.#mined += blocks;
    this.#states.push(await this.#node.call<string>("anvil_dumpState"));
    this.#states = this.#states.slice(-UNDONE_MAX);
    this.#head = Number(await this.#node.call("eth_blockNumber"));
    this.#peak = Math.max(this.#peak, this.#head);
  }

  async passTime(seconds: number): Promise<void> {
    await this.#node.call("evm_increaseTime", seconds);
    await this.mine();
  }

  /** Reports whether blocks may be undone without undoing a final transfer. */
  get isUndoable(): boolean {
    return this.#peak - this.#head <= UNDONE_MAX;
  }

  /** Replaces the last blocks by empty ones. */
  async reorganise(blocks: number): Promise<void> {
    if (this.#mined <= blocks) return;
    await this.#node.call("anvil_reorg", blocks, []);
    await this.#node.call("anvil_dropAllTransactions");
    this.#nonce = null;
    this.#states = [await this.#node.call<string>("anvil_dumpState")];
    this.reorganisations++;
  }

  /** Kills the node with SIGKILL, and starts it with one of its last states. */
  async kill(which: number): Promise<void> {
    const state = this.#states[Math.floor(which * this.#states.length)]!;
    await this.#node.close();
    this.#node = await startAnvil({ port: this.#port });
    await this.#node.call("anvil_loadState", state);
    this.#world = await ChainWorld.open(this.#node);
    this.#states = [state];
    this.#nonce = null;
    this.#mined = 0;
  }

  async has(tx_hash: Hex): Promise<boolean> {
    const params = ["eth_getTransactionReceipt", tx_hash] as const;
    const receipt = await this.#node.call<{ status: Hex } | null>(...params);
    if (receipt && receipt.status !== "0x1") throw new Error(`${tx_hash} was reverted`);
    return receipt !== null;
  }

  async transfers(): Promise<ChainTransfer[]> {
    return await this.#world.transfers(this.#token);
  }

  async close(): Promise<void> {
    await this.#node.close();
  }
}
