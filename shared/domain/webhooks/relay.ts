/**
 * The relay: claims due deliveries in the outbox and sends them, with a limit on attempts under way
 * per endpoint, per environment, per account and in total. The database keeps every state; the
 * relay holds only its claims.
 *
 * A turn records what has ended and claims what is due, in one statement. While that statement is
 * under way further results gather for the next, so a busy relay needs few statements and an idle
 * one none. Of endpoints that answer quickly more is claimed than is sent at once, so that a turn has
 * much to do. Guarantees: at least once, and in order per endpoint and subject.
 *
 * If a claim expires without a record, its delivery becomes a suspect: it may have killed the
 * process. The relay has one suspect at a time, so a poisonous delivery takes another one with it
 * at most once. The relay records the third lost claim as crashed and does not send the delivery
 * (ADR 0032).
 */

import type { Clock } from "../../core/clock.ts";
import { formatTime } from "../../core/clock.ts";
import { idMint, type RandomSource } from "../../core/ids.ts";
import type { DisabledReason } from "../../schema/webhook.ts";
import type { AttemptResult, ClaimedDelivery, WebhookStore } from "../../store/webhook_store.ts";
import { crashedAttempt, type EndedAttempt, makeAttempt, type Send } from "./attempt.ts";
import { EndpointSecrets } from "./endpoint_secret.ts";
import { eventRow } from "../changes/event.ts";
import { FAILING_LIMIT_MS, nextAttemptAt } from "./retry_schedule.ts";
import { type Chain, FIRST_CLAIM, MAX_CLAIMED, RelayLanes } from "./relay_lanes.ts";
import { SuspectTurns } from "./suspect_turns.ts";
import type { WebhookSettings } from "./webhook_endpoints.ts";

/** How long a claim lasts: the 15 s of an attempt, and as long as it may wait and be recorded. */
const LEASE_MS = 25_000;
/** How much of its lease a delivery may wait for a place: 8 s; later it is given back. */
const WAIT_SHARE = 0.32;
/** Turns begin no closer together than this, unless so many results wait to be recorded. */
const TURN_SPACING_MS = 5;
const TURN_RESULTS = 16;
/** HTTP status with which a receiver says that it is gone for good. */
const GONE = 410;

/** What a relay works with. */
export interface RelayOptions {
  store: WebhookStore;
  settings: WebhookSettings;
  send: Send;
  clock: Clock;
  random: RandomSource;
  /** How long a claim lasts, where it is not the usual time. */
  lease_ms?: number;
  /** Told of a turn that failed, as when the database is away; the leases run out by themselves. */
  on_error: (error: unknown) => void;
  /** Told of each attempt that has ended, for the log. */
  on_attempt: (delivery: ClaimedDelivery, ended: EndedAttempt) => void;
}

/** Delivers what is due. */
export class Relay {
  readonly #options: RelayOptions;
  readonly #lanes = new RelayLanes();
  readonly #secrets: EndpointSecrets;
  /** Deliveries whose attempts are under way. */
  readonly #under_way = new Set<ClaimedDelivery>();
  #results: AttemptResult[] = [];
  readonly #suspect_turns = new SuspectTurns();
  /** A suspect has ended, so the next turn begins at once. */
  #hurries = false;
  #wanted = false;
  #wake: () => void = () => {};
  #gathered: () => void = () => {};
  #running: Promise<void> | null = null;
  /** Resolves when the turn under way is over; never rejects. */
  #turned: Promise<unknown> = Promise.resolve();
  #stopped = false;

  constructor(options: RelayOptions) {
    this.#options = options;
    this.#secrets = new EndpointSecrets(options.settings.master_secret);
  }

  /** Looks for due deliveries; resolves when nothing is due or under way any more. */
  nudge(): Promise<void> {
    this.#wanted = true;
    this.#wake();
    this.#running ??= this.#run();
    return this.#running;
  }

  /**
   * Stops claiming, gives back the deliveries that wait for a place, and waits for the attempts
   * under way. When `patience` resolves it gives those back as well, and the next relay sends them
   * again. Resolves when the database has recorded all of them, so that no claim is lost.
   */
  async stop(patience: Promise<void> = new Promise(() => {})): Promise<void> {
    this.#stopped = true;
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
        // Results are kept for the next turn, which the end of an attempt or a nudge begins.
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

  /** Lets results gather: for a time, or until they are many. */
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

  /** In the same step as the decision to end: a nudge after it begins anew. */
  #rest(): void {
    this.#running = null;
  }

