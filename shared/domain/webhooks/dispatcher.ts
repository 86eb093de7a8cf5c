/**
 * The dispatcher leases due deliveries in the outbox and sends them. It limits concurrent attempts
 * for each endpoint, environment and account, and in total. All state is in the database, except
 * for the leases of this dispatcher. Its loop is in shared/jobs/worker.ts.
 *
 * One statement per poll records ended attempts and leases due deliveries. Guarantees: at least one
 * delivery, and the order of events for each endpoint and subject.
 *
 * If a poll fails although the database is there, the results are recorded one by one, and
 * endpoints with which a poll fails are left out for a while. So a bad row holds up no other
 * endpoint. The lease of a delivery whose result cannot be recorded expires.
 *
 * A delivery whose lease expired without a record may have ended its process: it is poison until it
 * has a record. The dispatcher sends one such delivery at a time. It records the third expired
 * lease as crashed and does not send that delivery (ADR 0017).
 */

import { type Clock, formatTime } from "../../core/clock.ts";
import { isUnavailable } from "../../core/database_error.ts";
import type { RandomSource } from "../../core/ids.ts";
import { GivenUp, sendBatch } from "../../jobs/batcher.ts";
import { FairTime } from "../../jobs/fair_time.ts";
import { JobWorker, type Leased } from "../../jobs/worker.ts";
import { parseSettings } from "../../store/sandbox_settings.ts";
import type { AttemptResult, LeasedDelivery, WebhookStore } from "../../store/webhook_store.ts";
import type { Origins } from "../changes/origin.ts";
import { crashedAttempt, type EndedAttempt, makeAttempt, type Send } from "./attempt.ts";
import { type Chain, chainsOf, DeliveryQueue, FIRST_LEASE, MAX_LEASED } from "./delivery_queue.ts";
import { disableEndpoint, disablingReason } from "./disable_endpoint.ts";
import { EndpointSecrets } from "./endpoint_secret.ts";
import { nextAttemptAt } from "./retry_schedule.ts";
import type { WebhookSettings } from "./webhook_endpoints.ts";

/** Duration of a lease: 15 s for the attempt, and time to wait for a slot and to be recorded. */
const LEASE_MS = 25_000;
/** Share of its lease that a delivery may wait for a slot: 8 s. Then it is given back. */
const WAIT_SHARE = 0.32;
/** So many results do not wait for others. */
const MOST_RESULTS = 64;
/** Time for which an endpoint with which a poll fails is left out. Each try costs a failed poll. */
const EXCLUDED_MS = 10 * 60_000;

export interface DispatcherOptions {
  store: WebhookStore;
  settings: WebhookSettings;
  send: Send;
  clock: Clock;
  random: RandomSource;
  origins: Origins;
  /** Duration of a lease; `LEASE_MS` by default. */
  lease_ms?: number;
  /**
   * Called if a poll fails, for example without a database, and for each delivery and endpoint that
   * is given up. The leases expire by themselves.
   */
  on_error: (error: unknown) => void;
  /** Called for each attempt that has ended, for the log. */
  on_attempt: (delivery: LeasedDelivery, ended: EndedAttempt) => void;
}

/** Leases and sends due deliveries. */
export class Dispatcher extends JobWorker<Chain, AttemptResult> {
  readonly #options: DispatcherOptions;
  readonly #queue = new DeliveryQueue();
  readonly #secrets: EndpointSecrets;
  /** Deliveries whose attempts are under way. */
  readonly #under_way = new Set<LeasedDelivery>();
  /** The time of accounts whose poison deliveries were sent. */
  readonly #poison_time = new FairTime();
  /** The endpoints that are left out, with the time at which they are tried again. */
  readonly #excluded = new Map<string, number>();

  constructor(options: DispatcherOptions) {
    super({
      recordAndLease: (results) => this.#recordAndLease(results),
      run: (chain) => this.#send(chain),
      clock: options.clock,
      on_error: options.on_error,
      most_results: MOST_RESULTS,
    });
    this.#options = options;
    this.#secrets = new EndpointSecrets(options.settings.master_secret);
  }

