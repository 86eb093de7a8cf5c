/**
 * Readers that wait for deliveries in an inbox. All readers of an isolate share one statement: it
 * runs when this isolate commits deliveries, and every `POLL_EVERY_MS`, because another isolate may
 * commit them. So a reader costs memory and no connection (ADR 0017).
 */

import { GivenUp, sendBatch } from "../../jobs/batcher.ts";
import { isUnavailable } from "../../core/database_error.ts";
import type { WaitingReader } from "../../store/inbox_store.ts";

/** Milliseconds between two polls of the database while readers wait. */
const POLL_EVERY_MS = 500;
/** Milliseconds between the ends and beginnings of polls while this isolate commits constantly. */
const POLL_SPACING_MS = 20;

/** Returns the ids of the endpoints whose inboxes have changed for these readers. */
type FindChanged = (readers: readonly WaitingReader[]) => Promise<string[]>;

interface Reader extends WaitingReader {
  wake: () => void;
  /** True: no poll includes it any more, so only the end of its time wakes it. */
  is_given_up: boolean;
}

/** The waiting readers of an isolate. */
export class InboxReaders {
  readonly #findChanged: FindChanged;
  readonly #on_error: (error: unknown) => void;
  readonly #waiting = new Set<Reader>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #is_polling = false;
  #notices = 0;
  /** True if a poll must follow the one under way: a commit may have come after it began. */
  #is_wanted = false;
  #is_closed = false;

  /** @param on_error called for each reader that the database refuses */
  constructor(findChanged: FindChanged, on_error: (error: unknown) => void) {
    this.#findChanged = findChanged;
    this.#on_error = on_error;
  }

  /** True after `close`. */
  get is_closed(): boolean {
    return this.#is_closed;
  }

  /** The number of calls of `notice`. A reader takes it before it reads. */
  get notices(): number {
    return this.#notices;
  }

  /** The number of waiting readers. */
  get size(): number {
    return this.#waiting.size;
  }

  /**
   * Resolves when the inbox may have changed, after `patience_ms`, when `signal` aborts, or at
   * `close`, whichever comes first.
   * @param since `notices` before the read that found nothing
   */
  async wait(
    reader: WaitingReader,
    since: number,
    patience_ms: number,
    signal: AbortSignal,
  ): Promise<void> {
    if (this.#is_closed || signal.aborted) return;
    const woken = Promise.withResolvers<void>();
    const waiting: Reader = { ...reader, wake: woken.resolve, is_given_up: false };
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

  /** Polls at once, because deliveries may have been committed. */
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
        const refused = new Map<Reader, unknown>();
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

  #giveUp(refused: ReadonlyMap<Reader, unknown>): void {
    for (const [reader, error] of refused) {
      reader.is_given_up = true;
      this.#on_error(new GivenUp(`reader of ${reader.endpoint_id}`, error));
    }
  }

  /** Wakes the readers whose inboxes have changed. */
  async #wakeChanged(readers: readonly Reader[]): Promise<void> {
    const changed = new Set(
      await this.#findChanged(readers.map(({ environment_id, endpoint_id, after }) => ({
        environment_id,
        endpoint_id,
        after,
      }))),
    );
    for (const { endpoint_id, wake } of readers) if (changed.has(endpoint_id)) wake();
  }
}