  /** Runs a turn after the one that is under way, so that the claims of that one are known. */
  #turn(): Promise<boolean> {
    const turn = this.#turned.then(() => this.#recordAndClaim());
    this.#turned = turn.catch(() => {});
    return turn;
  }

  /** Records and claims; true when there may be more to claim at once. */
  async #recordAndClaim(): Promise<boolean> {
    const { store, clock, lease_ms } = this.#options;
    const at_ms = clock();
    this.#hurries = false;
    for (const surplus of this.#lanes.surplus()) this.#release(surplus);
    const limit = this.#stopped ? 0 : MAX_CLAIMED - this.#lanes.claimed;
    if (limit <= 0 && this.#results.length === 0) return false;
    const results = this.#results;
    this.#results = [];
    let claimed: ClaimedDelivery[];
    try {
      claimed = await store.relayTurn({
        results,
        limit,
        per_endpoint: FIRST_CLAIM.endpoint,
        per_environment: FIRST_CLAIM.environment,
        per_account: FIRST_CLAIM.account,
        rooms: this.#lanes.rooms(),
        suspects_ahead: this.#suspect_turns.ahead(),
        at_ms,
        leased_until_ms: at_ms + (lease_ms ?? LEASE_MS),
      });
    } catch (error) {
      this.#results = [...results, ...this.#results];
      throw error;
    }
    const suspect = claimed.find((delivery) => delivery.suspect);
    if (suspect) this.#suspect_turns.begin(suspect.account, performance.now());
    this.#lanes.add(claimed, at_ms);
    if (this.#stopped) { for (const waiting of this.#lanes.empty()) this.#release(waiting); }
    this.#begin();
    return claimed.length >= limit && limit > 0;
  }

  /** Sends what has a place. */
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

  /** Sends one after another, as long as each is taken; what is left is let go. */
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
        // Not let go: its lease is what keeps a fault from being met again at once.
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

  /** The next suspect may be claimed. */
  #endSuspect(): void {
    this.#suspect_turns.end(performance.now());
    this.#hurries = true;
    this.#gathered();
  }

  /** The next turn frees the delivery; then any relay can claim it. */
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

  /** Makes an attempt, whose result the next turn records; true if the receiver took it. */
  async #attempt(delivery: ClaimedDelivery): Promise<boolean> {
    const at_ms = this.#options.clock();
    const ended = delivery.crashed
      ? crashedAttempt(delivery.attempt, at_ms)
      : await this.#make(delivery, at_ms);
    // `stop` has given it back: another relay may have the same attempt number by now.
    if (!this.#under_way.has(delivery)) return false;
    this.#options.on_attempt(delivery, ended);
    let is_off = false;
    try {
      // Before the result, so that nothing that waits for it is sent to an endpoint that is gone.
      const reason = disablingReason(delivery, ended, at_ms);
      if (reason) is_off = await this.#disable(delivery, reason, at_ms);
    } finally {
      this.#add(this.#judge(delivery, ended, at_ms, is_off));
    }
    if (is_off) {
      for (const waiting of this.#lanes.empty(delivery.endpoint_id)) this.#release(waiting);
    }
    return ended.delivered;
  }

  #make(delivery: ClaimedDelivery, at_ms: number): Promise<EndedAttempt> {
    const { settings, send } = this.#options;
    const { endpoint_id, event_id, body, url, attempt } = delivery;
    return makeAttempt(
      {
        event_id,
        body,
        url,
        number: attempt,
        secrets: this.#secrets.signing(endpoint_id, delivery.secrets, at_ms),
        allow_private: settings.allow_private && !delivery.livemode,
      },
      at_ms,
      send,
    );
  }

  #judge(
    delivery: ClaimedDelivery,
    ended: EndedAttempt,
    at_ms: number,
    is_off: boolean,
  ): AttemptResult {
    const { environment_id, id, attempt, livemode } = delivery;
    const failed = { livemode, number: attempt, at_ms, retry_after: ended.retry_after };
    const [byte] = this.#options.random(new Uint8Array(1));
    const is_last = ended.delivered || is_off || ended.record.response_status === GONE;
    const next = is_last ? null : nextAttemptAt(failed, byte! / 256);
    return {
      environment_id,
      id,
      attempt,
      outcome: ended.delivered ? "delivered" : "failed",
      next_attempt_at: next === null ? null : formatTime(next),
      record: JSON.stringify(ended.record),
    };
  }

  /** Turns an endpoint off; false when it has been changed in between, or has moved elsewhere. */
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
      mint: idMint(at_ms, random),
      random,
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

/** Why an endpoint is to be turned off after this attempt, if it is. */
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
