/**
 * The interface between the live flow and the connectors of providers (architecture §7). A call is
 * committed before it is sent, and its id is the provider's idempotency key. Every result is a
 * fact from one of four sources: the answer of a call, a notification, a poll or a look.
 */

import type { MethodKind } from "../../schema/payment.ts";
import type { SimulatedResult } from "./test_values.ts";
import type {
  ChainPayout,
  Fact,
  PaidPayout,
  ProviderTotal,
  WatchedDeposit,
} from "../../store/provider_rows.ts";

import type { Operation } from "./operation.ts";

export type { Operation } from "./operation.ts";
export type { ProviderOp } from "../../store/provider_call.ts";
export type {
  AccountOp,
  ChainPayout,
  DepositIndex,
  Fact,
  FactOp,
  FactState,
  ProviderTotal,
  StoredFact,
  WatchedDeposit,
} from "../../store/provider_rows.ts";

/** An account at a provider, which the operator has configured. */
export interface ProviderAccount {
  /** `pac_…` */
  id: string;
  environment_id: string;
  connector: string;
  /** Settings of the connector, such as `base_url`. */
  settings: Readonly<Record<string, string>>;
  /** The provider's API secret; null if its variable is not set. */
  secret: string | null;
  /** Secrets that sign notifications: two during a rotation. Empty: all notifications are refused. */
  notification_secrets: readonly string[];
}

/** The parts of the books that a connector reads and writes. */
export interface ChainBooks {
  /** Returns watched addresses in the order of their indexes, after an index; null begins. */
  deposits(account_id: string, after: number | null, limit: number): Promise<WatchedDeposit[]>;
  /** Stores the payout of a call, unless it is stored, and returns it. */
  payout(account_id: string, call_id: string, destination: string): Promise<ChainPayout>;
  /**
   * Assigns a payout its permanent nonce, and returns it; null if the payout was exported.
   * @param count the number of transactions that the chain has of the signer
   */
  nonce(
    account_id: string,
    call_id: string,
    signer: { chain_id: number; address: string; count: number },
  ): Promise<number | null>;
  /** Records the fees, in wei, of the transaction that is sent next. */
  sending(
    account_id: string,
    call_id: string,
    fees: { max_fee: number; priority_fee: number },
  ): Promise<void>;
  /** Records the hash of a transaction that was sent. */
  sent(account_id: string, call_id: string, tx_hash: string): Promise<void>;
  /**
   * Returns the payouts without a fact of the chain, oldest first: those whose calls have no result,
   * and those with a nonce that the operator has settled as failed in the last days.
   */
  openPayouts(account_id: string): Promise<ChainPayout[]>;
  /** Returns the references of the transfers that belong to another payout, of any account. */
  takenTransfers(
    account_id: string,
    transfers: readonly { reference: string; nonce: number | null }[],
  ): Promise<string[]>;
  /** Returns the payouts that are final, by the times of their blocks. */
  paidPayouts(account_id: string, time: TotalsTime): Promise<PaidPayout[]>;
}

/** Why the result of a call is unknown. */
export type UnknownReason =
  | "timeout"
  | "connection"
  | "server_error"
  | "garbage"
  | "in_progress"
  | "rate_limited"
  /** The secret is missing, or the provider refuses it. */
  | "unauthorized"
  /** The provider has answered another request under this idempotency key. */
  | "idempotency_conflict";

/** A provider's reply to a call. */
export type ProviderReply =
  /** The first fact is about the call itself. Others, such as a fee, can follow. */
  | { facts: readonly [Fact, ...Fact[]] }
  /** The call may have worked. `may_repeat`: false if the provider would only replay this reply. */
  | {
    unknown: UnknownReason;
    may_repeat: boolean;
    /** Time until the next attempt; absent: by the number of attempts. */
    after_ms?: number;
    /** The result that the sandbox's provider replies then; absent: that of its instrument. */
    simulated?: SimulatedResult;
    /** True: this request did nothing at the provider. An earlier one may have worked. */
    did_nothing?: true;
  }
  /** The provider refused the call, and nothing has happened. `param` is our field at fault. */
  | {
    refused: "provider_refused" | "invalid_parameter";
    message: string;
    param?: string;
    /** For the operator, if the message is not enough. */
    reason?: string;
    /** `pac_…`: no call of this account works. The operator has to mend it. */
    unusable_account?: string;
  }
  /** A look found no trace of the call. */
  | { absent: true }
  /**
   * The call is under way, and its result comes as a later fact. The text is for the operator.
   * `needs_operator`: only the operator can end the wait.
   */
  | { waiting: string; needs_operator?: boolean };

