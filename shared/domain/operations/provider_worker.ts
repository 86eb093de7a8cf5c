/**
 * The provider worker: asks again after unknown results, applies provider events, syncs open
 * payments, polls accounts and reads their totals (architecture §7). All state is in the database,
 * so any number of workers can run and a crash loses nothing.
 */

import type { Clock } from "../../core/clock.ts";
import { span } from "../../core/tracing.ts";
import { Retries } from "../../jobs/retries.ts";
import { JobWorker, type Leased } from "../../jobs/worker.ts";
import type { ProviderRecord, ProviderWork, RecordOutcome } from "../../store/provider_rows.ts";
import type { ProviderStore } from "../../store/provider_store.ts";
import { IGNORED } from "../providers/effect.ts";
import { applyUnmatched } from "../providers/unmatched.ts";
import { readRefund, readSubject } from "../changes/read_resource.ts";
import { portOf, type ProviderReply, type StoredProviderEvent } from "../providers/connector.ts";
import { type Operation, operationOf } from "../providers/operation.ts";
import { pollAccount, readTotals } from "./account_reader.ts";
import { applyToAccount, isAccountEvent } from "../providers/apply_to_account.ts";
import type { OperationRunner } from "./operation_runner.ts";
import { decideStoredEvent, pointlessRecord, unsentRecord } from "./decide_result.ts";
import { accountRecord } from "./event_record.ts";
import { inOurMode, type ProviderAccounts, type ReadyAccount } from "./provider_accounts.ts";

const WORK_LIMIT = 32;
/** Most of them that ask a provider, so that slow ones leave slots for events. */
const ASKING_LIMIT = 24;
/** Longest wait for the leased pieces before the next ones are leased. */
const COLLECT_MS = 250;
/** Duration of a lease: longer than an operation and its record. */
const LEASE_MS = 30_000;
/** Time after which no further event of a payment begins, so that it ends within its lease. */
const TURNS_MS = 8_000;
/** Longest time of a sync, which can take several requests. */
const SYNC_DEADLINE_MS = 20_000;

interface ProviderWorkerOptions {
  store: ProviderStore;
  accounts: ProviderAccounts;
  runner: OperationRunner;
  clock: Clock;
  /** Called if a lease or a piece of work fails. Its lease ends by itself. */
  on_error: (error: unknown) => void;
}

/** Does the work that the database hands out. */
export class ProviderWorker extends JobWorker<readonly ProviderWork[]> {
  readonly #options: ProviderWorkerOptions;
  /** The pieces under way, and how many of them ask a provider. */
  #working = 0;
  #asking = 0;

  constructor(options: ProviderWorkerOptions) {
    super({
      recordAndLease: () => this.#lease(),
      run: (pieces) => this.#run(pieces),
      clock: options.clock,
      on_error: options.on_error,
      collect_ms: COLLECT_MS,
    });
    this.#options = options;
  }

