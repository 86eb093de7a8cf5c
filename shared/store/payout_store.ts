/**
 * The store of payouts on a chain. Each call runs one entry function in one round trip
 * (supabase/schemas/chain_payouts.sql).
 */

import { formatTime } from "../core/clock.ts";
import type { Database } from "./database.ts";
import type { ChainPayout, PaidPayout } from "./provider_rows.ts";

/** The store of payouts on a chain. Each method throws `ApiError`. */
export interface PayoutStore {
  /** Stores the payout of a call, unless it is stored, and returns it. */
  keepPayout(account_id: string, call_id: string, destination: string): Promise<ChainPayout>;
  /** Assigns a payout its permanent nonce, and returns it; null: the payout was exported. */
  giveNonce(
    account_id: string,
    call_id: string,
    signer: { chain_id: number; address: string; count: number },
  ): Promise<number | null>;
  /** Records the fees, in wei, of the transaction that is sent next. */
  notePayoutFees(
    account_id: string,
    call_id: string,
    fees: { max_fee: number; priority_fee: number },
  ): Promise<void>;
  /** Records the hash of a transaction that was sent. */
  notePayoutHash(account_id: string, call_id: string, tx_hash: string): Promise<void>;
  /** Returns the payouts of an account that the chain can still settle, oldest first. */
  openPayouts(account_id: string): Promise<ChainPayout[]>;
  /** Returns the references of the transfers that belong to another payout, of any account. */
  takenTransfers(
    account_id: string,
    transfers: readonly { reference: string; nonce: number | null }[],
  ): Promise<string[]>;
  /** Returns the payouts that became final from `from_ms` on and before `to_ms`. */
  paidPayouts(account_id: string, time: { from_ms: number; to_ms: number }): Promise<PaidPayout[]>;
}

const KEEP = `select pay.keep_payout(
  p_account_id => $1::text, p_call_id => $2::text, p_destination => $3::text)::text as payout`;
const GIVE_NONCE = `select pay.give_nonce(
  p_account_id => $1::text, p_call_id => $2::text, p_chain_id => $3::text::bigint,
  p_signer => $4::text, p_count => $5::text::bigint)::text as nonce`;
const NOTE_FEES = `select pay.note_payout_fees(
  p_account_id => $1::text, p_call_id => $2::text, p_max_fee => $3::text::bigint,
  p_priority_fee => $4::text::bigint)`;
const NOTE_HASH = `select pay.note_payout_hash(
  p_account_id => $1::text, p_call_id => $2::text, p_tx_hash => $3::text)`;
const OPEN = `select p::text as payout from pay.open_payouts(p_account_id => $1::text) p`;
const TAKEN = `select reference from pay.taken_transfers(
  p_account_id => $1::text, p_transfers => $2::text) t (reference)`;
const PAID = `select p::text as payout from pay.paid_payouts(
  p_account_id => $1::text, p_from => $2::text::timestamptz, p_to => $3::text::timestamptz) p`;

/** Creates the store over one database. */
export function createPayoutStore(database: Database): PayoutStore {
  async function list<T>(query: string, parameters: readonly string[]): Promise<T[]> {
    const rows = await database.query<{ payout: string }>(query, [...parameters]);
    return rows.map(({ payout }) => JSON.parse(payout));
  }
  return {
    async keepPayout(account_id, call_id, destination) {
      const [payout] = await list<ChainPayout>(KEEP, [account_id, call_id, destination]);
      return payout!;
    },

    async giveNonce(account_id, call_id, { chain_id, address, count }) {
      const parameters = [account_id, call_id, String(chain_id), address, String(count)];
      const [row] = await database.query<{ nonce: string | null }>(GIVE_NONCE, parameters);
      return row!.nonce === null ? null : Number(row!.nonce);
    },

    async notePayoutFees(account_id, call_id, { max_fee, priority_fee }) {
      const parameters = [account_id, call_id, String(max_fee), String(priority_fee)];
      await database.query(NOTE_FEES, parameters);
    },

    async notePayoutHash(account_id, call_id, tx_hash) {
      await database.query(NOTE_HASH, [account_id, call_id, tx_hash]);
    },

    openPayouts: (account_id) => list(OPEN, [account_id]),

    async takenTransfers(account_id, transfers) {
      if (transfers.length === 0) return [];
      const parameters = [account_id, JSON.stringify(transfers)];
      const rows = await database.query<{ reference: string }>(TAKEN, parameters);
      return rows.map(({ reference }) => reference);
    },

    paidPayouts: (account_id, { from_ms, to_ms }) =>
      list(PAID, [account_id, formatTime(from_ms), formatTime(to_ms)]),
  };
}
