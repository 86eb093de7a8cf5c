/**
 * The inbox of a webhook endpoint: `await` gives one read, `for await` gives every delivery as it
 * comes.
 */

import { checkedObject, checkedOptions } from "./checked_object.ts";
import { READ_OPTIONS, type ReadOptions, timeoutOfWait } from "./request_options.ts";
import type { Transport } from "./transport.ts";
import type { InboxDelivery, InboxPage } from "./resources.ts";

/** `GET /v1/webhook_endpoints/{id}/inbox` */
export interface ReadInboxParams {
  /**
   * `next_cursor` of an earlier read. It acknowledges the deliveries up to it, which needs the
   * scope `webhooks:write`. Without it, the read begins with the first delivery that is not
   * acknowledged.
   */
  after?: string | undefined;
  /** Seconds to wait for a delivery, 0 to 20. By default 0 for one read, and 20 in an iteration. */
  wait?: number | undefined;
  /** Maximum of deliveries of one read, 1 to 100. By default 10. */
  limit?: number | undefined;
}

/** `wait` of an iteration: the longest that the API allows. */
const ITERATION_WAIT_S = 20;

/**
 * An inbox. The client sends the first request when you await or iterate it. An iteration does not
 * end: it waits for the next delivery. It acknowledges the deliveries of a read when you ask for
 * the next one, so if your program ends before that, the next iteration gets them again. Ignore
 * event ids that you have handled. One read needs a key with `webhooks:read`, and an iteration
 * one with `webhooks:write` too.
 * @example
 * ```ts
 * for await (const { body, headers } of client.webhookEndpoints.inbox(endpoint.id)) {
 *   const event = await verifyWebhook<Event>(body, headers["Payment-Signature"], secret);
 *   console.log(event.type);
 * }
 * ```
 */
export class Inbox implements PromiseLike<InboxPage>, AsyncIterable<InboxDelivery> {
  readonly #read: (params: ReadInboxParams) => Promise<InboxPage>;
  readonly #params: ReadInboxParams;
  #first: Promise<InboxPage> | undefined;

  constructor(
    transport: Transport,
    path: readonly string[],
    params: ReadInboxParams = {},
    options: ReadOptions = {},
  ) {
    this.#params = checkedObject("params", params);
    checkedOptions(options, READ_OPTIONS);
    this.#read = (query) =>
      transport.send({ method: "GET", path, query }, {
        ...options,
        timeoutMs: options.timeoutMs ?? timeoutOfWait(query.wait),
      });
  }

  /** Resolves to the response to one read. */
  then<Value = InboxPage, Failure = never>(
    resolved?: ((page: InboxPage) => Value | PromiseLike<Value>) | null,
    rejected?: ((reason: unknown) => Failure | PromiseLike<Failure>) | null,
  ): Promise<Value | Failure> {
    return (this.#first ??= this.#read(this.#params)).then(resolved, rejected);
  }

  /** Iterates over the deliveries, and waits for further ones. */
  async *[Symbol.asyncIterator](): AsyncGenerator<InboxDelivery, void, undefined> {
    let after = this.#params.after;
    for (;;) {
      const page = await this.#read({ wait: ITERATION_WAIT_S, ...this.#params, after });
      yield* page.data;
      after = page.next_cursor;
    }
  }
}
