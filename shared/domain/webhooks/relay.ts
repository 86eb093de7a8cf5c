/**
 * The relay claims due deliveries in the outbox and sends them. It limits concurrent attempts for
 * each endpoint, environment and account, and in total. All state is in the database, except for
 * the claims of this relay.
 *
 * One statement per turn records ended attempts and claims due deliveries. Results that arrive
 * meanwhile wait for the next turn, so a busy relay needs few statements and an idle one none.
 * Guarantees: at least one delivery, and the order of events for each endpoint and subject.
 *
 * If a turn fails although the database is there, the results are recorded one by one, and endpoints
 * with which a turn fails are left out for a while. So a bad row holds up no other endpoint. The lease
 * of a delivery whose result cannot be recorded expires.
 *
 * A delivery whose claim expired without a record becomes a suspect, because it may have ended the
 * process. The relay sends one suspect at a time. It records the third lost claim as crashed and
 * does not send that delivery (ADR 0020).
 */

import type { Clock } from "../../core/clock.ts";
import { formatTime } from "../../core/clock.ts";
import { idMint, type RandomSource } from "../../core/ids.ts";
import { sourceIn } from "../../core/seeded_random.ts";
import type { DisabledReason } from "../../schema/webhook.ts";
import { GivenUp, sendBatch } from "../../jobs/batcher.ts";
import { isUnavailable } from "../../core/database_error.ts";
import type { AttemptResult, ClaimedDelivery, WebhookStore } from "../../store/webhook_store.ts";
import { Alarm } from "../alarm.ts";
import { crashedAttempt, type EndedAttempt, makeAttempt, type Send } from "./attempt.ts";
import { EndpointSecrets } from "./endpoint_secret.ts";
import { eventRow } from "../changes/event.ts";
import { readSettings, timeIn } from "../../store/known_settings.ts";
import { FAILING_LIMIT_MS, nextAttemptAt } from "./retry_schedule.ts";
import { type Chain, FIRST_CLAIM, MAX_CLAIMED, RelayLanes } from "./relay_lanes.ts";
import { SuspectTurns } from "./suspect_turns.ts";
import type { WebhookSettings } from "./webhook_endpoints.ts";

/** Duration of a claim: 15 s for the attempt, and time to wait for a place and to be recorded. */
const LEASE_MS = 25_000;
/** Share of its lease that a delivery may wait for a place: 8 s. Then the relay gives it back. */
const WAIT_SHARE = 0.32;
/** Shortest time between the starts of two turns, unless `TURN_RESULTS` results wait. */
const TURN_SPACING_MS = 5;
const TURN_RESULTS = 16;
/** Time for which an endpoint with which a turn fails is left out. Each try costs a failed turn. */
const ASIDE_MS = 10 * 60_000;
/** HTTP status of a receiver that does not want deliveries any more (contract §4). */
const GONE = 410;

/** The dependencies of a relay. */
export interface RelayOptions {
  store: WebhookStore;
  settings: WebhookSettings;
  send: Send;
  clock: Clock;
  random: RandomSource;
  /** Duration of a claim; `LEASE_MS` by default. */
  lease_ms?: number;
  /**
   * Called if a turn fails, for example without a database, and for each delivery and endpoint that
   * is given up. The leases expire by themselves.
   */
  on_error: (error: unknown) => void;
  /** Called for each attempt that has ended, for the log. */
  on_attempt: (delivery: ClaimedDelivery, ended: EndedAttempt) => void;
}

/** Claims and sends due deliveries. */
export class Relay {
  readonly #options: RelayOptions;
  readonly #lanes = new RelayLanes();
  readonly #secrets: EndpointSecrets;
  /** Deliveries whose attempts are under way. */
  readonly #under_way = new Set<ClaimedDelivery>();
  #results: AttemptResult[] = [];
  readonly #suspect_turns = new SuspectTurns();
  /** Wakes the relay for the retries that it has put off. */
  readonly #alarm: Alarm;
  /** The endpoints that are left out, with the time at which the relay tries them again. */
  readonly #aside = new Map<string, number>();
  /** True if a suspect has ended: the next turn begins at once. */
  #hurries = false;
  #wanted = false;
  #wake: () => void = () => {};
  #gathered: () => void = () => {};
  #running: Promise<void> | null = null;
  /** Resolves when the current turn is over; never rejects. */
  #turned: Promise<unknown> = Promise.resolve();
  #stopped = false;

