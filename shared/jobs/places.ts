/**
 * The places of the requests of an isolate. A request under way occupies a connection and memory.
 * So each takes a place before anything is done for it: with a key that the isolate knows a place
 * of its account, without one a place of its network (shared/http/api_key_header.ts). A request
 * that finds no place gets 429 at once. Contract §5 has the numbers as a table.
 */

import type { CostlyWorkBounds } from "./costly_work.ts";
import { FairQueue } from "./fair_queue.ts";

/**
 * Most open connections of a server. The functions of a Supabase project count as one.
 */
export const CONNECTIONS = 1_024;

interface PlaceBounds {
  of_owner: number;
  in_all: number;
  /** Places of these that only owners with fewer than `few` get. */
  reserved: { slots: number; few: number };
  refusal: string;
}

const FEWER = "send fewer at once, and try again";

/**
 * Requests with a key. Accounts that take all they can leave places to those that have few requests
 * under way. A provider that hangs holds each request of a live key for 8 s, so an account at 40
 * payments a second still finds places.
 */
const WITH_KEY: PlaceBounds = {
  of_owner: 320,
  in_all: 384,
  reserved: { slots: 64, few: 16 },
  refusal: `Too many requests of this account are under way: ${FEWER}`,
};

/**
 * Requests with a key that wait for the end of a delay, for deliveries of an inbox or for changes,
 * or get a transcript.
 */
const LONG_WAITS: PlaceBounds = {
  of_owner: 128,
  in_all: 256,
  reserved: { slots: 64, few: 8 },
  refusal: `Too many requests of this account wait at the same time: ${FEWER}`,
};

/**
 * The places of each kind. Together they are fewer than the connections, so new ones are always
 * accepted. `long_waits` are a part of those with a key, and `page_waits` of them.
 */
export const PLACE_BOUNDS = {
  /** Checks of keys that the isolate does not know: a statement each, which they share. */
  key_checks: {
    of_owner: 96,
    in_all: 128,
    reserved: { slots: 16, few: 4 },
    refusal: `Too many new keys of this network are being checked: ${FEWER}`,
  },
  /** Requests of routes that take no key, with their bodies. */
  keyless: {
    of_owner: 32,
    in_all: 64,
    reserved: { slots: 16, few: 4 },
    refusal: `Too many requests of this network are under way: ${FEWER}`,
  },
  sandboxes: WITH_KEY,
  /** Apart from the others, so that no sandbox holds up money. */
  live: WITH_KEY,
  long_waits: LONG_WAITS,
  /** Half of them for requests that wait for changes, so that open pages leave room to programs. */
  page_waits: {
    of_owner: LONG_WAITS.of_owner / 2,
    in_all: LONG_WAITS.in_all / 2,
    reserved: { slots: 32, few: 8 },
    refusal: `Too many requests of this account wait for changes: ${FEWER}`,
  },
} satisfies Record<string, PlaceBounds>;

/** The places of an isolate. No request waits for one. */
export type Places = Readonly<Record<keyof typeof PLACE_BOUNDS, FairQueue>>;

export function createPlaces(): Places {
  const bounds = Object.entries(PLACE_BOUNDS);
  return Object.fromEntries(bounds.map(([kind, { in_all: slots, of_owner, reserved, refusal }]) => [
    kind,
    new FairQueue({ slots, levels: [of_owner], waiting: 0, refusal, reserved }),
  ])) as Places;
}

/**
 * Lists that can read more rows than they show (ADR 0004). A page of 2 000 rows takes about 2 ms.
 * With the rest after each, reads use about a tenth of one processor, and about 50 a second serve
 * the 50 waiting requests of an account within `patience_ms`. A 503 comes within 2 s, as it does if
 * the database is unavailable (promise R12). The work of a page is bounded, so a read above 6 ms
 * has waited for a lock or a processor, which is no reason to delay other reads.
 */
export const COSTLY_READS: CostlyWorkBounds = {
  waiting_of_owner: 50,
  patience_ms: 2_000,
  rest_factor: 9,
  rest_most_ms: 50,
  refusal: "Too many requests for filtered lists are waiting: try again",
};

/**
 * Bodies that are too large to be read before the database has admitted and counted the request.
 * The longest one takes about 10 ms, so with the rest after each those of live keys use a tenth of
 * the processor that serves all accounts, and those of test keys another. 64 bodies of 10 kB of an
 * account get their turn within `patience_ms`, and 20 of the largest.
 */
export const LARGE_BODIES: CostlyWorkBounds = {
  waiting_of_owner: 64,
  patience_ms: 2_000,
  rest_factor: 9,
  rest_most_ms: 100,
  refusal: "Too many large bodies are waiting: send fewer at once, or smaller ones",
};
