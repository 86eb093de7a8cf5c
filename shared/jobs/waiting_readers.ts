/**
 * Reads that wait until there is something to read. All readers of an isolate share one statement:
 * it runs when this isolate commits something for them, and every `POLL_EVERY_MS`, because another
 * isolate may commit it. So a reader costs memory and no connection (ADR 0017).
 */

import { isUnavailable } from "../core/database_error.ts";
import { GivenUp, sendBatch } from "./batcher.ts";

/** Milliseconds between two polls of the database while readers wait. */
const POLL_EVERY_MS = 500;
/** Milliseconds between the ends and beginnings of polls while this isolate commits constantly. */
const POLL_SPACING_MS = 20;

/** Returns those of the readers for which something has changed. */
type FindChanged<Reader> = (readers: readonly Reader[]) => Promise<readonly Reader[]>;

interface WaitingRead<Reader, Page> {
  /** Milliseconds. */
  patience_ms: number;
  /** Reads what there is now. */
  read(): Promise<Page>;
  isEmpty(page: Page): boolean;
  readerOf(page: Page): Reader;
  /** Holds the read in a place while it waits. Throws if there is none. */
  hold(wait: () => Promise<void>): Promise<void>;
  /** Returns the signal that aborts when the client goes away. */
  signalOf(): AbortSignal;
}

interface Waiting<Reader> {
  reader: Reader;
  wake: () => void;
  /** True: no poll includes it any more, so only the end of its time wakes it. */
  is_given_up: boolean;
}

export class WaitingReaders<Reader> {
  readonly #findChanged: FindChanged<Reader>;
  readonly #on_error: (error: unknown) => void;
  readonly #waiting = new Set<Waiting<Reader>>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #is_polling = false;
  #notices = 0;
  /** True if a poll must follow the one under way: a commit may have come after it began. */
  #is_wanted = false;
  #is_closed = false;

  /** @param on_error called for each reader that the database refuses */
  constructor(findChanged: FindChanged<Reader>, on_error: (error: unknown) => void) {
    this.#findChanged = findChanged;
    this.#on_error = on_error;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /**
   * Reads. While the page is empty, waits for a change and reads again, but no longer than
   * `patience_ms`, until the client goes away, or until `close`. Returns the last page. Throws the
   * errors of `read` and `hold`.
   */
  async read<Page>(
    { patience_ms, read, isEmpty, readerOf, hold, signalOf }: WaitingRead<Reader, Page>,
  ): Promise<Page> {
    const until = performance.now() + patience_ms;
    const left_ms = () => until - performance.now();
    // Before the read, so that a commit during it is noticed.
    let since = this.#notices;
    let page = await read();
    if (!isEmpty(page) || left_ms() <= 0) return page;
    await hold(async () => {
      const signal = signalOf();
      for (let left = left_ms(); isEmpty(page) && left > 0; left = left_ms()) {
        await this.#wait(readerOf(page), since, left, signal);
        if (signal.aborted || this.#is_closed || left_ms() <= 0) break;
        since = this.#notices;
        page = await read();
      }
    });
    return page;
  }

  /**
   * Resolves when something may have changed, after `patience_ms`, when `signal` aborts, or at
   * `close`, whichever comes first.
   * @param since `#notices` before the read that found nothing
   */
  async #wait(
    reader: Reader,
    since: number,
    patience_ms: number,
    signal: AbortSignal,
  ): Promise<void> {
    if (this.#is_closed || signal.aborted) return;
    const woken = Promise.withResolvers<void>();
    const waiting: Waiting<Reader> = { reader, wake: woken.resolve, is_given_up: false };
    const elapsed = setTimeout(woken.resolve, patience_ms);
    signal.addEventListener("abort", waiting.wake);
    this.#waiting.add(waiting);
    this.#timer ??= setTimeout(() => this.#onTimer(), POLL_EVERY_MS);
    if (since !== this.#notices) void this.#poll();
    try {
      await woken.promise;
    } finally {
      clearTimeout(elapsed);
      signal.removeEventListener("abort", waiting.wake);
      this.#waiting.delete(waiting);
      if (this.#waiting.size === 0) this.#stopTimer();
    }
  }

  /** Polls at once, because something may have been committed. */
  notice(): void {
    this.#notices++;
    if (this.#waiting.size > 0) void this.#poll();
  }

  /** Wakes all readers. Later ones do not wait. */
  close(): void {
    this.#is_closed = true;
    this.#stopTimer();
    for (const { wake } of this.#waiting) wake();
  }

  #onTimer(): void {
    this.#timer = setTimeout(() => this.#onTimer(), POLL_EVERY_MS);
    void this.#poll();
  }

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  async #poll(): Promise<void> {
    this.#is_wanted = true;
    if (this.#is_polling) return;
    this.#is_polling = true;
    try {
      while (this.#is_wanted && this.#waiting.size > 0) {
        this.#is_wanted = false;
        const readers = [...this.#waiting].filter(({ is_given_up }) => !is_given_up);
        if (readers.length === 0) return;
        const refused = new Map<Waiting<Reader>, unknown>();
        await sendBatch(readers, {
          send: (part) => this.#wakeChanged(part),
          refuse: (part, error) => {
            for (const reader of part) if (!isUnavailable(error)) refused.set(reader, error);
          },
          in_order: true,
        });
        // If none is left, the fault is not in a reader. The next poll tries again, and the
        // readers' time is limited.
        if (refused.size < readers.length) this.#giveUp(refused);
        await new Promise((resolve) => setTimeout(resolve, POLL_SPACING_MS));
      }
    } finally {
      this.#is_polling = false;
    }
  }

  #giveUp(refused: ReadonlyMap<Waiting<Reader>, unknown>): void {
    for (const [waiting, error] of refused) {
      waiting.is_given_up = true;
      this.#on_error(new GivenUp(`reader of ${JSON.stringify(waiting.reader)}`, error));
    }
  }

  async #wakeChanged(waiting: readonly Waiting<Reader>[]): Promise<void> {
    const changed = new Set(await this.#findChanged(waiting.map(({ reader }) => reader)));
    for (const { reader, wake } of waiting) if (changed.has(reader)) wake();
  }
}