  constructor(options: RelayOptions) {
    this.#options = options;
    this.#secrets = new EndpointSecrets(options.settings.master_secret);
    this.#alarm = new Alarm(options.clock, () => void this.nudge());
  }

  /** Looks for due deliveries. Resolves when none is due or under way any more. */
  nudge(): Promise<void> {
    this.#wanted = true;
    this.#wake();
    this.#running ??= this.#run();
    return this.#running;
  }

  /**
   * Stops claiming, gives back the deliveries that wait for a place, and waits for the attempts
   * under way. When `patience` resolves, it gives those back too, and another relay sends them
   * again. Resolves when the database has recorded all of them, so no claim is lost.
   */
  async stop(patience: Promise<void> = new Promise(() => {})): Promise<void> {
    this.#stopped = true;
    this.#alarm.close();
    for (const waiting of this.#lanes.empty()) this.#release(waiting);
    let is_over = false;
    const has_more = this.#lanes.claimed > 0 || this.#results.length > 0;
    const over = (has_more ? this.nudge() : this.#running ?? Promise.resolve())
      .then(() => is_over = true);
    await Promise.race([over, patience]);
    if (is_over) return;
    for (const delivery of this.#under_way) this.#give(delivery);
    this.#under_way.clear();
    await this.#turn().catch(this.#options.on_error);
  }

  async #run(): Promise<void> {
    for (;;) {
      const woken = new Promise<void>((resolve) => this.#wake = resolve);
      const began = performance.now();
      this.#wanted = false;
      let is_full = false;
      try {
        is_full = await this.#turn();
      } catch (error) {
        this.#options.on_error(error);
        // The results stay for the next turn, which the end of an attempt or a nudge starts.
        if (this.#lanes.claimed > 0) await woken;
        else if (!this.#wanted) return this.#rest();
        continue;
      }
      if (!is_full && !this.#wanted) {
        if (this.#lanes.claimed === 0 && this.#results.length === 0) return this.#rest();
        if (this.#results.length === 0) await woken;
      }
      await this.#gather(began + TURN_SPACING_MS - performance.now());
    }
  }

  /** Waits for more results, until the time is over or `TURN_RESULTS` wait. */
  async #gather(longest_ms: number): Promise<void> {
    if (longest_ms <= 0 || this.#hurries || this.#results.length >= TURN_RESULTS) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, longest_ms);
      this.#gathered = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #add(result: AttemptResult): void {
    if (this.#results.push(result) >= TURN_RESULTS) this.#gathered();
  }

  /** Marks the relay as idle. Runs without a wait after the decision, so that no nudge is lost. */
  #rest(): void {
    this.#running = null;
  }

  /** Runs a turn after the current one, because it needs the claims of that one. */
  #turn(): Promise<boolean> {
    const turn = this.#turned.then(() => this.#recordAndClaim());
    this.#turned = turn.catch(() => {});
    return turn;
  }

  /** Records results and claims deliveries. Returns true if more may be due now. */
  async #recordAndClaim(): Promise<boolean> {
    const at_ms = this.#options.clock();
    this.#hurries = false;
    for (const surplus of this.#lanes.surplus()) this.#release(surplus);
    const limit = this.#stopped ? 0 : MAX_CLAIMED - this.#lanes.claimed;
    if (limit <= 0 && this.#results.length === 0) return false;
    const results = this.#results;
    this.#results = [];
    let claimed: ClaimedDelivery[];
    try {
      claimed = await this.#ask(results, limit, at_ms);
    } catch (error) {
      const refused = await this.#recordApart(results, error, at_ms);
      try {
        claimed = await this.#claimAround(limit, error, at_ms);
      } catch (error) {
        // Nothing can be recorded or claimed, so the fault is not in the results.
        this.#results = [...refused.keys(), ...this.#results];
        throw error;
      }
      for (const [{ id }, error] of refused) {
        this.#options.on_error(new GivenUp(`delivery ${id}`, error));
      }
    }
    const suspect = claimed.find((delivery) => delivery.suspect);
    if (suspect) this.#suspect_turns.begin(suspect.account, performance.now());
    this.#lanes.add(claimed, at_ms);
    if (this.#stopped) { for (const waiting of this.#lanes.empty()) this.#release(waiting); }
    this.#begin();
    return claimed.length >= limit && limit > 0;
  }

  #ask(
    results: readonly AttemptResult[],
    limit: number,
    at_ms: number,
  ): Promise<ClaimedDelivery[]> {
    const { store, lease_ms = LEASE_MS } = this.#options;
    for (const [id, until_ms] of this.#aside) if (until_ms <= at_ms) this.#aside.delete(id);
    return store.relayTurn({
      results,
      limit,
      per_endpoint: FIRST_CLAIM.endpoint,
      per_environment: FIRST_CLAIM.environment,
      per_account: FIRST_CLAIM.account,
      rooms: this.#lanes.rooms(),
      suspects_ahead: this.#suspect_turns.ahead(),
      at_ms,
      leased_until_ms: at_ms + lease_ms,
      aside: [...this.#aside.keys()],
    });
  }

  /** Records results after a failed turn. Returns those that the database does not take. */
  async #recordApart(
    results: readonly AttemptResult[],
    failure: unknown,
    at_ms: number,
  ): Promise<Map<AttemptResult, unknown>> {
    const refused = new Map(results.map((result) => [result, failure]));
    if (results.length === 0 || isUnavailable(failure)) return refused;
    refused.clear();
    await sendBatch(results, {
      send: (part) => this.#ask(part, 0, at_ms),
      refuse: (part, error) => {
        for (const result of part) refused.set(result, error);
      },
      in_order: true,
    });
    return refused;
  }

  /**
   * Claims deliveries after a failed turn, without the endpoints with which a claim fails. Throws if
   * that fails too, or if there is no room for a claim.
   */
  async #claimAround(
    limit: number,
    failure: unknown,
    at_ms: number,
  ): Promise<ClaimedDelivery[]> {
    if (limit <= 0 || isUnavailable(failure)) throw failure;
    try {
      return await this.#ask([], limit, at_ms);
    } catch (error) {
      if (isUnavailable(error)) throw error;
    }
    const { store, on_error } = this.#options;
    for (const failing of await store.findFailingEndpoints(at_ms)) {
      this.#aside.set(failing.endpoint_id, at_ms + ASIDE_MS);
      on_error(new GivenUp(`endpoint ${failing.endpoint_id}`, failing));
    }
    return await this.#ask([], limit, at_ms);
  }

  /** Starts the chains that have a place. */
  #begin(): void {
    for (const chain of this.#lanes.enter()) {
      this.#send(chain).then(() => {
        this.#lanes.leave(chain);
        this.#wanted = true;
        this.#wake();
        this.#begin();
      });
    }
  }

  /** Sends the deliveries of a chain in order, until one fails. Gives back the rest. */
  async #send(chain: Chain): Promise<void> {
    const { clock, on_error, lease_ms = LEASE_MS } = this.#options;
    const { deliveries, claimed_at_ms } = chain;
    let goes_on = true;
    for (const delivery of deliveries) {
      goes_on &&= !this.#stopped && clock() - claimed_at_ms <= lease_ms * WAIT_SHARE;
      if (!goes_on && !delivery.crashed) {
        this.#release(delivery);
        continue;
      }
      this.#under_way.add(delivery);
      try {
        goes_on = await this.#attempt(delivery);
      } catch (error) {
        // Keeps the claim: the lease delays the next attempt, which may hit the same fault.
        on_error(error);
        goes_on = false;
      }
      this.#under_way.delete(delivery);
      this.#lanes.end(chain, goes_on);
      if (delivery.suspect) this.#endSuspect();
    }
  }

  /** Gives back a claimed delivery without an attempt. */
  #release(delivery: ClaimedDelivery): void {
    this.#lanes.release(delivery);
    if (delivery.suspect) this.#endSuspect();
    this.#give(delivery);
  }

  /** Ends the turn of a suspect, so that the relay can claim the next one. */
  #endSuspect(): void {
    this.#suspect_turns.end(performance.now());
    this.#hurries = true;
    this.#gathered();
  }

  /** Queues the release of a delivery. After the next turn any relay can claim it. */
  #give({ environment_id, id, attempt }: ClaimedDelivery): void {
    this.#add({
      environment_id,
      id,
      attempt,
      outcome: "released",
      next_attempt_at: null,
      record: null,
    });
  }

  /** Makes an attempt and queues its result. Returns true if the receiver answered 2xx. */
  async #attempt(delivery: ClaimedDelivery): Promise<boolean> {
    const real_ms = this.#options.clock();
    const at_ms = timeIn(readSettings(delivery.settings), real_ms);
    const ended = delivery.crashed
      ? crashedAttempt(delivery.attempt, at_ms)
      : await this.#make(delivery, real_ms, at_ms);
    // `stop` gave it back, so another relay may now use the same attempt number.
    if (!this.#under_way.has(delivery)) return false;
    this.#options.on_attempt(delivery, ended);
    let is_off = false;
    try {
      // Before the result, which would make the deliveries behind this one due.
      const reason = disablingReason(delivery, ended, at_ms);
      if (reason) is_off = await this.#disable(delivery, reason, at_ms);
    } finally {
      this.#add(this.#judge(delivery, ended, { real_ms, at_ms }, is_off));
    }
    if (is_off) {
      for (const waiting of this.#lanes.empty(delivery.endpoint_id)) this.#release(waiting);
    }
    return ended.delivered;
  }

  /** Makes an attempt at `at_ms` of the sandbox. The signature has the real time. */
  #make(delivery: ClaimedDelivery, real_ms: number, at_ms: number): Promise<EndedAttempt> {
    const { settings, send } = this.#options;
    const { endpoint_id, event_id, body, url, attempt, fault } = delivery;
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
      },
      at_ms,
      send,
    );
  }

  #judge(
    delivery: ClaimedDelivery,
    ended: EndedAttempt,
    { real_ms, at_ms }: { real_ms: number; at_ms: number },
    is_off: boolean,
  ): AttemptResult {
    const { environment_id, id, attempt, livemode } = delivery;
    const failed = { livemode, number: attempt, at_ms: real_ms, retry_after: ended.retry_after };
    const is_last = ended.delivered || is_off || ended.record.response_status === GONE;
    // Only live attempts use it. The ids of a seeded test do not depend on the turns of the relay.
    const [byte] = livemode ? this.#options.random(new Uint8Array(1)) : [0];
    const next = is_last ? null : nextAttemptAt(failed, byte! / 256);
    if (next !== null) this.#alarm.at(next);
    return {
      environment_id,
      id,
      attempt,
      outcome: ended.delivered ? "delivered" : "failed",
      next_attempt_at: next === null ? null : formatTime(next),
      record: JSON.stringify(ended.record),
      ...(ended.exchange && { exchange: ended.exchange }),
      ...(delivery.settings !== null && {
        due_at: formatTime(next === null ? at_ms : at_ms + next - real_ms),
      }),
    };
  }

  /** Disables an endpoint. Returns false if it has changed meanwhile or has another URL. */
  async #disable(
    delivery: ClaimedDelivery,
    reason: DisabledReason,
    at_ms: number,
  ): Promise<boolean> {
    const { store, random } = this.#options;
    const { environment_id, endpoint_id, livemode } = delivery;
    const stored = await store.loadEndpoint(environment_id, endpoint_id);
    if (!stored || stored.status !== "enabled") return false;
    const endpoint = JSON.parse(stored.body);
    if (endpoint.url !== delivery.url) return false;
    const body = JSON.stringify({
      ...endpoint,
      status: "disabled",
      disabled_reason: reason,
      updated_at: formatTime(at_ms),
    });
    const { settings } = delivery;
    const source = sourceIn(
      settings === null ? null : readSettings(settings),
      () => `disabled ${endpoint_id} ${stored.revision}`,
      { random, real_ms: this.#options.clock() },
    );
    const event = eventRow({
      type: "webhook_endpoint.disabled",
      subject_id: endpoint_id,
      sequence: stored.revision + 1,
      object: body,
    }, {
      request_id: null,
      idempotency_key: null,
      livemode,
      at_ms,
      mint: idMint(at_ms, source.random, source.order_ms),
      random: source.random,
    });
    return await store.disableEndpoint({
      environment_id,
      id: endpoint_id,
      expects_revision: stored.revision,
      at_ms,
      body,
      event_id: event.id,
      event_body: event.body,
      delivery_id: event.delivery_id,
    });
  }
}

/** Returns the reason to disable the endpoint after this attempt, or null. */
function disablingReason(
  delivery: ClaimedDelivery,
  ended: EndedAttempt,
  at_ms: number,
): "gone" | "failing" | null {
  if (ended.record.response_status === GONE) return "gone";
  const { livemode, failing_since } = delivery;
  const lasts = failing_since !== null && at_ms - failing_since.getTime() >= FAILING_LIMIT_MS;
  return livemode && !ended.delivered && lasts ? "failing" : null;
}
