/**
 * A worker leases due jobs, runs them and records their results, until nothing is due. All state is
 * in the database, so any number of workers can run and a crash loses nothing.
 *
 * Lease: a worker leases a job for some time. If the worker dies, the lease expires and any worker
 * leases the job again. Poison: a job whose lease has expired without a record may have ended its
 * worker. The database counts the expired leases and hands out one such job at a time; after the
 * third one the job is recorded as crashed and not run (ADR 0017). An operation of a provider is
 * never ended like that, because money may have moved.
 */

import type { Clock } from "../core/clock.ts";
import { Alarm } from "./alarm.ts";

/** Shortest time between the starts of two polls. */
const POLL_SPACING_MS = 5;

export interface Leased<Job> {
  jobs: readonly Job[];
  /** True if more jobs may be due now. */
  has_more: boolean;
}

interface JobWorkerOptions<Job, Result> {
  /**
   * Records results and leases jobs, if `is_stopped` is false. A result that cannot be recorded now
   * is added again by `record`. An error ends the poll, for example without a database.
   */
  recordAndLease(results: readonly Result[]): Promise<Leased<Job>>;
  /** Runs a job, and passes its results to `record`. */
  run(job: Job): Promise<void>;
  clock: Clock;
  /** Called if a poll or a job fails. Leases expire by themselves. */
  on_error: (error: unknown) => void;
  /** Longest time that the next poll waits for the jobs that were leased last. */
  collect_ms?: number;
  /** So many results do not wait for others. */
  most_results?: number;
}

export class JobWorker<Job, Result = never> {
  readonly #options: JobWorkerOptions<Job, Result>;
  /** Notifies the worker of the jobs that it has rescheduled. */
  readonly #alarm: Alarm;
  #results: Result[] = [];
  #running = 0;
  /** The jobs that were leased last: how many there were, and how many have not ended. */
  #last_lease = { jobs: 0, left: 0 };
  /** Ends the waits of `idle`. */
  readonly #waiting = new Set<() => void>();
  #is_notified = false;
  #notification = Promise.withResolvers<void>();
  #collected: () => void = () => {};
  #loop: Promise<void> | null = null;
  #polled: Promise<unknown> = Promise.resolve();
  #is_stopped = false;

  constructor(options: JobWorkerOptions<Job, Result>) {
    this.#options = options;
    this.#alarm = new Alarm(options.clock, () => void this.notify());
  }

  /** True after the beginning of `stop`: lease nothing more. */
  get is_stopped(): boolean {
    return this.#is_stopped;
  }

  /** Tells that jobs may be due. Resolves when none is due or runs any more. */
  notify(): Promise<void> {
    this.#wake();
    return this.#loop ??= this.#run();
  }

  /**
   * Notifies, and resolves as `notify` does, but after `longest_ms` at the latest. For callers that
   * ask often: nothing is left of a wait that was too short.
   */
  async idle(longest_ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, longest_ms);
    this.#waiting.add(resolve);
    void this.notify();
    await promise;
    clearTimeout(timer);
    this.#waiting.delete(resolve);
  }

  /** Notifies at a time, or shortly after it. */
  notifyAt(at_ms: number): void {
    this.#alarm.at(at_ms);
  }

  /** Adds a result to those that the next poll records. */
  record(...results: Result[]): void {
    this.#results.push(...results);
    this.#collect();
  }

  /**
   * Leases nothing more, and waits for the running jobs and the record of their results. When
   * `patience` resolves, `giveBack` ends the jobs, and a last poll records that.
   */
  async stop(patience?: Promise<void>, giveBack: () => void = () => {}): Promise<void> {
    this.#is_stopped = true;
    this.#alarm.close();
    const is_busy = this.#running > 0 || this.#results.length > 0;
    const ended = is_busy ? this.notify() : this.#loop ?? Promise.resolve();
    const too_long = patience ?? new Promise<void>(() => {});
    if (await Promise.race([ended.then(() => true), too_long.then(() => false)])) return;
    giveBack();
    await this.#poll();
  }

  async #run(): Promise<void> {
    for (;;) {
      const began = performance.now();
      this.#is_notified = false;
      this.#notification = Promise.withResolvers();
      const has_more = await this.#poll();
      if (!has_more && !this.#is_notified) {
        if (this.#running === 0) break;
        await this.#notification.promise;
      }
      await this.#pause(began);
    }
    // Without a wait after the decision, so that no notification is lost.
    this.#loop = null;
    for (const end of this.#waiting) end();
  }

  /** Records and leases, after a poll that runs. Returns true if the next poll has work. */
  #poll(): Promise<boolean> {
    const { recordAndLease, on_error } = this.#options;
    const poll = this.#polled.then(async () => {
      try {
        const { jobs, has_more } = await recordAndLease(this.#results.splice(0));
        const lease = this.#last_lease = { jobs: jobs.length, left: jobs.length };
        for (const job of jobs) this.#start(job, lease);
        return has_more || this.#results.length > 0;
      } catch (error) {
        on_error(error);
        return false;
      }
    });
    this.#polled = poll;
    return poll;
  }

  #start(job: Job, lease: { left: number }): void {
    const { run, on_error } = this.#options;
    this.#running++;
    run(job).catch(on_error).then(() => {
      this.#running--;
      lease.left--;
      // A job can make others due, and more can be due than was leased.
      this.#wake();
      this.#collect();
    });
  }

  #wake(): void {
    this.#is_notified = true;
    this.#notification.resolve();
  }

  /** Waits for results, so that they share the next poll. */
  async #pause(began: number): Promise<void> {
    const { collect_ms = POLL_SPACING_MS } = this.#options;
    const longest_ms = this.#last_lease.jobs === 0 ? POLL_SPACING_MS : collect_ms;
    const pause_ms = began + longest_ms - performance.now();
    if (pause_ms <= 0 || this.#isComplete()) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, pause_ms);
    this.#collected = resolve;
    await promise;
    clearTimeout(timer);
  }

  #collect(): void {
    if (this.#isComplete()) this.#collected();
  }

  /** Reports whether enough results wait, or all jobs that were leased last have ended. */
  #isComplete(): boolean {
    const { jobs, left } = this.#last_lease;
    return this.#results.length >= (this.#options.most_results ?? Infinity) ||
      (jobs > 0 && left === 0);
  }
}
