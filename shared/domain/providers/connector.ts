/**
 * The interface between the live flow and the connectors of providers (architecture §7). An
 * operation is committed before it is sent, and its id is the provider's idempotency key. Every
 * result is a provider event from one of four sources: the response to an operation, a
 * notification, a poll or a sync.
 */

import type { CheckoutMethod } from "../../core/checkout_methods.ts";
import type { CheckoutPrice } from "../../schema/checkout.ts";
import type { MethodKind } from "../../schema/payment_body.ts";
import type { SimulatedResult } from "./test_values.ts";
import type { ProviderEvent, ProviderTotal } from "../../store/provider_rows.ts";
import type { Operation } from "./operation.ts";

export type { Operation } from "./operation.ts";
export type { ProviderOp } from "../../store/operation_row.ts";
export type {
  AccountOp,
  ProviderEvent,
  ProviderEventOp,
  ProviderEventState,
  ProviderTotal,
  StoredProviderEvent,
} from "../../store/provider_rows.ts";

export interface ProviderAccount {
  /** `pac_…` */
  id: string;
  environment_id: string;
  connector: string;
  /** Settings of the connector, such as `base_url`. */
  settings: Readonly<Record<string, string>>;
  /** The provider's API secret; null if its variable is not set. */
  secret: string | null;
  /**
   * Secrets that sign notifications: two during a rotation. Empty: all notifications are refused.
   */
  notification_secrets: readonly string[];
}

/** Why the result of an operation is unknown. */
export type UnknownReason =
  | "timeout"
  | "connection"
  | "server_error"
  | "garbage"
  | "in_progress"
  | "rate_limited"
  /** The secret is missing, or the provider refuses it. */
  | "unauthorized"
  /** The provider has handled another request under this idempotency key. */
  | "idempotency_conflict";

export type ProviderReply =
  /** The first event is about the operation itself. Others, such as a fee, can follow. */
  | { provider_events: readonly [ProviderEvent, ...ProviderEvent[]] }
  /**
   * The operation may have worked. `may_repeat`: false if the provider would only replay this
   * reply.
   */
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
  /**
   * The provider refused the operation, and nothing has happened. `param` is our field at fault.
   */
  | {
    refused: "provider_refused" | "invalid_parameter";
    message: string;
    param?: string;
    /** For the operator, if the message is not enough. */
    reason?: string;
    /** `pac_…`: no operation of this account works. The operator has to mend it. */
    unusable_account?: string;
  }
  /** A sync found no trace of the operation. */
  | { absent: true }
  /**
   * The operation is under way, and its result comes as a later event. The text is for the
   * operator. `needs_operator`: only the operator can end the wait.
   */
  | { waiting: string; needs_operator?: boolean };

/** The time whose movements are totalled, in milliseconds: `from_ms` counts, `to_ms` does not. */
export interface TotalsTime {
  from_ms: number;
  to_ms: number;
}

/** The client of one kind of provider. It keeps no state, and repeats no request. */
export interface Connector {
  readonly name: string;
  /** Whether an account has to name an API secret. */
  readonly needs_secret: boolean;
  /** Settings that the operator can change. Stored objects depend on the others. */
  readonly changeable_settings: readonly string[];
  /**
   * Checks settings before they are stored, and resolves to the settings to store: the given ones,
   * or the same with another spelling. Rejects with `ApiError` `invalid_parameter`.
   * @param method_kinds that the account serves
   */
  checkSettings(
    settings: Readonly<Record<string, string>>,
    method_kinds?: readonly MethodKind[],
  ): Promise<Record<string, string>>;
  /**
   * Resolves to whether checkouts can offer a method of an account at a price. The account serves
   * the kind of the method.
   */
  takes(
    settings: Readonly<Record<string, string>>,
    method: CheckoutMethod,
    price: CheckoutPrice,
  ): Promise<boolean>;
  /** Makes a harmless call. Returns a line for the operator. Throws with a message for people. */
  test(account: ProviderAccount, signal: AbortSignal): Promise<string>;
  /** Operations on payments, their refunds and their disputes. */
  readonly charges: OperationPort;
  /** Operations on transfers; null: the provider pays nobody out. */
  readonly payouts: OperationPort | null;
  /** Null: the provider sends none, and the feed brings every event. */
  readonly notifications: Notifications | null;
  readonly feed: Feed;
}

/** Carries operations out, and finds their results. No method throws. */
export interface OperationPort {
  /** Sends an operation with its id as the idempotency key. */
  send(
    account: ProviderAccount,
    operation: Operation,
    signal: AbortSignal,
  ): Promise<ProviderReply>;
  /** Finds the result of an operation, by our id while the provider's is not known. */
  sync(
    account: ProviderAccount,
    operation: Operation,
    signal: AbortSignal,
  ): Promise<ProviderReply>;
  /**
   * Reads the object that the operator names as the result, whatever it says about the operation.
   */
  find(
    account: ProviderAccount,
    operation: Operation,
    reference: string,
    signal: AbortSignal,
  ): Promise<ProviderReply>;
}

interface Notifications {
  /**
   * Reads a notification. Returns null if it is about another account of the provider. Throws
   * `ApiError`: `unauthorized` unless one of the secrets has signed it, `invalid_parameter` for a
   * body that is not a notification.
   */
  read(
    account: ProviderAccount,
    raw: Uint8Array,
    headers: Headers,
    at_ms: number,
  ): Promise<ProviderEvent[] | null>;
}

/** Everything that an account has seen, page by page. A null cursor begins. */
interface Feed {
  /** Reads events after a cursor; null begins at the present. Throws if the provider fails. */
  poll(
    account: ProviderAccount,
    cursor: unknown,
    signal: AbortSignal,
  ): Promise<{ provider_events: ProviderEvent[]; cursor: unknown; more: boolean }>;
  /**
   * Reads a page of the movements of a time. Returns the totals after the last page, and before
   * that the cursor of the next page. Throws if the provider fails.
   */
  totals(
    account: ProviderAccount,
    time: TotalsTime,
    cursor: unknown,
    signal: AbortSignal,
  ): Promise<{ totals: ProviderTotal[] } | { cursor: unknown }>;
}

/** Finds the connector with a name, or null. */
export type ConnectorFinder = (name: string) => Connector | null;

const NO_PAYOUTS: OperationPort = {
  send: () =>
    Promise.resolve({
      refused: "provider_refused",
      message: "The payment provider of this account makes no transfers",
    }),
  sync: () => Promise.resolve({ absent: true }),
  find: () => Promise.resolve({ absent: true }),
};

/** Returns the part of a connector that carries an operation out. */
export function portOf({ charges, payouts }: Connector, { subject }: Operation): OperationPort {
  return subject.object === "transfer" ? payouts ?? NO_PAYOUTS : charges;
}
