/**
 * A queue in which nobody can make the others wait. A job takes a slot of each of its owners: its
 * account, then its environment, then its endpoint, and a slot of the queue. If one is not free,
 * the job waits, and the innermost owners take turns.
 *
 * Everything that a tenant can make wait goes through such a queue: single statements, costly
 * lists, attempts, waiting reads of inboxes, delays. The bounds belong to the caller.
 */

import { tryAgain } from "../core/errors.ts";
import { type SlotBounds, Slots, SlotsByName } from "./slots.ts";

/** Names of the owners of a job, the outermost first. The innermost name is unique by itself. */
export type Owners = readonly [string, ...string[]];

export interface FairQueueBounds {
  /** Most jobs that run. */
  slots: number;
  /** `slots` of them are reserved for outermost owners with fewer than `few` running jobs. */
  reserved?: { slots: number; few: number };
  /** Slots of an owner, from the outermost level to the innermost. */
  levels: readonly (SlotBounds | number)[];
  /** Most jobs that wait, of one outermost owner and in all. One more is `rate_limited`. */
  waiting_of_owner?: number;
  waiting?: number;
  /** Longest time that a job waits. Then it is refused as `service_unavailable`. */
  patience_ms?: number;
  /** The message of both refusals. */
  refusal?: string;
}

export interface Slot {
  /** Records that a part of the job has ended. The next part keeps the slots. */
  endPart(is_success: boolean): void;
  /** Takes slots of other owners in place of these, also above their bounds. */
  move(owners: Owners): void;
  /** Frees the slots. No other job begins for `rest_ms`. */
  leave(rest_ms?: number): void;
}

interface Waiting {
  parts: number;
  begin: (slot: Slot) => void;
  reject: (error: unknown) => void;
  timer: ReturnType<typeof setTimeout> | undefined;
}

interface OwnerQueue {
  readonly owners: Owners;
  /** The slots of all its levels, the outermost first. */
  readonly levels: readonly Slots[];
  readonly waiting: Waiting[];
}

export class FairQueue {
  readonly #bounds: FairQueueBounds;
  readonly #now: () => number;
  readonly #outer: readonly SlotsByName[];
  /** Those of innermost owners with jobs; the first one has the next turn. */
  readonly #queues = new Map<string, OwnerQueue>();
  #running = 0;
  #waiting = 0;
  #rests_until = 0;
  /** Set only while a job waits for the end of a rest. */
  #rest: ReturnType<typeof setTimeout> | undefined;

  /** @param now a monotonic clock in milliseconds */
  constructor(bounds: FairQueueBounds, now: () => number = () => performance.now()) {
    this.#bounds = bounds;
    this.#now = now;
    this.#outer = bounds.levels.slice(0, -1).map((level) => new SlotsByName(boundsOf(level)));
  }

  get owner_queues(): Iterable<Readonly<OwnerQueue>> {
    return this.#queues.values();
  }

  /** Runs a job when it has its slots. Throws its errors and the refusals of `take`. */
  async run<T>(owners: Owners, job: () => Promise<T>): Promise<T> {
    const slot = this.tryTake(owners) ?? await this.#wait(owners, 1);
    try {
      return await job();
    } finally {
      slot.leave();
    }
  }

  /**
   * Waits for the slots of a job. Throws `rate_limited`, `service_unavailable`, and the error of
   * `cancel`.
   * @param parts how often the job calls `endPart`
   */
  take(owners: Owners, parts = 1): Promise<Slot> {
    const slot = this.tryTake(owners, parts);
    return slot ? Promise.resolve(slot) : this.#wait(owners, parts);
  }

  #wait(owners: Owners, parts: number): Promise<Slot> {
    if (this.#isFull(owners)) return Promise.reject(this.#refusal("rate_limited"));
    return new Promise((resolve, reject) => {
      const { patience_ms } = this.#bounds;
      const job: Waiting = { parts, begin: resolve, reject, timer: undefined };
      if (patience_ms !== undefined) {
        const leave = () => this.#remove(queue, job, this.#refusal("service_unavailable"));
        job.timer = setTimeout(leave, patience_ms);
      }
      // After the timer, because a test runner lets other jobs end while it is set.
      const queue = this.#queueOf(owners);
      queue.waiting.push(job);
      this.#waiting++;
      addLoad(queue, parts);
      this.#next();
    });
  }