  /**
   * Stops leasing, gives back the deliveries that wait for a slot, and waits for the attempts under
   * way. When `patience` resolves, it gives those back too, and another dispatcher sends them
   * again. Resolves when the database has recorded all of them, so no lease expires.
   */
  override async stop(patience?: Promise<void>): Promise<void> {
    const stopped = super.stop(patience, () => {
      for (const delivery of this.#under_way) this.#giveBack(delivery);
      this.#under_way.clear();
    });
    this.#queue.cancel();
    await stopped;
  }

  async #recordAndLease(results: readonly AttemptResult[]): Promise<Leased<Chain>> {
    const at_ms = this.#options.clock();
    this.#queue.cancelSurplus();
    const limit = this.is_stopped ? 0 : MAX_LEASED - this.#queue.leased;
    if (limit <= 0 && results.length === 0) return { jobs: [], has_more: false };
    const leased = await this.#poll(results, limit, at_ms)
      .catch((error) => this.#pollApart(results, limit, at_ms, error));
    const poison = leased.find((delivery) => delivery.poison);
    if (poison) this.#poison_time.begin(poison.account, performance.now());
    return { jobs: chainsOf(leased, at_ms), has_more: limit > 0 && leased.length >= limit };
  }

  #poll(
    results: readonly AttemptResult[],
    limit: number,
    at_ms: number,
  ): Promise<LeasedDelivery[]> {
    const { store, lease_ms = LEASE_MS } = this.#options;
    for (const [id, until_ms] of this.#excluded) if (until_ms <= at_ms) this.#excluded.delete(id);
    return store.pollDeliveries({
      results,
      limit,
      per_endpoint: FIRST_LEASE.endpoint,
      per_environment: FIRST_LEASE.environment,
      per_account: FIRST_LEASE.account,
      capacity: this.#queue.capacity(),
      poison_ahead: this.#poison_time.ahead(),
      at_ms,
      leased_until_ms: at_ms + lease_ms,
      excluded: [...this.#excluded.keys()],
    });
  }

  /** Records the results of a failed poll one by one, and leases around what fails. */
  async #pollApart(
    results: readonly AttemptResult[],
    limit: number,
    at_ms: number,
    failure: unknown,
  ): Promise<LeasedDelivery[]> {
    const refused = new Map<AttemptResult, unknown>();
    const refuse = (part: readonly AttemptResult[], error: unknown) => {
      for (const result of part) refused.set(result, error);
    };
    if (isUnavailable(failure)) refuse(results, failure);
    else if (results.length > 0) {
      const send = (part: readonly AttemptResult[]) => this.#poll(part, 0, at_ms);
      await sendBatch(results, { send, refuse, in_order: true });
    }
    try {
      const leased = await this.#leaseAround(limit, failure, at_ms);
      for (const [{ id }, error] of refused) {
        this.#options.on_error(new GivenUp(`delivery ${id}`, error));
      }
      return leased;
    } catch (error) {
      // Nothing can be recorded or leased, so the fault is not in the results.
      this.record(...refused.keys());
      throw error;
    }
  }

  /**
   * Leases deliveries after a failed poll, without the endpoints with which a lease fails. Throws
   * if that fails too, or if nothing may be leased.
   */
  async #leaseAround(
    limit: number,
    failure: unknown,
    at_ms: number,
  ): Promise<LeasedDelivery[]> {
    if (limit <= 0 || isUnavailable(failure)) throw failure;
    try {
      return await this.#poll([], limit, at_ms);
    } catch (error) {
      if (isUnavailable(error)) throw error;
    }
    const { store, on_error } = this.#options;
    for (const failing of await store.findFailingEndpoints(at_ms)) {
      this.#excluded.set(failing.endpoint_id, at_ms + EXCLUDED_MS);
      on_error(new GivenUp(`endpoint ${failing.endpoint_id}`, failing));
    }
    return await this.#poll([], limit, at_ms);
  }

