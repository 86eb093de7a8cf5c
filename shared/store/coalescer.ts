/**
 * Coalesced statements: requests that arrive while a statement runs share the next one. There is no
 * timer, so an idle server sends a request at once.
 *
 * Requests share the cost of a statement and of its commit, which is mostly independent of the
 * number of rows (ADR 0023). Guarantees: each request gets the outcome that it would get alone, and
 * environments alternate. If a statement waits too long for a lock, or the database refuses it,
 * each of its requests is sent again alone, so that none delays the others.
 */

import { isLockTimeout, isOverdue, isUnavailable, toApiError } from "./database.ts";
import type { KnownEnvironments } from "./known_environments.ts";
import type { Access, Row } from "./outcome.ts";

/** Limits of coalescing. */
export interface CoalescerLimits {
  /** Most statements under way. */
  under_way: number;
  /** Most requests of one statement. */
  requests: number;
}

/**
 * One statement at a time, because several would only share fewer requests each. At most 64
 * requests, because more do not reduce the cost of a request further.
 */
const LIMITS: CoalescerLimits = { under_way: 1, requests: 64 };
/** Most characters of the requests of one statement. A longer request is sent alone. */
const MAX_CHARACTERS = 1_000_000;

/** A row that answers one request of a list. */
export interface ListRow<Own extends string = never> extends Row<Own> {
  /** Position of the request in the list, from 1. */
  n: number;
}

/** The statement of one kind of requests. */
interface Coalesced<Request, Answer extends ListRow<string>> {
  /**
   * Sends a list in one statement. Returns one row for each request, in any order. Throws the
   * driver's error.
   * @param is_alone true: the list is one request, which may wait longer for locks
   */
  send(list: readonly Request[], is_alone: boolean): Promise<Answer[]>;
  /** Estimates the number of characters of a request. */
  weigh(request: Request): number;
}

interface Waiting<Request, Answer> {
  request: Request;
  characters: number;
  resolve: (row: Answer) => void;
  reject: (error: unknown) => void;
}

/** Coalesces requests of one kind. */
export class Coalescer<
  Request extends { access: Access },
  Answer extends ListRow<string> = ListRow,
> {
  readonly #kind: Coalesced<Request, Answer>;
  readonly #limits: CoalescerLimits;
  /** By environment, or by key if the environment is not known yet; each in order of arrival. */
  readonly #waiting = new Map<string, Waiting<Request, Answer>[]>();
  readonly #environments: KnownEnvironments;
  #under_way = 0;

  /** @param limits only measurements pass others */
  constructor(
    kind: Coalesced<Request, Answer>,
    environments: KnownEnvironments,
    limits: CoalescerLimits = LIMITS,
  ) {
    this.#kind = kind;
    this.#environments = environments;
    this.#limits = limits;
  }

  /** Sends a request, with others or alone. Returns the row of its answer. Throws `ApiError`. */
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

  /** Removes the requests of the next statement: one of each environment, and again. */
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
        // Moves to the end, so that the next list begins with another environment.
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
      // A lock can last for seconds, and one request alone can be the cause of a failure.
      if (isLockTimeout(error) || (list.length > 1 && !isUnavailable(error))) {
        for (const entry of list) {
          this.#send([entry], true).catch((error) => entry.reject(toApiError(error)));
        }
        return;
      }
      // After a deadline the waiting requests fail too: they would wait for another one.
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
