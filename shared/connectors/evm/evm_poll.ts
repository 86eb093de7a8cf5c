/**
 * The poll of an account on a chain. A pass reads the transfers from the last final block to the
 * head for all watched addresses, and then advances the final block. Each call reads one batch of
 * addresses in one range of blocks, so its cost does not depend on the number of open payments. The
 * addresses are read after the head, so a newer address has received nothing in the range.
 */

import * as z from "zod";
import { idFloor } from "../../core/ids.ts";
import type { ProviderAccount, ProviderEvent } from "../../domain/providers/connector.ts";
import type { ChainStore, WatchedDeposit } from "../../store/chain_store.ts";
import { type Block, Chain, type ChainTransfer, halvedSpan } from "./evm_chain.ts";
import { expiryEvent, goneEvent, transferEvent, unreadEvent } from "./evm_events.ts";
import { payoutEvents } from "./evm_payout_poll.ts";
import { readEvmSettings } from "./evm_settings.ts";

/** Addresses in one request: the topics of 1 000 take 68 kB, which all nodes accept. */
const BATCH = 1_000;
/** Blocks in one request. Nodes that allow fewer respond with an error, and the range halves. */
const SPAN_FIRST = 2_000;
const SPAN_MAX = 10_000;
/**
 * A new account begins this many blocks before the final one, or earlier: with the block before it
 * was added.
 */
const FIRST_BLOCKS = 1_000;
/** The clock of a chain is at most this much behind that of the service. */
const SKEW_SECONDS = 120;
/** Most ranges of final blocks in one pass, so that a pass that catches up ends. */
const CATCH_UP_SPANS = 10;

const Pass = z.object({
  to: z.object({ number: z.number().int(), hash: z.string(), time: z.number().int() }),
  /** Whether `to` was the head. */
  is_head: z.boolean(),
  final: z.number().int(),
  /** The index of the last address of the batches before; null: none. */
  after: z.number().int().nullable(),
  /** The first block that is not read for the present batch. */
  from: z.number().int(),
});
type Pass = z.infer<typeof Pass>;

const Cursor = z.object({
  /** The last block whose transfers are final and reported. */
  final: z.object({ number: z.number().int(), hash: z.string() }),
  span: z.number().int().positive(),
  pass: Pass.nullable(),
  /** The last block whose payouts are reported; absent: `final`. */
  paid: z.number().int().optional(),
});
type Cursor = z.infer<typeof Cursor>;

type Page = { provider_events: ProviderEvent[]; cursor: Cursor; more: boolean };

/**
 * Reads the next batch. Throws if a node fails, the nodes disagree, or the cursor is not one of
 * this connector.
 */
export async function pollChain(
  account: ProviderAccount,
  cursor: unknown,
  signal: AbortSignal,
  store: ChainStore,
): Promise<Page> {
  const chain = new Chain(readEvmSettings(account.settings), account.secret, signal);
  const place = cursor === null ? await firstPlace(chain, account.id) : readCursor(cursor);
  const { final, paid = final.number } = place;
  if (place.pass === null && paid < final.number) {
    return await halvingAtLimits(place, signal, () => readPayouts(account, place, signal, store));
  }
  const pass = place.pass ?? await beginPass(chain, place);
  // If the chain has dropped the block, the pass ends. Provider events that were read before stay
  // true.
  const to = place.pass === null ? pass.to : await chain.block(pass.to.number);
  if (to === null) throw new Error("A node in rpc_urls is behind the last reading");
  if (to.hash !== pass.to.hash) {
    return { provider_events: [], cursor: { ...place, pass: null }, more: true };
  }
  const deposits = await store.watchedDeposits(account.id, pass.after, BATCH);
  if (deposits.length === 0) return await endPass(chain, place, pass);
  const begun = { ...place, pass };
  const batch = { place, pass, deposits };
  return await halvingAtLimits(begun, signal, () => readBatch(account, chain, batch));
}

/** Reads a range. If a node refuses it as too large, the next call reads the first half of it. */
async function halvingAtLimits(
  place: Cursor,
  signal: AbortSignal,
  read: () => Promise<Page>,
): Promise<Page> {
  try {
    return await read();
  } catch (error) {
    const cursor = { ...place, span: halvedSpan(place.span, error, signal) };
    return { provider_events: [], cursor, more: true };
  }
}

