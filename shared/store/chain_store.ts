/**
 * The store of what only chains need: watched addresses, payouts and their nonces. Each call runs
 * one entry function in one round trip (supabase/schemas/chain_*.sql).
 */

import { formatTime } from "../core/clock.ts";
import type { Stablecoin } from "../core/currency.ts";
import type { Database } from "./database.ts";
import { callsOf } from "./statement.ts";

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

/** The store of chains. Each method throws `ApiError`. */
export class ChainStore {
  readonly #rows: ReturnType<typeof callsOf>;

  constructor(database: Pick<Database, "query">) {
    this.#rows = callsOf(database);
  }

  /** Returns watched addresses in the order of their indexes, after an index; null begins. */
  async watchedDeposits(
    account_id: string,
    after: number | null,
    limit: number,
  ): Promise<WatchedDeposit[]> {
    const rows = await this.#rows<Omit<WatchedDeposit, "index"> & { xpub_index: number }>`
      pay.watched_deposits(p_account_id => ${account_id}, p_after => ${after}::bigint,
        p_limit => ${limit}::int)`;
    return rows.map(({ xpub_index: index, ...row }) => ({ ...row, index }));
  }

  /** Stores the payout of an operation, unless it is stored, and returns it. */
  async storePayout(
    account_id: string,
    operation_id: string,
    destination: string,
  ): Promise<ChainPayout> {
    const [payout] = await this.#rows<ChainPayout>`pay.store_payout(
      p_account_id => ${account_id}, p_operation_id => ${operation_id},
      p_destination => ${destination})`;
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
    const [nonce] = await this.#rows<number | null>`pay.give_nonce(
      p_account_id => ${account_id}, p_operation_id => ${operation_id},
      p_chain_id => ${chain_id}::bigint, p_signer => ${address}, p_count => ${count}::bigint)`;
    return nonce!;
  }

  /** Stores the fees, in wei, of the transaction that is sent next. */
  async storePayoutFees(
    account_id: string,
    operation_id: string,
    { max_fee, priority_fee }: { max_fee: number; priority_fee: number },
  ): Promise<void> {
    await this.#rows`pay.note_payout_fees(
      p_account_id => ${account_id}, p_operation_id => ${operation_id},
      p_max_fee => ${max_fee}::bigint, p_priority_fee => ${priority_fee}::bigint)`;
  }

  async storePayoutHash(account_id: string, operation_id: string, tx_hash: string): Promise<void> {
    await this.#rows`pay.note_payout_hash(
      p_account_id => ${account_id}, p_operation_id => ${operation_id}, p_tx_hash => ${tx_hash})`;
  }

  /**
   * Returns the payouts without an event of the chain, oldest first: those whose operations have no
   * result, and those with a nonce that the operator has settled as failed in the last days.
   */
  openPayouts(account_id: string): Promise<ChainPayout[]> {
    return this.#rows`pay.open_payouts(p_account_id => ${account_id})`;
  }

  /** Returns the references of the transfers that belong to another payout, of any account. */
  async takenTransfers(
    account_id: string,
    transfers: readonly { reference: string; nonce: number | null }[],
  ): Promise<string[]> {
    if (transfers.length === 0) return [];
    return await this.#rows`pay.taken_transfers(
      p_account_id => ${account_id}, p_transfers => ${transfers})`;
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
    return this.#rows`pay.paid_payouts(
      p_account_id => ${account_id}, p_from => ${formatTime(from_ms)}::timestamptz,
      p_to => ${formatTime(to_ms)}::timestamptz, p_after => ${after}, p_limit => ${limit}::int)`;
  }
}