/** The time whose movements are totalled, in milliseconds: `from_ms` counts, `to_ms` does not. */
export interface TotalsTime {
  from_ms: number;
  to_ms: number;
}

/** A stored final fact that the operator compares with the chain. */
export interface ReadFact {
  reference: string;
  /** The address of the payment. */
  address: string;
  amount_minor: number;
  currency: string;
}

/** Reads blocks of a chain again, for the operator. Both methods throw if the provider fails. */
interface Reread {
  /** Returns the cursor after a block, and the time of the block. */
  after(
    account: ProviderAccount,
    number: number,
    signal: AbortSignal,
  ): Promise<{ cursor: unknown; at_ms: number }>;
  /** Returns the references of the facts whose transfers are no longer on the chain. */
  gone(
    account: ProviderAccount,
    facts: readonly ReadFact[],
    signal: AbortSignal,
  ): Promise<string[]>;
}

/** A connector of one kind of provider. It keeps no state, and no method repeats a request. */
export interface Connector {
  readonly name: string;
  readonly method_kinds: readonly MethodKind[];
  /** Present: an account needs no API secret. */
  readonly secret_is_optional?: true;
  /** Present: the provider sends no notifications, and the poll brings every fact. */
  readonly has_no_notifications?: true;
  /** Settings that the operator can change; absent: none. Stored objects depend on the others. */
  readonly changeable_settings?: readonly string[];
  /**
   * Checks settings before they are stored, and resolves to the settings to store: the given ones,
   * or the same with another spelling. Rejects with `ApiError` `invalid_parameter`.
   */
  checkSettings(settings: Readonly<Record<string, string>>): Promise<Record<string, string>>;
  /** Sends a call with its id as the idempotency key. Never throws. */
  send(
    account: ProviderAccount,
    call: Operation,
    signal: AbortSignal,
    books: ChainBooks,
  ): Promise<ProviderReply>;
  /** Finds the result of a call, by our id while the provider's is not known. Never throws. */
  look(
    account: ProviderAccount,
    call: Operation,
    signal: AbortSignal,
    books: ChainBooks,
  ): Promise<ProviderReply>;
  /**
   * Reads the object that the operator names as the result of a call, whatever it says about the
   * call. Never throws.
   */
  find(
    account: ProviderAccount,
    call: Operation,
    reference: string,
    signal: AbortSignal,
  ): Promise<ProviderReply>;
  /** Reads facts after a cursor; null begins at the present. Throws if the provider fails. */
  poll(
    account: ProviderAccount,
    cursor: unknown,
    signal: AbortSignal,
    books: ChainBooks,
  ): Promise<{ facts: Fact[]; cursor: unknown; more: boolean }>;
  /**
   * Reads a notification. Returns null if it is about another account of the provider. Throws
   * `ApiError`: `unauthorized` unless one of the secrets has signed it, `invalid_parameter` for a
   * body that is not a notification.
   */
  readNotification(
    account: ProviderAccount,
    raw: Uint8Array,
    headers: Headers,
    at_ms: number,
  ): Promise<Fact[] | null>;
  /**
   * Reads a page of the movements of a time. A null cursor begins. Returns the totals after the last
   * page, and before that the cursor of the next page. Throws if the provider fails.
   */
  totals(
    account: ProviderAccount,
    time: TotalsTime,
    cursor: unknown,
    signal: AbortSignal,
    books: ChainBooks,
  ): Promise<{ totals: ProviderTotal[] } | { cursor: unknown }>;
  /** Present: the operator can make the service read blocks again. */
  readonly reread?: Reread;
  /** Makes a harmless call. Returns a line for the operator. Throws with a message for people. */
  test(account: ProviderAccount, signal: AbortSignal): Promise<string>;
}
