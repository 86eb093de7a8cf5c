/**
 * The provider worker: asks again after unknown results, applies facts, looks at open payments,
 * polls accounts and reads their totals (architecture §7). All state is in the database, so any
 * number of workers can run and a crash loses nothing.
 */

import type { Clock } from "../../core/clock.ts";
import type { ProviderRecord, ProviderWork, RecordOutcome } from "../../store/provider_rows.ts";
import type { ProviderStore } from "../../store/provider_store.ts";
import { readRefund, readSubject } from "../changes/read_resource.ts";
import type { Fact } from "../providers/connector.ts";
import { pollAccount, readTotals } from "./account_reader.ts";
import { applyPayout } from "./apply_payout.ts";
import type { CallRunner } from "./call_runner.ts";
import {
  applyToSubject,
  decideResult,
  type OwnCall,
  pointlessRecord,
  recordOf,
} from "./decide_result.ts";
import { inOurMode, type ProviderAccounts, type ReadyAccount } from "./provider_accounts.ts";

/** Pieces of work that one turn claims and does concurrently. */
const TURN_LIMIT = 32;
/** Duration of a claim: longer than a call and its record. */
const LEASE_MS = 30_000;
/** Longest time of a look, which can take several requests. */
const LOOK_DEADLINE_MS = 20_000;
/** Most decisions about one fact. The worker claims it again later. */
const MAX_DECISIONS = 10;

/** The dependencies of a worker. */
interface ProviderWorkerOptions {
  store: ProviderStore;
  accounts: ProviderAccounts;
  runner: CallRunner;
  clock: Clock;
  /** Called if a turn or a piece of work fails. Its lease ends by itself. */
  on_error: (error: unknown) => void;
}

/** Does the work that the database hands out. */
export class ProviderWorker {
  readonly #options: ProviderWorkerOptions;
  #wanted = false;
  #running: Promise<void> | null = null;
  #stopped = false;

  constructor(options: ProviderWorkerOptions) {
    this.#options = options;
  }

  /** Looks for due work. Resolves when there is none any more. */
  nudge(): Promise<void> {
    this.#wanted = true;
    this.#running ??= this.#run().finally(() => this.#running = null);
    return this.#running;
  }

  /** Claims no more work, and waits for the work under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    const { store, clock, on_error } = this.#options;
    while (this.#wanted && !this.#stopped) {
      this.#wanted = false;
      try {
        const work = await store.claimWork(TURN_LIMIT, LEASE_MS, clock());
        // A full turn can have left work behind, and work can make more of it.
        if (work.length > 0) this.#wanted = true;
        await Promise.all(work.map((piece) => this.#do(piece).catch(on_error)));
      } catch (error) {
        on_error(error);
      }
    }
  }

  #do(work: ProviderWork): Promise<unknown> {
    switch (work.kind) {
      case "call":
        return this.#call(work);
      case "fact":
        return this.#apply(work, work.fact!);
      case "look":
        return this.#look(work);
      case "poll":
      case "totals":
        return this.#read(work);
    }
  }

  async #call(work: ProviderWork): Promise<void> {
    const call = ownCall(work);
    const pointless = pointlessRecord(call);
    if (pointless) await this.#record(pointless);
    else await this.#options.runner.run(work.account, call);
  }

  /** Applies a stored fact. Decides again if another fact has changed the payment meanwhile. */
  async #apply(work: ProviderWork, fact: Fact): Promise<void> {
    const { store } = this.#options;
    for (let given = work, i = 0; i < MAX_DECISIONS; i++) {
      if (await this.#decide(given, fact) !== "stale") return;
      const { environment_id, subject_body } = given;
      const { id } = readSubject(subject_body!);
      const present = await store.readSubject(environment_id, id, fact.refund_id);
      if (!present) return;
      given = { ...given, ...present };
    }
  }

