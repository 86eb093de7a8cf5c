/**
 * Lists: awaited, a page; iterated, every item of every page.
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
  /** Whether the list continues. The number of items does not show its end. */
  has_more: boolean;
  /** `starting_after` of the next page. Not always the id of the page's last item. */
  next_cursor: string | null;
}

/** What every list takes. */
export interface ListParams {
  /**
   * Most items of a page, 1 to 100; 10 by default. 100 makes the fewest requests when iterating.
   */
  limit?: number | undefined;
  /** An id: the page begins after it. */
  starting_after?: string | undefined;
}

/**
 * A list that has been asked for. Nothing is sent before it is awaited or iterated; the first page
 * is fetched once.
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

  /** The page after `starting_after`, by default the first. It can be short: see `Page`. */
  then<Value = Page<T>, Failure = never>(
    resolved?: ((page: Page<T>) => Value | PromiseLike<Value>) | null,
    rejected?: ((reason: unknown) => Failure | PromiseLike<Failure>) | null,
  ): Promise<Value | Failure> {
    return this.#firstPage().then(resolved, rejected);
  }

  /** As of a promise. */
  catch<Failure = never>(
    rejected?: ((reason: unknown) => Failure | PromiseLike<Failure>) | null,
  ): Promise<Page<T> | Failure> {
    return this.#firstPage().catch(rejected);
  }

  /** As of a promise. */
  finally(settled?: (() => void) | null): Promise<Page<T>> {
    return this.#firstPage().finally(settled);
  }

  /** Every page from here on, each fetched when it is asked for. */
  async *pages(): AsyncGenerator<Page<T>, void, undefined> {
    let page = await this.#firstPage();
    yield page;
    while (page.has_more && page.next_cursor !== null) {
      page = await this.#fetch(page.next_cursor);
      yield page;
    }
  }

  /** Every item from here on. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.pages()) yield* page.data;
  }

  #firstPage(): Promise<Page<T>> {
    return this.#first ??= this.#fetch(undefined);
  }
}

/** The list at a path. */
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