/** Reads the payouts of the next final blocks. */
async function readPayouts(
  account: ProviderAccount,
  place: Cursor,
  signal: AbortSignal,
  store: ChainStore,
): Promise<Page> {
  const { final, span, paid = final.number } = place;
  const range = { from: paid + 1, to: Math.min(paid + span, final.number) };
  const provider_events = await payoutEvents(account, range, signal, store);
  return { provider_events, cursor: { ...place, paid: range.to }, more: range.to < final.number };
}

async function readBatch(
  account: ProviderAccount,
  chain: Chain,
  { place, pass, deposits }: { place: Cursor; pass: Pass; deposits: readonly WatchedDeposit[] },
): Promise<Page> {
  const range = { from: pass.from, to: Math.min(pass.from + place.span - 1, pass.to.number) };
  const { transfers, unread } = await chain.transfers(
    range,
    deposits.map(({ address }) => address),
  );
  const is_last_range = range.to === pass.to.number;
  const fresh = freshTransfers(pass, { deposits, transfers });
  const provider_events = await transferEvents(account, chain, pass, {
    deposits,
    transfers: fresh,
  });
  if (unread.length > 0 && range.to <= pass.final) {
    const block = await finalBlock(chain, range.to);
    provider_events.push(
      ...deposits.filter(({ address }) => unread.includes(address))
        .map((deposit) => unreadEvent(account, deposit, block)),
    );
  }
  if (pass.is_head && is_last_range) {
    const news = new Set(fresh.map(({ to }) => to));
    provider_events.push(...await endEvents(account, chain, pass, { deposits, transfers }, news));
  }
  // The range grows slowly, because each refusal of the node costs a request.
  const span = Math.min(SPAN_MAX, place.span + Math.ceil(place.span / 16));
  const next = is_last_range
    ? { ...pass, after: deposits.at(-1)!.index, from: place.final.number + 1 }
    : { ...pass, from: range.to + 1 };
  const is_over = is_last_range && deposits.length < BATCH;
  const cursor = { ...place, span, pass: next };
  if (!is_over) return { provider_events, cursor, more: true };
  return { ...await endPass(chain, cursor, next), provider_events };
}

function freshTransfers(pass: Pass, { deposits, transfers }: Batch): ChainTransfer[] {
  const by_address = byAddress(deposits);
  return transfers.filter((transfer) =>
    transfer.block_number <= pass.final ||
    !by_address.get(transfer.to)?.unfinal.some((known) => isSame(known, transfer))
  );
}

function byAddress(deposits: readonly WatchedDeposit[]): Map<string, WatchedDeposit> {
  return new Map(deposits.map((each) => [each.address.toLowerCase(), each]));
}

/** Events of new transfers: final ones, and those that the chain can still undo. */
async function transferEvents(
  account: ProviderAccount,
  chain: Chain,
  pass: Pass,
  { deposits, transfers }: Batch,
): Promise<ProviderEvent[]> {
  const by_address = byAddress(deposits);
  const times = await chain.times(transfers);
  return transfers.flatMap((transfer) => {
    const deposit = by_address.get(transfer.to);
    const time = times.get(transfer.block_number);
    if (time === undefined) throw new Error("A node in rpc_urls no longer has a block that it had");
    const is_final = transfer.block_number <= pass.final;
    return deposit ? [transferEvent(account, deposit, { ...transfer, time }, is_final)] : [];
  });
}

/**
 * Events about addresses at the head: transfers that are gone, and payments that have expired. For
 * an address with new transfers both wait for the next pass, until these are applied.
 */
