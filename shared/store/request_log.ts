/**
 * The log of the requests of sandboxes, and the number of replays of each idempotency key. Both are
 * written behind the responses, so no request waits for them.
 *
 * Entries collect for a moment, so that many requests share a statement (`pay.log_requests`). The
 * memory is bounded: when too many wait, the queue drops the new ones and counts them. It also
 * drops and counts an entry that the database refuses, without the others. `close` writes
 * everything that waits. A process that is killed loses what it has not written (ADR 0018).
 */

import { isUnavailable } from "../core/database_error.ts";
import { Batcher } from "../jobs/batcher.ts";
import type { Database } from "./database.ts";

/** A request in the log of its sandbox. Members without a value are absent. */
export interface RequestLogEntry {
  environment_id: string;
  api_key_id: string;
  /** `req_…` */
  id: string;
  method: string;
  path: string;
  query?: string;
  status: number;
  error_code?: string;
  idempotency_key?: string;
  is_replay?: true;
  duration_us: number;
  /** Absent: a program. */
  source?: "web_page";
  /** RFC 3339: the arrival of the request. */
  at: string;
  /** The resource that it has made, or else the one of its response or its path. */
  resource_id?: string;
  /** The declared fault that decided the response. `fault_id` is absent if a header asked for it. */
  fault?: string;
  fault_id?: string;
  /** RFC 3339: the time of the sandbox by which it was decided. Absent: it changes nothing. */
  decided_at?: string;
  /** JSON text without secrets. */
  request_body?: string;
  response_body?: string;
}

/** A replay of the stored response of an idempotency key. */
interface Replay {
  environment_id: string;
  api_key_id: string;
  key: string;
}

type CountedReplay = Replay & { count: number };

type Entry = RequestLogEntry | CountedReplay;

function isReplay(entry: Entry): entry is CountedReplay {
  return "count" in entry;
}

function isRequest(entry: Entry): entry is RequestLogEntry {
  return !isReplay(entry);
}

/** Sends entries in one statement. Throws the driver's error. */
type Send = (
  requests: readonly RequestLogEntry[],
  replays: readonly CountedReplay[],
) => Promise<unknown>;

interface Limits {
  collect_ms: number;
  /** Most entries of one statement. */
  most: number;
  /** Most requests, and most idempotency keys, that wait. */
  waiting: number;
}

/**
 * Half a second is short for a person who looks at the log, and at a thousand requests a second it
 * makes two statements of them. 5 000 waiting requests take about 2 MB.
 */
const LIMITS: Limits = { collect_ms: 500, most: 500, waiting: 5_000 };
/** Longest time between two attempts while the database is unavailable. */
const MAX_PAUSE_MS = 10_000;

const LOG_REQUESTS = `select pay.log_requests(
  p_keys => $1::text, p_requests => $2::text, p_replays => $3::text, p_storage_gb => $4::int)`;

/**
 * Sends entries to a database.
 * @param storage_gb the gigabytes that the sandboxes of an account may store; null: no limit. At
 * the limit requests are stored without their bodies
 */
export function writeTo(database: Database, storage_gb: number | null): Send {
  return (requests, replays) =>
    database.attempt(LOG_REQUESTS, [
      ...requestParameters(requests),
      JSON.stringify(replays),
      storage_gb,
    ]);
}

function requestParameters(requests: readonly RequestLogEntry[]): [keys: string, requests: string] {
  const numbers = new Map<string, number>();
  const keys: { k: number; environment_id: string; api_key_id: string }[] = [];
  const rows = requests.map(({ environment_id, api_key_id, ...row }) => {
    const name = `${environment_id} ${api_key_id}`;
    let k = numbers.get(name);
    if (k === undefined) {
      k = keys.length;
      numbers.set(name, k);
      keys.push({ k, environment_id, api_key_id });
    }
    return { k, ...row };
  });
  return [JSON.stringify(keys), JSON.stringify(rows)];
}

export class RequestLog {
  readonly #batcher: Batcher<Entry>;
  readonly #on_loss: (entries: number) => void;
  readonly #background: (work: Promise<unknown>) => void;
  readonly #limits: Limits;
  #requests = 0;
  /** The replays that wait, by key. Further ones of a key only add to its count. */
  readonly #replays = new Map<string, CountedReplay>();
  /** Continue the requests that wait until the database is available again. */
  #paused: (() => void)[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #pause_ms = 0;
  #lost = 0;
  #is_closed = false;

  /**
   * @param on_loss called with the number of entries that were dropped
   * @param background keeps the process alive for work behind a response
   * @param limits only tests pass others
   */
  constructor(
    send: Send,
    on_loss: (entries: number) => void,
    background: (work: Promise<unknown>) => void = () => {},
    limits: Limits = LIMITS,
  ) {
    const { collect_ms, most } = limits;
    this.#batcher = new Batcher({
      collect_ms,
      most,
      in_order: true,
      send: async (entries) => {
        this.#reportLoss();
        for (const replay of entries.filter(isReplay)) {
          const name = nameOf(replay);
          if (this.#replays.get(name) === replay) this.#replays.delete(name);
        }
        await send(entries.filter(isRequest), entries.filter(isReplay));
        return entries.map(() => {});
      },
    });
    this.#on_loss = on_loss;
    this.#background = background;
    this.#limits = limits;
  }

  logRequest(request: RequestLogEntry): void {
    if (this.#requests >= this.#limits.waiting) return void this.#lost++;
    this.#requests++;
    this.#background(this.#write(request).finally(() => this.#requests--));
  }

  countReplay(environment_id: string, api_key_id: string, key: string): void {
    const replay = { environment_id, api_key_id, key, count: 1 };
    const counted = this.#replays.get(nameOf(replay));
    if (counted) return void counted.count++;
    if (this.#replays.size >= this.#limits.waiting) return void this.#lost++;
    this.#replays.set(nameOf(replay), replay);
    this.#background(this.#write(replay));
  }

  /** Writes the entries that wait now. Does not throw: requests that cannot be written stay. */
  async flush(): Promise<void> {
    this.#resume();
    // The resumed requests join the others.
    await Promise.resolve();
    await this.#batcher.flush();
    this.#reportLoss();
  }

  /** Writes what waits and stops. Entries that the database does not take are lost and counted. */
  async close(): Promise<void> {
    this.#is_closed = true;
    await this.flush();
  }

  async #write(entry: Entry): Promise<void> {
    for (;;) {
      try {
        await this.#batcher.add(entry);
        this.#pause_ms = 0;
        return;
      } catch (error) {
        // The statement may have been committed. A request that comes again changes nothing, but a
        // replay would be counted twice.
        if (isReplay(entry) || this.#is_closed || !isUnavailable(error)) return void this.#lost++;
        await this.#pause();
      }
    }
  }

  #reportLoss(): void {
    if (this.#lost > 0) this.#on_loss(this.#lost);
    this.#lost = 0;
  }

  /** Waits until the next attempt after an unavailable database. */
  #pause(): Promise<void> {
    return new Promise((resume) => {
      this.#paused.push(resume);
      if (this.#timer !== undefined) return;
      this.#pause_ms = Math.min(2 * this.#pause_ms || this.#limits.collect_ms, MAX_PAUSE_MS);
      this.#timer = setTimeout(() => this.#resume(), this.#pause_ms);
    });
  }

  #resume(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const resume of this.#paused.splice(0)) resume();
  }
}

function nameOf({ environment_id, api_key_id, key }: Replay): string {
  return `${environment_id} ${api_key_id} ${key}`;
}