  /** Records the effect of a fact. Returns the record's outcome; null: the fact has to wait. */
  async #decide(work: ProviderWork, fact: Fact): Promise<RecordOutcome["outcome"] | null> {
    const { runner } = this.#options;
    const { environment_id, livemode, subject_body, refund_body } = work;
    const context = runner.context(livemode);
    if (fact.op === "payout") {
      const { facts: [ours] } = inOurMode(work.account, { facts: [fact] }, livemode);
      return await this.#record(recordOf(environment_id, ours, applyPayout(ours, context)));
    }
    if (subject_body === null) {
      const unmatched = { ...fact, outcome: "unmatched", finding: null, booked_minor: 0 } as const;
      return await this.#record({
        environment_id,
        call_id: null,
        call: null,
        facts: [unmatched],
        change: null,
        answer: null,
      });
    }
    const subject = readSubject(subject_body);
    const refund = refund_body === null ? null : readRefund(refund_body);
    const known = await this.#withCard(work, fact, subject);
    const { facts: [ours] } = inOurMode(work.account, { facts: [known] }, subject.livemode);
    const effect = applyToSubject(subject, refund, ours, context);
    if (effect.outcome === "wait") return null;
    const is_result = work.call !== null && work.call.state !== "settled" &&
      effect.outcome !== "finding";
    // The fact is also the result of the call, whose request may wait for it or be dead.
    const record = is_result
      ? decideResult(ownCall(work), { facts: [ours] }, context).record
      : recordOf(environment_id, ours, effect);
    return await this.#record(record);
  }

  async #record(record: ProviderRecord): Promise<RecordOutcome["outcome"]> {
    const [result] = await this.#options.store.record([record]);
    return result!.outcome;
  }

  /**
   * Adds the card to the fact that money was taken or held. A notification can come before the
   * answer of the call, and does not show the card.
   */
  async #withCard(work: ProviderWork, fact: Fact, subject: OwnCall["subject"]): Promise<Fact> {
    const is_paid = fact.state === "succeeded" || fact.state === "authorized";
    const lacks_card = subject.object === "payment" && subject.method === null &&
      subject.method_kind === "card" && fact.card === undefined;
    const opened = this.#options.accounts.open(work.account);
    if (!is_paid || !lacks_card || work.call === null || typeof opened === "string") return fact;
    const signal = AbortSignal.timeout(LOOK_DEADLINE_MS);
    const reply = await opened.connector.look(opened.account, ownCall(work), signal);
    const found = "facts" in reply ? reply.facts.find(({ card }) => card) : undefined;
    return found?.card ? { ...fact, card: found.card } : fact;
  }

  /** Looks at a payment that is still open, and stores what the provider says as facts. */
  async #look(work: ProviderWork): Promise<void> {
    const { store } = this.#options;
    const ready = this.#open(work);
    const signal = AbortSignal.timeout(LOOK_DEADLINE_MS);
    const reply = await ready.connector.look(ready.account, ownCall(work), signal);
    if ("facts" in reply && await store.storeFacts(work.account.id, reply.facts) > 0) {
      this.#wanted = true;
    }
  }

  async #read(work: ProviderWork): Promise<void> {
    const { store } = this.#options;
    const ready = this.#open(work);
    if (work.day === null) await pollAccount(ready, work.cursor, store);
    else await readTotals(ready, work.day, work.cursor, store);
  }

  #open(work: ProviderWork): ReadyAccount {
    const opened = this.#options.accounts.open(work.account);
    if (typeof opened === "string") throw new Error(`${work.account.id}: ${opened}`);
    return opened;
  }
}

function ownCall(work: ProviderWork): OwnCall {
  const call = work.call!;
  const { id, op, amount_minor, currency, request, created_at, first_sent_at, attempts } = call;
  return {
    id,
    environment_id: work.environment_id,
    op,
    subject: readSubject(work.subject_body!),
    refund: work.refund_body === null ? null : readRefund(work.refund_body),
    amount_minor,
    currency,
    instrument: request.token === null ? null : { token: request.token },
    provider_reference: call.provider_reference,
    created_at_ms: Date.parse(created_at),
    first_sent_at_ms: Date.parse(first_sent_at ?? created_at),
    attempt: attempts,
    may_repeat: call.may_repeat,
    request_id: call.request_id,
    decline_is_error: call.decline_is_error,
  };
}