async function endEvents(
  account: ProviderAccount,
  chain: Chain,
  { to, final }: Pass,
  { deposits, transfers }: Batch,
  news: ReadonlySet<string>,
): Promise<ProviderEvent[]> {
  const seen = new Set(transfers.map(keyOf));
  const unseen = deposits.flatMap((deposit) =>
    deposit.unfinal.filter((known) => !seen.has(keyOf(known)))
      .map((known) => ({ deposit, known }))
  );
  const receipts = await chain.receipts(unseen.map(({ known }) => known.tx_hash));
  const gone = unseen.filter(({ deposit, known }) => {
    const receipt = receipts.get(known.tx_hash);
    // A transfer that moved to another block counts there first. Otherwise a payment whose time is
    // over would end between the two.
    if (receipt === undefined || news.has(deposit.address.toLowerCase())) return false;
    if (receipt === null) return true;
    // A transfer that moved to a final block has its final event already.
    const is_final = receipt.block_number <= final &&
      receipt.transfers.some(({ log_index }) => log_index === known.log_index);
    return receipt.block_hash !== known.block_hash.toLowerCase() && !is_final;
  });
  const expired = deposits.filter((deposit) =>
    deposit.is_open && !deposit.has_open_events &&
    Date.parse(deposit.expires_at) < to.time * 1000 &&
    !news.has(deposit.address.toLowerCase()) &&
    !gone.some((each) => each.deposit === deposit)
  );
  return [
    ...gone.map(({ deposit, known }) => goneEvent(account, deposit, known, to.time)),
    ...expired.map((deposit) => expiryEvent(account, deposit)),
  ];
}

interface Batch {
  deposits: readonly WatchedDeposit[];
  transfers: readonly ChainTransfer[];
}

type Identity = { tx_hash: string; log_index: number; block_hash: string };

function keyOf({ tx_hash, log_index, block_hash }: Identity): string {
  return `${tx_hash}:${log_index}:${block_hash}`.toLowerCase();
}

function isSame(one: Identity, other: Identity): boolean {
  return keyOf(one) === keyOf(other);
}

async function endPass(chain: Chain, place: Cursor, pass: Pass): Promise<Page> {
  const number = Math.max(place.final.number, pass.final);
  const final = await chain.block(number);
  if (final === null) throw new Error("A node in rpc_urls is behind the last reading");
  const { hash } = final;
  const { paid = place.final.number } = place;
  return {
    provider_events: [],
    cursor: { ...place, final: { number, hash }, pass: null, paid },
    // The payouts of the new final blocks come next.
    more: !pass.is_head || paid < number,
  };
}

/** Returns a place before the account was added: its first readings can fail for hours. */
async function firstPlace(chain: Chain, account_id: string): Promise<Cursor> {
  // The id tells when the account was added.
  const isLater = ({ time }: Block) => idFloor("pac_", (time + SKEW_SECONDS) * 1000) > account_id;
  const { final } = await chain.heads();
  const near = await finalBlock(chain, Math.max(0, final - FIRST_BLOCKS));
  if (!isLater(near)) return placeAfter(near);
  const first = await chain.firstBlock(near.number, isLater);
  return placeAfter(await finalBlock(chain, Math.max(0, first - 1)));
}

/** Returns the place from which a poll reads the blocks after a final one. */
export function placeAfter({ number, hash }: Block): Cursor {
  return { final: { number, hash }, span: SPAN_FIRST, pass: null };
}

async function beginPass(chain: Chain, { final: last, span }: Cursor): Promise<Pass> {
  const { head, final } = await chain.heads();
  if (head.number < last.number) {
    throw new Error("A node in rpc_urls is behind the last reading");
  }
  const known = await finalBlock(chain, last.number);
  if (known.hash !== last.hash) {
    throw new Error(
      `The chain has undone the final block ${last.number}. The service reads nothing until you ` +
        `name an earlier block: deno task providers reread --from`,
    );
  }
  const next = { after: null, from: last.number + 1 };
  const end = last.number + span * CATCH_UP_SPANS;
  if (final <= end) return { to: head, is_head: true, final, ...next };
  const to = await finalBlock(chain, end);
  return { to, is_head: false, final: end, ...next };
}

async function finalBlock(chain: Chain, number: number): Promise<Block> {
  const block = await chain.block(number);
  if (block === null) throw new Error("A node in rpc_urls is missing a final block");
  return block;
}

function readCursor(cursor: unknown): Cursor {
  const place = Cursor.safeParse(cursor);
  if (place.success) return place.data;
  throw new Error("The cursor of this account is not one of evm");
}