  /**
   * Takes the slots of a job if they are free; null: they are not.
   * @param is_above true: takes them above all bounds
   */
  tryTake(owners: Owners, parts = 1, is_above = false): Slot | null {
    const queue = this.#queueOf(owners);
    const now = this.#now();
    if (is_above || (queue.waiting.length === 0 && this.#isFree(queue, now))) {
      addLoad(queue, parts);
      return this.#begin(queue, parts, now);
    }
    this.#forget(queue);
    return null;
  }

  /** Rejects waiting jobs of one innermost owner, the newest first, until `parts` are removed. */
  cancel(name: string, error: unknown, parts = Infinity): void {
    const queue = this.#queues.get(name);
    while (queue && queue.waiting.length > 0 && parts > 0) {
      const job = queue.waiting.at(-1)!;
      parts -= job.parts;
      this.#remove(queue, job, error);
    }
  }

  /** Rejects all waiting jobs. */
  cancelAll(error: unknown): void {
    for (const name of [...this.#queues.keys()]) this.cancel(name, error);
  }

  /** Returns the slots of an innermost owner that has jobs, and of its other owners. */
  levelsOf(owners: Owners): readonly Slots[] {
    return this.#queueOf(owners).levels;
  }

  #isFull(owners: Owners): boolean {
    const { waiting_of_owner = Infinity, waiting = Infinity } = this.#bounds;
    const queue = this.#queueOf(owners);
    const outermost = queue.levels[0]!;
    this.#forget(queue);
    return this.#waiting >= waiting || outermost.load - outermost.running >= waiting_of_owner;
  }

  #isFree({ levels }: OwnerQueue, now = this.#now()): boolean {
    const { slots, reserved = { slots: 0, few: 0 } } = this.#bounds;
    const most = levels[0]!.running < reserved.few ? slots : slots - reserved.slots;
    return this.#running < most && now >= this.#rests_until &&
      levels.every((level) => level.isFree(now));
  }

  #begin(of: OwnerQueue, parts: number, now = this.#now()): Slot {
    let queue = of;
    let began_ms = now;
    const enter = () => queue.levels.forEach((level) => level.enter(began_ms));
    const leave = () => queue.levels.forEach((level) => level.leave(began_ms));
    enter();
    this.#running++;
    return {
      endPart: (is_success) => {
        const now = this.#now();
        for (const level of queue.levels) level.learn(now - began_ms, is_success);
        leave();
        began_ms = now;
        enter();
        addLoad(queue, -1);
        parts--;
      },
      move: (owners) => {
        leave();
        addLoad(queue, -parts);
        this.#forget(queue);
        queue = this.#queueOf(owners);
        enter();
        addLoad(queue, parts);
      },
      leave: (rest_ms = 0) => {
        leave();
        this.#running--;
        addLoad(queue, -parts);
        this.#forget(queue);
        if (rest_ms > 0) this.#rests_until = this.#now() + rest_ms;
        this.#next();
      },
    };
  }

  /** Begins the jobs whose slots are free, now or after the rest. */
  #next(): void {
    if (this.#waiting === 0) return;
    const rest_ms = this.#rests_until - this.#now();
    if (rest_ms > 0) {
      this.#rest ??= setTimeout(() => {
        this.#rest = undefined;
        this.#next();
      }, rest_ms);
      return;
    }
    // The loop visits an owner again, because it moves to the end.
    for (const [name, queue] of this.#queues) {
      if (queue.waiting.length === 0 || !this.#isFree(queue)) continue;
      this.#queues.delete(name);
      this.#queues.set(name, queue);
      const job = queue.waiting.shift()!;
      clearTimeout(job.timer);
      this.#waiting--;
      job.begin(this.#begin(queue, job.parts));
    }
  }

  #remove(queue: OwnerQueue, job: Waiting, error: unknown): void {
    clearTimeout(job.timer);
    queue.waiting.splice(queue.waiting.indexOf(job), 1);
    addLoad(queue, -job.parts);
    this.#forget(queue);
    job.reject(error);
    if (--this.#waiting > 0) return;
    clearTimeout(this.#rest);
    this.#rest = undefined;
  }

  #refusal(code: "rate_limited" | "service_unavailable") {
    return tryAgain(code, this.#bounds.refusal ?? "Too many requests wait: try again");
  }

  #queueOf(owners: Owners): OwnerQueue {
    const name = owners.at(-1)!;
    let queue = this.#queues.get(name);
    if (queue !== undefined) return queue;
    const outer = this.#outer.map((level, i) => level.of(owners[i]!));
    const innermost = new Slots(boundsOf(this.#bounds.levels.at(-1)!));
    queue = { owners, levels: [...outer, innermost], waiting: [] };
    this.#queues.set(name, queue);
    return queue;
  }

  /** Removes an idle innermost owner. The slots of the others stay. */
  #forget({ owners, levels }: OwnerQueue): void {
    if (levels.at(-1)!.is_idle) this.#queues.delete(owners.at(-1)!);
  }
}

function boundsOf(level: SlotBounds | number): SlotBounds {
  return typeof level === "number" ? { first: level, most: level, least: level } : level;
}

function addLoad({ levels }: OwnerQueue, parts: number): void {
  for (const level of levels) level.load += parts;
}
