/**
 * Lists. `await` gives one page, `for await` gives every item of every page.
 */

import type { ReadOptions } from "./request_options.ts";
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
}

/** Parameters of every list. */
export interface ListParams {
  /**
   * Maximum of items of a page, 1 to 100. By default 10. An iteration makes the fewest requests
   * with 100.
   */
  limit?: number | undefined;
  /** `next_cursor` of the page before, or the id of an item. The page begins after it. */
  starting_after?: string | undefined;
}

/**
 * A list. The client sends the first request when you await or iterate the list, and requests the
 * first page only once.
 * @example
 * ```ts
 * const page = await client.payments.list({ limit: 20 });
 * for await (const payment of client.payments.list({ limit: 100 })) console.log(payment.id);
 * ```
 */
export class List<T> implements PromiseLike<Page<T>>, AsyncIterable<T> {
  readonly #fetch: (starting_after: string | undefined) => Promise<Page<T>>;
  #first: Promise<Page<T>> | undefined;

  constructor(fetch: (starting_after: string | undefined) => Promise<Page<T>>) {
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
  async *pages(): AsyncGenerator<Page<T>, void, undefined> {
    let page = await this.#firstPage();
    yield page;
    while (page.has_more && page.next_cursor !== null) {
      page = await this.#fetch(page.next_cursor);
      yield page;
    }
  }

  /** Iterates over the items of all pages from the first one. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.pages()) yield* page.data;
  }

  #firstPage(): Promise<Page<T>> {
    return this.#first ??= this.#fetch(undefined);
  }
}

/** Returns the list at a path. */
export function listOf<T>(
  transport: Transport,
  path: readonly string[],
  params: ListParams = {},
  options: ReadOptions = {},
): List<T> {
  return new List((cursor) =>
    transport.send<Page<T>>({
      method: "GET",
      path,
      query: cursor === undefined ? params : { ...params, starting_after: cursor },
    }, options)
  );
}
