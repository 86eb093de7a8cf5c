/** Lists. `await` gives one page, `for await` gives every item of every page. */

import { checkedObject, checkedOptions } from "./checked_object.ts";
import type { ReadOptions } from "./request_options.ts";
import type { ListParams } from "./resources.ts";
import type { Transport } from "./transport.ts";

/**
 * A page of a list, newest first. It can have fewer items than `limit`, or none, while `has_more`
 * is true: the service limits the rows that it reads and the bytes that it sends for a page.
 */
export interface Page<T> {
  object: "list";
  url: string;
  data: T[];
  /** Whether the list continues. The number of items does not tell that. */
  has_more: boolean;
  /** The `starting_after` of the next page. It can differ from the id of the last item. */
  next_cursor: string | null;
  /** Of a request with `include: "total"`: how many items the list has; null if not cheap. */
  total?: { count: number; is_exact: boolean } | null;
}

/** Maximum of items of a page (contract §5). */
const PAGE_MAX = 100;
/** Maximum of items that `toArray` holds in memory: 10 000 payments have about 12 MB. */
const ARRAY_MAX = 10_000;

/** Requests the page after a cursor, or the first one, with the parameters of the list. */
type FetchPage<T> = (
  starting_after: string | undefined,
  /** Items of the page if the parameters have no `limit`. Undefined: as the API does. */
  limit: number | undefined,
) => Promise<Page<T>>;

/**
 * A list. The client sends the first request when you await or iterate the list, and requests the
 * first page only once.
 * @example
 * ```ts
 * const page = await client.payments.list({ limit: 20 });
 * for await (const payment of client.payments.list().all()) console.log(payment.id);
 * const newest = await client.payments.list().toArray({ max: 500 });
 * ```
 */
export class List<T> implements PromiseLike<Page<T>>, AsyncIterable<T> {
  readonly #fetch: FetchPage<T>;
  #first: Promise<Page<T>> | undefined;

  constructor(fetch: FetchPage<T>) {
    this.#fetch = fetch;
  }

  /**
   * Resolves to the page after `starting_after`, by default the first. The page can have fewer
   * items than `limit`: see `Page`.
   */
  then<Value = Page<T>, Failure = never>(
    resolved?: ((page: Page<T>) => Value | PromiseLike<Value>) | null,
    rejected?: ((reason: unknown) => Failure | PromiseLike<Failure>) | null,
  ): Promise<Value | Failure> {
    return this.#firstPage().then(resolved, rejected);
  }

  /** Handles a failure, like `catch` of a promise. */
  catch<Failure = never>(
    rejected?: ((reason: unknown) => Failure | PromiseLike<Failure>) | null,
  ): Promise<Page<T> | Failure> {
    return this.#firstPage().catch(rejected);
  }

  /** Runs a callback at the end, like `finally` of a promise. */
  finally(settled?: (() => void) | null): Promise<Page<T>> {
    return this.#firstPage().finally(settled);
  }

  /** Iterates over all pages from the first one. Each page is requested when it is needed. */
  pages(): AsyncGenerator<Page<T>, void, undefined> {
    return this.#pages();
  }

  /**
   * Iterates over the items of all pages from the first one. Each page is requested when it is
   * needed, so a `break` ends the requests.
   */
  async *all(): AsyncGenerator<T, void, undefined> {
    for await (const page of this.#pages(PAGE_MAX)) yield* page.data;
  }

  /** Iterates over the items of all pages, as `all` does. */
  [Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    return this.all();
  }

  /**
   * Resolves to the items of all pages from the first one, at most `max` of them. The list can
   * continue after that.
   * @param options.max 1 to 10 000
   * @throws {TypeError} if `max` is invalid
   */
  async toArray(options: { max: number }): Promise<T[]> {
    const { max } = checkedOptions(options, ["max"]);
    if (!Number.isInteger(max) || max < 1 || max > ARRAY_MAX) {
      throw new TypeError(`max is ${max}: it must be a whole number from 1 to ${ARRAY_MAX}`);
    }
    const items: T[] = [];
    for await (const page of this.#pages(Math.min(max, PAGE_MAX))) {
      items.push(...page.data);
      if (items.length >= max) break;
    }
    return items.slice(0, max);
  }

  async *#pages(limit?: number): AsyncGenerator<Page<T>, void, undefined> {
    let page = await this.#firstPage(limit);
    yield page;
    while (page.has_more && page.next_cursor !== null) {
      page = await this.#fetch(page.next_cursor, limit);
      yield page;
    }
  }

  #firstPage(limit?: number): Promise<Page<T>> {
    return this.#first ??= this.#fetch(undefined, limit);
  }
}

/** Returns the list at a path. Throws a `TypeError` if the parameters are no object. */
export function listOf<T>(
  transport: Transport,
  path: readonly string[],
  params: ListParams = {},
  options: ReadOptions = {},
): List<T> {
  checkedObject("params", params);
  return new List((cursor, limit) =>
    transport.send<Page<T>>({
      method: "GET",
      path,
      query: {
        ...params,
        limit: params.limit ?? limit,
        ...(cursor !== undefined && { starting_after: cursor }),
      },
    }, options)
  );
}
