/**
 * Sends the operations that are committed, and records their results (architecture §7). The request
 * that has reserved an operation sends it first; after a crash or an unknown result the worker asks
 * again with the same id.
 */

import { span } from "../../core/tracing.ts";
import { Retries } from "../../jobs/retries.ts";
import { serviceUnavailable } from "../../core/errors.ts";
import type { ProviderOp } from "../../store/operation_row.ts";
import type { StoredResponse } from "../../store/commit_rows.ts";
import type { ProviderRecord, StoredAccount } from "../../store/provider_rows.ts";
import type { ProviderStore } from "../../store/provider_store.ts";
import type { EventContext } from "../changes/event.ts";
import type { Origins } from "../changes/origin.ts";
import { portOf, type ProviderReply } from "../providers/connector.ts";
import { type Operation, operationOf } from "../providers/operation.ts";
import { currentResponse, decideResult, NEVER_REFUSED, pointlessRecord } from "./decide_result.ts";
import { inOurMode, type ProviderAccounts } from "./provider_accounts.ts";

/** Longest time that an operation takes (architecture §7). */
export const OPERATION_DEADLINE_MS = 8_000;
/** The reason is for the operator and not for the caller of the API. */
const ACCOUNT_NOT_USABLE =
  "The account at the payment provider does not work, so nothing has happened there: let the " +
  "operator check it";
/**
 * The number in the response to an advance that counts the results of an operation (contract §7).
 */
const COUNTED_AS: Partial<Record<ProviderOp, string>> = {
  abandon: "expired_payments",
  expire: "expired_payments",
  dispute_expire: "disputes_closed",
};

/** The response to a request, perhaps after another attempt has settled its operation. */
interface OperationResponse extends StoredResponse {
  /** True: it shows the present state, and another response can be stored for the request's key. */
  is_late?: true;
}

export class OperationRunner {
  readonly #store: ProviderStore;
  readonly #accounts: ProviderAccounts;
  readonly #origins: Origins;
  readonly #deadline_ms: number;
  readonly #on_provider_events: () => void;
  readonly #on_retry: (at_ms: number) => void;

  constructor(options: {
    store: ProviderStore;
    accounts: ProviderAccounts;
    origins: Origins;
    deadline_ms?: number;
    /** Called after a reply with provider events that the worker applies. */
    on_provider_events: () => void;
    /** Called with the time of the next attempt of an operation. */
    on_retry: (at_ms: number) => void;
  }) {
    this.#store = options.store;
    this.#accounts = options.accounts;
    this.#origins = options.origins;
    this.#on_provider_events = options.on_provider_events;
    this.#on_retry = options.on_retry;
    this.#deadline_ms = options.deadline_ms ?? OPERATION_DEADLINE_MS;
  }

