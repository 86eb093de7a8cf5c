/**
 * Items that arrive while a statement runs share the next one. `gather_ms` waits under load only,
 * so an idle service sends an item at once.
 *
 * Items share the cost of a statement and of its commit, which is mostly independent of the number
 * of rows (ADR 0001). Each item gets the response that it would get alone, and owners take turns.
 * If the statement of a batch fails, its items are sent one by one, so that a bad one fails alone
 * (ADR 0004).
 */

import { isLockTimeout, isOverdue, isUnavailable } from "../core/database_error.ts";

interface BatcherOptions<Item, Result> {
  /**
   * Sends items in one statement. Returns their responses in the same order. Throws the driver's
   * error.
   * @param is_alone true: the one item may wait longer for locks
   */
  send(items: readonly Item[], is_alone: boolean): Promise<readonly Result[]>;
  most: number;
  /** Most weight of one statement, and the weight of an item. A heavier item is sent alone. */
  most_weight?: number;
  weigh?: (item: Item) => number;
  /** Most statements under way; one by default, because several would share fewer items each. */
  concurrency?: number;
  /** Makes the error of an item from that of the driver; by default it is the same. */
  errorOf?: (error: unknown) => unknown;
  /** Longest wait of a batch that has fewer items than the last one, if that had `MANY`. */
  gather_ms?: number;
}

interface Entry<Item, Result> {
  item: Item;
  weight: number;
  resolve: (response: Result) => void;
  reject: (error: unknown) => void;
}

/** Fewer items of a batch are no load, so that the next batch waits for no item. */
const MANY = 8;

export class Batcher<Item, Result = void> {
  readonly #options: BatcherOptions<Item, Result>;
  /** By owner, each in order of arrival; the first owner has the next turn. */
  readonly #waiting = new Map<string, Entry<Item, Result>[]>();
  #count = 0;
  /** Statements under way. */
  #under_way = 0;
  /** The items of the last batch. */
  #last = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: BatcherOptions<Item, Result>) {
    this.#options = options;
  }

  /** Sends an item, with others or alone. Throws the driver's error. */
  add(item: Item, owner = ""): Promise<Result> {
    return new Promise((resolve, reject) => {
      const queue = this.#waiting.get(owner) ?? [];
      queue.push({ item, weight: this.#options.weigh?.(item) ?? 0, resolve, reject });
      this.#waiting.set(owner, queue);
      this.#count++;
      this.#schedule();
    });
  }

  #schedule(): void {
    const wait_ms = this.#gatherMs();
    if (wait_ms === 0 || this.#count >= this.#options.most) this.#send();
    else if (this.#count > 0) this.#timer ??= setTimeout(() => this.#send(), wait_ms);
  }

  /** Under load responses bring the next requests, so that as many come again in a moment. */
  #gatherMs(): number {
    const { gather_ms = 0 } = this.#options;
    const may_wait = this.#under_way === 0 && this.#last >= MANY;
    return may_wait && this.#count < this.#last ? gather_ms : 0;
  }

  #send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (this.#count > 0 && this.#under_way < (this.#options.concurrency ?? 1)) {
      this.#under_way++;
      this.#sendBatch(this.#take()).finally(() => {
        this.#under_way--;
        this.#schedule();
      });
    }
  }

  /** Removes the items of the next statement: one of each owner, and again. */
  #take(): Entry<Item, Result>[] {
    const { most, most_weight = Infinity } = this.#options;
    const batch: Entry<Item, Result>[] = [];
    let weight = 0;
    // The loop visits an owner again, because it moves to the end.
    for (const [owner, queue] of this.#waiting) {
      weight += queue[0]!.weight;
      if (batch.length === most || (batch.length > 0 && weight > most_weight)) break;
      batch.push(queue.shift()!);
      this.#waiting.delete(owner);
      if (queue.length > 0) this.#waiting.set(owner, queue);
    }
    this.#count -= batch.length;
    this.#last = batch.length;
    return batch;
  }

  async #sendBatch(batch: Entry<Item, Result>[]): Promise<void> {
    await sendBatch(batch, {
      send: async (entries, is_alone) => {
        const responses = await this.#options.send(entries.map(({ item }) => item), is_alone);
        if (responses.length !== entries.length) throw new Error("a batch has too few responses");
        for (const [i, { resolve }] of entries.entries()) resolve(responses[i]!);
      },
      refuse: (entries, error, is_alone) => {
        // After a deadline the waiting items fail too: they would wait for another one.
        const others = isOverdue(error) && !is_alone ? [...this.#waiting.values()].flat() : [];
        if (others.length > 0) {
          this.#waiting.clear();
          this.#count = 0;
        }
        const { errorOf = (error) => error } = this.#options;
        for (const { reject } of [...entries, ...others]) reject(errorOf(error));
      },
      in_order: false,
    });
  }
}

interface BatchSender<Item> {
  /** Sends items in one statement. Throws the driver's error. */
  send(items: readonly Item[], is_alone: boolean): Promise<unknown>;
  /**
   * Called with the items that the database has not taken. If `isUnavailable(error)`, all of them
   * can be sent again. Otherwise there is one item, which would fail again.
   */
  refuse(items: readonly Item[], error: unknown, is_alone: boolean): void;
  /**
   * True: the items of a failed batch are sent one after another. False: at the same time, because
   * one may wait for a lock for seconds, and the promise does not wait for them.
   */
  in_order: boolean;
}

/** Sends items together, or else one by one. Never rejects. */
export async function sendBatch<Item>(
  items: readonly Item[],
  { send, refuse, in_order }: BatchSender<Item>,
): Promise<void> {
  try {
    await send(items, false);
    return;
  } catch (error) {
    // A lock can last for seconds, and one item alone can be the cause of a failure.
    const goes_alone = isLockTimeout(error) || (items.length > 1 && !isUnavailable(error));
    if (!goes_alone) return refuse(items, error, false);
  }
  for (const item of items) {
    const sent = send([item], true).then(
      () => {},
      (error) => refuse([item], error, true),
    );
    if (in_order) await sent;
  }
}

/** Something that the database refuses or cannot read, so that it is left out. For the log. */
export class GivenUp extends Error {
  override readonly name = "GivenUp";
  /** The SQLSTATE. */
  readonly code: string | undefined;

  /** @param subject a kind and an id, such as `delivery whd_…`; the log shows it */
  constructor(readonly subject: string, cause: unknown) {
    super(`Gave up ${subject}`, { cause });
    const { code } = cause as { code?: unknown };
    this.code = typeof code === "string" ? code : undefined;
  }
}
