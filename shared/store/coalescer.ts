/**
 * Coalesced statements: what is asked while a statement is under way leaves together in the next.
 * There is no timer: on an idle server a request leaves at once, alone.
 *
 * A statement's price is mostly its own, not its rows'; together requests share it, and the commit
 * (ADR 0023). Guarantees: each request has the outcome that it would have alone; environments take
 * turns; one that waits for a lock, or that the database refuses, is sent again by itself and holds
 * nobody up.
 */

import { isAway, isLockTimeout, isOverdue, toApiError } from "./database.ts";
import type { KnownEnvironments } from "./known_environments.ts";
import type { Access, Row } from "./outcome.ts";

/** How much of it there is. */
export interface CoalescerLimits {
  /** Statements under way at a time. */
  under_way: number;
  /** Requests of one statement. */
  requests: number;
}

/**
 * One statement under way: more would only make each smaller. Of 64 requests: beyond it the price of
 * a request falls no more.
 */
const LIMITS: CoalescerLimits = { under_way: 1, requests: 64 };
/** Characters that the requests of one statement bring; a first one goes whatever it has. */
const MAX_CHARACTERS = 1_000_000;

/** A row that answers one request of a list. */
export interface ListRow<Own extends string = never> extends Row<Own> {
  /** Which request of the list, from 1. */
  n: number;
  environment_id: string | null;
}

/** How requests of one kind are sent. */
interface Coalesced<Request, Answer extends ListRow<string>> {
  /**
   * Sends a list in one statement; as many rows as requests, in any order. Throws the driver's error.
   * @param is_alone the one request may wait for locks as long as it likes; a list may not
   */
  send(list: readonly Request[], is_alone: boolean): Promise<Answer[]>;
  /** About how many characters a request brings. */
  weigh(request: Request): number;
}

interface Waiting<Request, Answer> {
  request: Request;
  characters: number;
  resolve: (row: Answer) => void;
  reject: (error: unknown) => void;
}

/** The way of requests of one kind into the database. */
export class Coalescer<
  Request extends { access: Access },
  Answer extends ListRow<string> = ListRow,
> {
  readonly #kind: Coalesced<Request, Answer>;
  readonly #limits: CoalescerLimits;
  /** By environment, or by key while that is not known; each in order of arrival. */
  readonly #waiting = new Map<string, Waiting<Request, Answer>[]>();
  readonly #environments: KnownEnvironments;
  #under_way = 0;

  /** @param limits others only in measurements */
  constructor(
    kind: Coalesced<Request, Answer>,
    environments: KnownEnvironments,
    limits: CoalescerLimits = LIMITS,
  ) {
    this.#kind = kind;
    this.#environments = environments;
    this.#limits = limits;
  }

  /** Sends a request, with others or alone; the row that answers it. Throws `ApiError`. */
  ask(request: Request): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const { key_hash } = request.access;
      const lane = this.#environments.of(key_hash) ?? key_hash;
      const entry = { request, characters: this.#kind.weigh(request), resolve, reject };
      const waiting = this.#waiting.get(lane);
      if (waiting) waiting.push(entry);
      else this.#waiting.set(lane, [entry]);
      this.#flush();
    });
  }

  #flush(): void {
    while (this.#under_way < this.#limits.under_way && this.#waiting.size > 0) {
      this.#under_way++;
      this.#sendTogether(this.#take()).finally(() => {
        this.#under_way--;
        this.#flush();
      });
    }
  }

  /** The next list: one of each environment in turn. */
  #take(): Waiting<Request, Answer>[] {
    const list: Waiting<Request, Answer>[] = [];
    let characters = 0;
    while (this.#waiting.size > 0) {
      for (const [lane, waiting] of this.#waiting) {
        const [first] = waiting;
        const is_full = list.length === this.#limits.requests ||
          (list.length > 0 && characters + first!.characters > MAX_CHARACTERS);
        if (is_full) return list;
        list.push(waiting.shift()!);
        characters += first!.characters;
        // Last in line, so that the next list begins with another.
        this.#waiting.delete(lane);
        if (waiting.length > 0) this.#waiting.set(lane, waiting);
      }
    }
    return list;
  }

  async #sendTogether(list: Waiting<Request, Answer>[]): Promise<void> {
    try {
      await this.#send(list, false);
    } catch (error) {
      // A lock may be someone's for seconds, and a refusal is one request's own.
      if (isLockTimeout(error) || (list.length > 1 && !isAway(error))) {
        for (const entry of list) {
          this.#send([entry], true).catch((error) => entry.reject(toApiError(error)));
        }
        return;
      }
      // Past a deadline those that wait have waited as long, and would wait for another.
      const others = isOverdue(error) ? [...this.#waiting.values()].flat() : [];
      if (others.length > 0) this.#waiting.clear();
      for (const { reject } of [...list, ...others]) reject(toApiError(error));
    }
  }

  async #send(list: Waiting<Request, Answer>[], is_alone: boolean): Promise<void> {
    const rows = await this.#kind.send(list.map(({ request }) => request), is_alone);
    if (rows.length !== list.length) throw new Error("an entry function gave too few rows");
    for (const row of rows) {
      const { request, resolve } = list[row.n - 1]!;
      this.#environments.learn(request.access.key_hash, row.environment_id);
      resolve(row);
    }
  }
}
