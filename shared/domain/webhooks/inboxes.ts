/**
 * Inboxes of webhook endpoints: a receiver reads its deliveries, each with the headers and the body
 * that an endpoint with a URL would get (contract §4, ADR 0017). The cursor of a response contains
 * a position. A read after it acknowledges the deliveries up to that position, so nothing is lost
 * if the receiver, this process or the database ends between two reads.
 */

import type { Clock } from "../../core/clock.ts";
import { ApiError, invalidParameter } from "../../core/errors.ts";
import { type Inbox, type InboxDelivery } from "../../schema/inbox.ts";
import { INBOX_CURSOR, type ReadInboxQuery } from "../../schema/inbox_body.ts";
import type { StoredResponse } from "../../store/commit_rows.ts";
import { WaitingReaders } from "../../jobs/waiting_readers.ts";
import type { InboxPage, InboxStore, WaitingReader } from "../../store/inbox_store.ts";
import type { Access } from "../../store/outcome.ts";
import { type ServiceRequest, withoutRateCount } from "../changes/service_request.ts";
import { deliveryHeaders } from "./attempt.ts";
import { EndpointSecrets } from "./endpoint_secret.ts";

/** Holds a request that waits in a place of its account. Throws `rate_limited` if there is none. */
export type HoldPlace = (access: Access, job: () => Promise<void>) => Promise<void>;

export class Inboxes {
  readonly #store: InboxStore;
  readonly #clock: Clock;
  readonly #secrets: EndpointSecrets;
  readonly #hold: HoldPlace;
  readonly readers: WaitingReaders<WaitingReader>;

  constructor(options: {
    store: InboxStore;
    master_secret: string;
    clock: Clock;
    hold: HoldPlace;
    on_error: (error: unknown) => void;
  }) {
    this.#store = options.store;
    this.#hold = options.hold;
    this.#clock = options.clock;
    this.#secrets = new EndpointSecrets(options.master_secret);
    this.readers = new WaitingReaders(async (readers) => {
      const changed = new Set(await this.#store.changed(readers));
      return readers.filter(({ endpoint_id }) => changed.has(endpoint_id));
    }, options.on_error);
  }

  /**
   * Reads an inbox. If it has no delivery after the cursor, waits for one, but no longer than
   * `wait` seconds or until the signal aborts. Holds no connection while it waits. Throws
   * `ApiError`; `rate_limited` also means that too many reads wait.
   */
  async read(
    { access }: ServiceRequest,
    endpoint_id: string,
    { after, wait, limit }: ReadInboxQuery,
    signalOf: () => AbortSignal,
  ): Promise<StoredResponse> {
    const position = after === undefined ? null : positionOf(after, endpoint_id);
    let reading = access;
    const page = await this.readers.read({
      patience_ms: wait * 1000,
      read: async () => {
        const found = foundPage(await this.#store.read(reading, endpoint_id, position, limit));
        // A further read of the request is not counted, and has all its retries.
        access.retries.restart();
        reading = withoutRateCount(access);
        return found;
      },
      isEmpty,
      readerOf: ({ environment_id, position: after }) => ({ environment_id, endpoint_id, after }),
      hold: (waitForChange) => this.#hold(access, waitForChange),
      signalOf,
    });
    return { status: 200, body: JSON.stringify(this.#responseOf(page, endpoint_id, access.at_ms)) };
  }

  /** Wakes the readers whose inboxes have changed. */
  notice(): void {
    this.readers.notice();
  }

  /** Ends all waiting reads with an empty response. */
  close(): void {
    this.readers.close();
  }

  /** @param at_ms the time of the sandbox. The signatures have the real time */
  #responseOf(page: InboxPage, endpoint_id: string, at_ms: number): Inbox {
    const real_ms = this.#clock();
    const sources = JSON.stringify(page.secrets);
    const secrets = this.#secrets.signing(endpoint_id, sources, { at_ms, real_ms });
    return {
      object: "inbox",
      data: page.data.flatMap(({ id, event_id, attempt, body, ...sent }): InboxDelivery[] => {
        const delivered = { event_id, body, number: attempt, secrets, ...sent };
        const headers = deliveryHeaders(delivered, real_ms);
        const delivery = { id, event_id, headers, body };
        return sent.fault === "duplicate" ? [delivery, delivery] : [delivery];
      }),
      has_more: page.position < page.newest,
      next_cursor: cursorOf(endpoint_id, page.position),
    };
  }
}

function isEmpty({ data, position, newest }: InboxPage): boolean {
  return data.length === 0 && position >= newest;
}

function foundPage(found: Awaited<ReturnType<InboxStore["read"]>>): InboxPage {
  switch (found) {
    case "no_inbox":
      throw new ApiError(
        "invalid_state",
        'This endpoint has a URL and no inbox: change it with "delivery": "inbox"',
        { current_status: "url", allowed: ["inbox"] },
      );
    case "unknown_position":
      throw invalidParameter(
        "after",
        '"after" is beyond the newest delivery of this inbox: send the "next_cursor" of an ' +
          "earlier response",
      );
    default:
      return found;
  }
}

/** Returns the position in a cursor. Throws if the cursor belongs to another endpoint. */
function positionOf(cursor: string, endpoint_id: string): number {
  const [, suffix, position] = INBOX_CURSOR.exec(cursor)!;
  if (`whe_${suffix}` === endpoint_id) return Number(position);
  throw invalidParameter(
    "after",
    '"after" is a cursor of another endpoint: send the "next_cursor" of a response of this one',
  );
}

function cursorOf(endpoint_id: string, position: number): string {
  return `inb_${endpoint_id.slice("whe_".length)}_${position}`;
}
