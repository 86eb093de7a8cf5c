/**
 * Coalesced statements: requests that arrive while a statement runs share the next one. There is no
 * timer, so an idle server sends a request at once.
 *
 * Requests share the cost of a statement and of its commit, which is mostly independent of the
 * number of rows (ADR 0003). Guarantees: each request gets the outcome that it would get alone, and
 * tenants alternate. If a statement waits too long for a lock, or the database refuses it, each of
 * its requests is sent again alone, so that none delays the others.
 */

import { tryAgain } from "../core/errors.ts";
import { sendApart } from "./apart.ts";
import { isOverdue, toApiError } from "./database.ts";
import type { KnownTenants } from "./known_tenants.ts";
import type { Access, Row } from "./outcome.ts";

/** Limits of coalescing. */
export interface CoalescerLimits {
  /** Most statements under way. */
  under_way: number;
  /** Most requests of one statement. */
  requests: number;
  /** Most requests that wait: of one tenant, and in all. */
  waiting_of_tenant: number;
  waiting: number;
}

/**
 * One statement at a time, because several would only share fewer requests each. At most 64
 * requests, because more do not reduce the cost of a request further. A tenant that has 8 statements
 * of requests waiting gains nothing by sending more at once; 4 such tenants leave room for others.
 */
const LIMITS: CoalescerLimits = {
  under_way: 1,
  requests: 64,
  waiting_of_tenant: 512,
  waiting: 4_096,
};
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
  /** By tenant, or by key if the tenant is not known yet; each in order of arrival. */
  readonly #waiting = new Map<string, Waiting<Request, Answer>[]>();
  readonly #tenants: KnownTenants;
  #under_way = 0;
  /** Number of requests in `#waiting`. */
  #count = 0;

  /** @param limits only measurements pass others */
  constructor(
    kind: Coalesced<Request, Answer>,
    tenants: KnownTenants,
    limits: Partial<CoalescerLimits> = {},
  ) {
    this.#kind = kind;
    this.#tenants = tenants;
    this.#limits = { ...LIMITS, ...limits };
  }

  /**
   * Sends a request, with others or alone. Returns the row of its answer. Throws `ApiError`;
   * `rate_limited` means that too many requests wait.
   */
  ask(request: Request): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const { key_hash } = request.access;
      const lane = this.#tenants.of(key_hash) ?? key_hash;
      const entry = { request, characters: this.#kind.weigh(request), resolve, reject };
      const waiting = this.#waiting.get(lane);
      const { waiting_of_tenant, waiting: in_all } = this.#limits;
      if ((waiting?.length ?? 0) >= waiting_of_tenant || this.#count >= in_all) {
        return reject(tryAgain(
          "rate_limited",
          "Too many requests are sent at the same time: send fewer at once, and try again",
        ));
      }
      this.#count++;
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

  /** Removes the requests of the next statement: one of each tenant, and again. */
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
        this.#count--;
        characters += first!.characters;
        // Moves to the end, so that the next list begins with another tenant.
        this.#waiting.delete(lane);
        if (waiting.length > 0) this.#waiting.set(lane, waiting);
      }
    }
    return list;
  }

  #sendTogether(list: Waiting<Request, Answer>[]): Promise<void> {
    return sendApart(list, {
      send: (entries, is_alone) => this.#send(entries, is_alone),
      refuse: (entries, error, is_alone) => {
        // After a deadline the waiting requests fail too: they would wait for another one.
        const others = isOverdue(error) && !is_alone ? [...this.#waiting.values()].flat() : [];
        if (others.length > 0) {
          this.#waiting.clear();
          this.#count = 0;
        }
        for (const { reject } of [...entries, ...others]) reject(toApiError(error));
      },
      in_order: false,
    });
  }

  async #send(list: readonly Waiting<Request, Answer>[], is_alone: boolean): Promise<void> {
    const rows = await this.#kind.send(list.map(({ request }) => request), is_alone);
    if (rows.length !== list.length) throw new Error("an entry function gave too few rows");
    for (const row of rows) {
      const { request, resolve } = list[row.n - 1]!;
      this.#tenants.learn(request.access.key_hash, row);
      resolve(row);
    }
  }
}
