/**
 * The store of what only chains need: watched addresses, payouts and their nonces. Each call runs
 * one entry function in one round trip (supabase/schemas/chain_*.sql).
 */

import { formatTime } from "../core/clock.ts";
import type { Stablecoin } from "../core/currency.ts";
import type { Database } from "./database.ts";

/** The address of a payment that the poll watches. */
export interface WatchedDeposit {
  /** Its index below the extended public key: the order of the pages. */
  index: number;
  payment_id: string;
  /** EIP-55. */
  address: string;
  currency: Stablecoin;
  /** RFC 3339. */
  expires_at: string;
  /** Whether the payment still waits for money. */
  is_open: boolean;
  /** Whether a stored provider event about it has not been applied yet. */
  has_open_events: boolean;
  /** Transfers that were reported, and are neither final nor undone. */
  unfinal: readonly UnfinalTransfer[];
}

/** A transfer of a token that the chain can still undo. */
interface UnfinalTransfer {
  tx_hash: string;
  log_index: number;
  block_hash: string;
  /** That of the payment, or of another token of the account. */
  currency: Stablecoin;
  amount_minor: number;
}

/** A refund or transfer that leaves as a transaction on a chain. */
export interface ChainPayout {
  operation_id: string;
  op: "refund" | "transfer";
  subject_id: string;
  refund_id: string | null;
  amount_minor: number;
  currency: Stablecoin;
  /** EIP-55. */
  destination: string;
  /** The nonce of its transaction. It never changes; null: none yet. */
  nonce: number | null;
  /** Hashes that the signer has returned. At most one of them is in a block. */
  tx_hashes: readonly string[];
  /** Maximum fee per unit of gas of the last transaction, in wei; null: nothing was sent. */
  max_fee: number | null;
  priority_fee: number | null;
  /** Time since the last transaction with a new fee; null: nothing was sent. */
  sent_seconds: number | null;
  /** Whether it was exported for people to sign. */
  is_exported: boolean;
}

export interface PaidPayout {
  /** That of its provider event. */
  reference: string;
  currency: Stablecoin;
  tx_hash: string;
  amount_minor: number;
}

const WATCHED_DEPOSITS = `select d.xpub_index::text, d.payment_id, d.address, d.currency,
    d.expires_at, d.is_open, d.has_open_events, d.unfinal::text
  from pay.watched_deposits(
    p_account_id => $1::text, p_after => $2::text::bigint, p_limit => $3::text::int) d`;
const STORE_PAYOUT = `select pay.store_payout(
  p_account_id => $1::text, p_operation_id => $2::text, p_destination => $3::text)::text as payout`;
const ASSIGN_NONCE = `select pay.give_nonce(
  p_account_id => $1::text, p_operation_id => $2::text, p_chain_id => $3::text::bigint,
  p_signer => $4::text, p_count => $5::text::bigint)::text as nonce`;
const STORE_FEES = `select pay.note_payout_fees(
  p_account_id => $1::text, p_operation_id => $2::text, p_max_fee => $3::text::bigint,
  p_priority_fee => $4::text::bigint)`;
const STORE_HASH = `select pay.note_payout_hash(
  p_account_id => $1::text, p_operation_id => $2::text, p_tx_hash => $3::text)`;
const OPEN = `select p::text as payout from pay.open_payouts(p_account_id => $1::text) p`;
const TAKEN = `select reference from pay.taken_transfers(
  p_account_id => $1::text, p_transfers => $2::text) t (reference)`;
const PAID = `select p::text as payout from pay.paid_payouts(
  p_account_id => $1::text, p_from => $2::text::timestamptz, p_to => $3::text::timestamptz,
  p_after => $4::text, p_limit => $5::text::int) p`;

/** The store of chains. Each method throws `ApiError`. */
export class ChainStore {
  readonly #database: Pick<Database, "query">;

  constructor(database: Pick<Database, "query">) {
    this.#database = database;
  }

  /** Returns watched addresses in the order of their indexes, after an index; null begins. */
  async watchedDeposits(
    account_id: string,
    after: number | null,
    limit: number,
  ): Promise<WatchedDeposit[]> {
    type Row = Omit<WatchedDeposit, "index" | "unfinal"> & {
      xpub_index: string;
      unfinal: string;
    };
    const parameters = [account_id, after === null ? null : String(after), String(limit)];
    const rows = await this.#database.query<Row>(WATCHED_DEPOSITS, parameters);
    return rows.map(({ xpub_index, unfinal, ...row }) => ({
      ...row,
      index: Number(xpub_index),
      unfinal: JSON.parse(unfinal),
    }));
  }

  /** Stores the payout of an operation, unless it is stored, and returns it. */
  async storePayout(
    account_id: string,
    operation_id: string,
    destination: string,
  ): Promise<ChainPayout> {
    const [payout] = await this.#list<ChainPayout>(STORE_PAYOUT, [
      account_id,
      operation_id,
      destination,
    ]);
    return payout!;
  }

  /**
   * Assigns a payout its permanent nonce, and returns it; null if the payout was exported.
   * @param signer.count the number of transactions that the chain has of the signer
   */
  async assignNonce(
    account_id: string,
    operation_id: string,
    { chain_id, address, count }: { chain_id: number; address: string; count: number },
  ): Promise<number | null> {
    const parameters = [account_id, operation_id, String(chain_id), address, String(count)];
    const [row] = await this.#database.query<{ nonce: string | null }>(ASSIGN_NONCE, parameters);
    return row!.nonce === null ? null : Number(row!.nonce);
  }

  /** Stores the fees, in wei, of the transaction that is sent next. */
  async storePayoutFees(
    account_id: string,
    operation_id: string,
    { max_fee, priority_fee }: { max_fee: number; priority_fee: number },
  ): Promise<void> {
    const parameters = [account_id, operation_id, String(max_fee), String(priority_fee)];
    await this.#database.query(STORE_FEES, parameters);
  }

  /** Stores the hash of a transaction that was sent. */
  async storePayoutHash(account_id: string, operation_id: string, tx_hash: string): Promise<void> {
    await this.#database.query(STORE_HASH, [account_id, operation_id, tx_hash]);
  }

  /**
   * Returns the payouts without an event of the chain, oldest first: those whose operations have no
   * result, and those with a nonce that the operator has settled as failed in the last days.
   */
  openPayouts(account_id: string): Promise<ChainPayout[]> {
    return this.#list(OPEN, [account_id]);
  }

  /** Returns the references of the transfers that belong to another payout, of any account. */
  async takenTransfers(
    account_id: string,
    transfers: readonly { reference: string; nonce: number | null }[],
  ): Promise<string[]> {
    if (transfers.length === 0) return [];
    const parameters = [account_id, JSON.stringify(transfers)];
    const rows = await this.#database.query<{ reference: string }>(TAKEN, parameters);
    return rows.map(({ reference }) => reference);
  }

  /**
   * Returns the payouts that became final from `from_ms` on and before `to_ms`, in the order of
   * their references, after a reference; "" begins.
   */
  paidPayouts(
    account_id: string,
    { from_ms, to_ms }: { from_ms: number; to_ms: number },
    after: string,
    limit: number,
  ): Promise<PaidPayout[]> {
    return this.#list(PAID, [
      account_id,
      formatTime(from_ms),
      formatTime(to_ms),
      after,
      String(limit),
    ]);
  }

  async #list<T>(query: string, parameters: readonly string[]): Promise<T[]> {
    const rows = await this.#database.query<{ payout: string }>(query, [...parameters]);
    return rows.map(({ payout }) => JSON.parse(payout));
  }
}