  async #lease(): Promise<Leased<readonly ProviderWork[]>> {
    const { store, clock, on_error } = this.#options;
    const limit = this.is_stopped ? 0 : WORK_LIMIT - this.#working;
    if (limit === 0) return { jobs: [], has_more: false };
    const asking_limit = ASKING_LIMIT - this.#asking;
    const { work, given_up } = await store.leaseWork(limit, asking_limit, LEASE_MS, clock());
    for (const one of given_up) on_error(one);
    return { jobs: inTurn(work), has_more: false };
  }

  /**
   * Does pieces of work one after another. A slow provider holds up only its own pieces; what it
   * leaves of them is leased again.
   */
  async #run(pieces: readonly ProviderWork[]): Promise<void> {
    const asksOf = ({ kind }: ProviderWork) => kind === "event" ? 0 : 1;
    const began = performance.now();
    this.#working += pieces.length;
    for (const work of pieces) this.#asking += asksOf(work);
    for (const [at, work] of pieces.entries()) {
      try {
        if (at > 0 && performance.now() - began > TURNS_MS) continue;
        // In the trace of the operation, and not of the request that has woken the worker.
        await span("work", () => this.#do(work, at > 0), {
          attributes: { "payments.work": work.kind },
          parent: traceparentOf(work),
        });
      } catch (error) {
        this.#options.on_error(error);
      } finally {
        this.#working--;
        this.#asking -= asksOf(work);
      }
    }
  }

  /** @param is_later whether an event of the same payment was handled since the lease */
  #do(work: ProviderWork, is_later: boolean): Promise<unknown> {
    switch (work.kind) {
      case "operation":
        return this.#operation(work);
      case "event":
        return this.#apply(work, work.event!, is_later);
      case "sync":
        return this.#sync(work);
      case "poll":
      case "totals":
        return this.#read(work);
    }
  }

  async #operation(work: ProviderWork): Promise<void> {
    // Retention has deleted the payment before its operation was due.
    if (work.subject_body === null) {
      const { environment_id, operation } = work;
      const reason = "the payment is deleted";
      return void await this.#record(unsentRecord(environment_id, operation!.id, reason));
    }
    const operation = operationOf(work.operation!, work);
    const pointless = pointlessRecord(operation);
    if (pointless) await this.#record(pointless);
    else await this.#options.runner.run(work.account, operation);
  }

  /** Applies a stored event. Decides again if another event has changed the payment meanwhile. */
  async #apply(work: ProviderWork, event: StoredProviderEvent, is_later: boolean): Promise<void> {
    const { store } = this.#options;
    let given = work;
    await new Retries().untilDecided(async (n) => {
      if (n > 0 || is_later && given.subject_body !== null) {
        const { environment_id, subject_body } = given;
        // Another worker has booked the event.
        if (subject_body === null) return "gone";
        const { id } = readSubject(subject_body);
        const present = await store.readSubject(environment_id, id, event.refund_id, event);
        if (!present) return "gone";
        const { booked_minor, ...bodies } = present;
        given = { ...given, ...bodies, event: { ...event, booked_minor } };
      }
      const outcome = await this.#decide(given, given.event!);
      return outcome === "stale" ? null : outcome;
    });
  }

  /**
   * Records the effect of an event. Returns the record's outcome, or that the event has to wait.
   */
  async #decide(
    work: ProviderWork,
    event: StoredProviderEvent,
  ): Promise<RecordOutcome["outcome"] | "wait"> {
    const { environment_id, livemode, subject_body, refund_body } = work;
    const context = this.#options.runner.context(livemode, undefined, traceparentOf(work));
    if (subject_body === null) {
      const ours = asStored(work, event, livemode);
      const effect = isAccountEvent(ours)
        ? applyToAccount(ours, context)
        // A card of another program at the same account.
        : ours.op === "detach" || ours.op === "renewal"
        ? IGNORED
        : applyUnmatched(ours, context);
      return await this.#record(accountRecord(environment_id, ours, effect, event.booked_minor));
    }
    const subject = readSubject(subject_body);
    const refund = refund_body === null ? null : readRefund(refund_body);
    const known = await this.#withRest(work, event, subject);
    const dispute = work.dispute_body === null ? null : JSON.parse(work.dispute_body);
    const is_result = work.operation?.op === event.op && work.operation.state !== "settled";
    const operation = is_result ? operationOf(work.operation!, work) : null;
    const ours = asStored(work, known, subject.livemode);
    const { effect, record } = decideStoredEvent(
      { subject, refund, dispute, deposit: work.deposit, operation },
      environment_id,
      ours,
      context,
    );
    return effect.outcome === "wait" ? "wait" : await this.#record(record);
  }

  async #record(record: ProviderRecord): Promise<RecordOutcome["outcome"]> {
    const [result] = await this.#options.store.record([record]);
    return result!.outcome;
  }

  /**
   * Adds to an event that money was taken or held the parts that only a sync shows: the card, the
   * end of an authorization, and the time of the movement, which decides the day of its total. A
   * notification can come before the response of the operation, and names only the charge. Stores
   * the fee, so that it is booked now and not with the next poll.
   */
  async #withRest(
    work: ProviderWork,
    event: StoredProviderEvent,
    subject: Operation["subject"],
  ): Promise<StoredProviderEvent> {
    const { store, accounts } = this.#options;
    const is_needed = event.card?.is_partial && subject.object === "payment" &&
      work.operation !== null;
    const opened = is_needed ? accounts.open(work.account) : null;
    if (opened === null || typeof opened === "string") return event;
    const reply = await sync(opened, operationOf(work.operation!, work));
    if (!("provider_events" in reply)) return event;
    const [same, ...others] = reply.provider_events;
    if (others.length > 0 && await store.storeProviderEvents(work.account.id, others) > 0) {
      void this.notify();
    }
    const at = same.reference === event.reference ? same.at : event.at;
    return { ...event, at, card: { ...event.card, ...same.card } };
  }

  /** Syncs a payment that is still open, and stores what the provider says as events. */
  async #sync(work: ProviderWork): Promise<void> {
    const { store } = this.#options;
    const reply = await sync(this.#open(work), operationOf(work.operation!, work));
    if (
      "provider_events" in reply &&
      await store.storeProviderEvents(work.account.id, reply.provider_events) > 0
    ) {
      void this.notify();
    }
  }

  async #read(work: ProviderWork): Promise<void> {
    const { store } = this.#options;
    const ready = this.#open(work);
    if (work.day !== null) return await readTotals(ready, work.day, work.cursor, store);
    try {
      await pollAccount(ready, work.cursor, store);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      await store.stallReading(work.account.id, message).catch(this.#options.on_error);
      throw error;
    }
  }

  #open(work: ProviderWork): ReadyAccount {
    const opened = this.#options.accounts.open(work.account);
    if (typeof opened === "string") throw new Error(`${work.account.id}: ${opened}`);
    return opened;
  }
}

/**
 * Puts the events of one payment into one job, in their order. At the same time, each would be
 * decided again after each of the others.
 */
function inTurn(work: readonly ProviderWork[]): ProviderWork[][] {
  const by_subject = Map.groupBy(work, ({ event }, at) => event?.subject_id ?? at);
  return [...by_subject.values()];
}

/** Returns a stored event in the mode of our payment, as `inOurMode` does. */
function asStored(
  work: ProviderWork,
  event: StoredProviderEvent,
  livemode: boolean,
): StoredProviderEvent {
  const { provider_events: [ours] } = inOurMode(
    work.account,
    { provider_events: [event] },
    livemode,
  );
  return { ...event, ...ours };
}

/** Returns the place in a trace from which the operation came that the work is about. */
function traceparentOf({ operation }: ProviderWork): string | null {
  return operation?.traceparent ?? null;
}

/** Finds the result of an operation at its provider. Never throws. */
function sync({ account, connector }: ReadyAccount, operation: Operation): Promise<ProviderReply> {
  const signal = AbortSignal.timeout(SYNC_DEADLINE_MS);
  return portOf(connector, operation).sync(account, operation, signal);
}