  /** Sends the deliveries of a chain in order, until one fails. Gives back the rest. */
  async #send(chain: Chain): Promise<void> {
    const { clock, on_error, lease_ms = LEASE_MS } = this.#options;
    const { deliveries, leased_at_ms } = chain;
    const slot = this.is_stopped ? null : await this.#queue.take(chain);
    let goes_on = slot !== null;
    for (const delivery of deliveries) {
      goes_on &&= !this.is_stopped && clock() - leased_at_ms <= lease_ms * WAIT_SHARE;
      if (!goes_on && !delivery.crashed) this.#giveBack(delivery);
      else {
        this.#under_way.add(delivery);
        try {
          goes_on = await this.#attempt(delivery);
        } catch (error) {
          // Keeps the lease: the lease delays the next attempt, which may hit the same fault.
          on_error(error);
          goes_on = false;
        }
        this.#under_way.delete(delivery);
        slot?.endPart(goes_on);
      }
      if (delivery.poison) this.#poison_time.end(performance.now());
    }
    slot?.leave();
  }

  /** Adds the release of a delivery to the results. After the next poll it can be leased again. */
  #giveBack({ environment_id, id, attempt, leased_until }: LeasedDelivery): void {
    this.record({
      environment_id,
      id,
      attempt,
      leased_until,
      outcome: "released",
      next_attempt_at: null,
      record: null,
    });
  }

  /** Makes an attempt and adds its result. Returns true if the receiver returned 2xx. */
  async #attempt(delivery: LeasedDelivery): Promise<boolean> {
    const real_ms = this.#options.clock();
    const at_ms = this.#options.origins.at(parseSettings(delivery.settings));
    const ended = delivery.crashed
      ? crashedAttempt(delivery.attempt, at_ms)
      : await this.#make(delivery, real_ms, at_ms);
    // `stop` gave it back, so another dispatcher may now use the same attempt number.
    if (!this.#under_way.has(delivery)) return false;
    this.#options.on_attempt(delivery, ended);
    let is_off = false;
    try {
      // Before the result, which would make the deliveries behind this one due.
      const reason = disablingReason(delivery, ended, at_ms);
      if (reason) is_off = await disableEndpoint(delivery, reason, at_ms, this.#options);
    } finally {
      this.record(this.#judge(delivery, ended, { real_ms, at_ms }, is_off));
    }
    if (is_off) this.#queue.cancel(delivery.endpoint_id);
    return ended.delivered;
  }

  /** Makes an attempt at `at_ms` of the sandbox. The signature has the real time. */
  #make(delivery: LeasedDelivery, real_ms: number, at_ms: number): Promise<EndedAttempt> {
    const { settings, send } = this.#options;
    const { endpoint_id, event_id, body, url, attempt, fault, traceparent } = delivery;
    return makeAttempt(
      {
        event_id,
        body,
        url,
        number: attempt,
        secrets: this.#secrets.signing(endpoint_id, delivery.secrets, { at_ms, real_ms }),
        allow_private: settings.allow_private && !delivery.livemode,
        livemode: delivery.livemode,
        signed_ms: real_ms,
        fault,
        traceparent,
      },
      at_ms,
      send,
    );
  }

  #judge(
    delivery: LeasedDelivery,
    ended: EndedAttempt,
    { real_ms, at_ms }: { real_ms: number; at_ms: number },
    is_off: boolean,
  ): AttemptResult {
    const { environment_id, id, attempt, leased_until, livemode } = delivery;
    const failed = { livemode, number: attempt, at_ms: real_ms, retry_after: ended.retry_after };
    // A 410 ends the delivery with its endpoint: if that has another URL by now, it goes there.
    const is_last = ended.delivered || is_off;
    // Only live attempts use it. The ids of a seeded test do not depend on the polls.
    const [byte] = livemode ? this.#options.random(new Uint8Array(1)) : [0];
    const next = is_last ? null : nextAttemptAt(failed, byte! / 256);
    if (next !== null) this.notifyAt(next);
    return {
      environment_id,
      id,
      attempt,
      leased_until,
      outcome: ended.delivered ? "delivered" : "failed",
      next_attempt_at: next === null ? null : formatTime(next),
      record: JSON.stringify(ended.record),
      ...(ended.log_entry && { log_entry: ended.log_entry }),
      ...(delivery.settings !== null && {
        due_at: formatTime(next === null ? at_ms : at_ms + next - real_ms),
      }),
    };
  }
}