  /** Sends an operation or syncs it, and records the reply. Returns the request's response. */
  async run(stored: StoredAccount, operation: Operation): Promise<OperationResponse> {
    return await this.record(operation, await this.#ask(stored, operation));
  }

  /**
   * Makes the origin of events that belong to no request, but perhaps to an operation.
   * @param traceparent the place in a trace from which they come
   */
  context(
    livemode: boolean,
    operation?: Operation,
    traceparent = operation?.traceparent ?? null,
  ): EventContext {
    const clock = operation ? clockOf(operation) : null;
    const settings = clock?.settings ?? null;
    const at_ms = this.#origins.at(settings, clock?.due);
    // An operation can change its payment more than once.
    // The text is an input of the ids in seeded sandboxes: another one gives other ids.
    const label = () => `call ${operation!.id} ${operation!.subject.sequence}`;
    return { ...this.#origins.of({ settings, livemode, at_ms, label }), traceparent };
  }

  async #ask(stored: StoredAccount, operation: Operation): Promise<ProviderReply> {
    const opened = this.#accounts.open(stored);
    if (typeof opened === "string") {
      const { may_repeat } = operation;
      const nothing = { unknown: "unauthorized", may_repeat, did_nothing: true } as const;
      return provenRefusal(stored, operation, nothing, opened);
    }
    const { account, connector } = opened;
    const signal = AbortSignal.timeout(this.#deadline_ms);
    const port = portOf(connector, operation);
    const attributes = {
      "payments.connector": connector.name,
      "payments.operation": operation.op,
    };
    const reply = await span("provider", async (describe) => {
      const reply = operation.may_repeat
        ? await port.send(account, operation, signal)
        : await port.sync(account, operation, signal);
      if ("unknown" in reply) describe?.({ "error.type": reply.unknown });
      return reply;
    }, { attributes });
    if ("provider_events" in reply) return inOurMode(account, reply, operation.subject.livemode);
    return provenRefusal(stored, operation, reply, `${connector.name} refuses the secret`);
  }

  /** Records a reply. Decides again if somebody else has changed the payment meanwhile. */
  record(first: Operation, reply: ProviderReply): Promise<OperationResponse> {
    let operation = first;
    let booked_minor = 0;
    // Of its own, because the provider has done its part.
    return new Retries().untilDecided(async (n) => {
      const context = this.context(operation.subject.livemode, operation);
      const { record, response } = overtaken(operation, context) ??
        decideResult(operation, reply, context, { booked_minor, records_fees: n === 0 });
      const counted_as = clockOf(operation) && record.change ? COUNTED_AS[operation.op] : undefined;
      const [result] = await this.#store.record([{ ...record, ...(counted_as && { counted_as }) }]);
      if (record.provider_events.some(({ outcome }) => outcome === null)) {
        this.#on_provider_events();
      }
      if (result!.outcome === "recorded") {
        const next = record.operation?.next_attempt_at;
        if (next !== undefined) this.#on_retry(Date.parse(next));
        return response;
      }
      [operation, booked_minor] = await this.#reload(operation, reply);
      // Another attempt has settled the operation, or a notification has brought the provider
      // event.
      const is_settled = result!.outcome === "known" && result!.is_settled;
      return is_settled ? { ...currentResponse(operation, context), is_late: true } : null;
    });
  }

  /**
   * Reads the subject of an operation, and the booking of the first provider event of its reply.
   */
  async #reload(
    operation: Operation,
    reply: ProviderReply,
  ): Promise<[operation: Operation, booked_minor: number]> {
    const { environment_id, subject: { id }, refund } = operation;
    const event = "provider_events" in reply ? reply.provider_events[0] : null;
    const found = await this.#store.readSubject(environment_id, id, refund?.id ?? null, event);
    if (!found) throw serviceUnavailable();
    return [operationOf(operation, found, operation.dispute), found.booked_minor];
  }
}

/**
 * Returns the end of a sandbox's operation whose payment a request has moved meanwhile: the sandbox
 * has no provider that has done something, so the move counts, and not the result of the operation.
 * A reply of a live provider is always a provider event.
 */
function overtaken(
  operation: Operation,
  context: EventContext,
): { record: ProviderRecord; response: StoredResponse } | null {
  if (operation.subject.livemode) return null;
  const record = pointlessRecord(operation);
  return record && { record, response: currentResponse(operation, context) };
}

/**
 * Returns a refusal if nothing can have happened at the provider: the account was not usable at the
 * first attempt (ADR 0019). An earlier attempt may have worked, so a later one stays unknown.
 */
function provenRefusal(
  { id }: StoredAccount,
  { attempts, op }: Operation,
  reply: ProviderReply,
  reason: string,
): ProviderReply {
  const is_proven = "unknown" in reply && reply.unknown === "unauthorized" &&
    reply.did_nothing === true && attempts === 1 && !NEVER_REFUSED.has(op);
  if (!is_proven) return reply;
  return {
    refused: "provider_refused",
    message: ACCOUNT_NOT_USABLE,
    reason,
    unusable_account: id,
  };
}

/**
 * Returns the settings of the sandbox whose clock an operation follows, and when it is due, or
 * null.
 */
function clockOf({ settings, due_at, subject }: Operation) {
  if (settings === null || due_at === null) return null;
  return { settings, due: { due_ms: Date.parse(due_at), not_before: subject.updated_at } };
}
