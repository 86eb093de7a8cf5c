/**
 * The log of the requests of sandboxes, and the number of replays of each idempotency key. Both are
 * written behind the responses, so no request waits for them.
 *
 * Entries collect for a moment, so that many requests share a statement (`pay.log_requests`). Of a
 * sandbox only the newest are written, as many as its log stores. The memory is bounded: when too
 * many wait, the queue drops the new ones and counts them. It also drops and counts an entry that
 * the database refuses, without the others. `close` writes everything that waits. A process that is
 * killed loses what it has not written (ADR 0018).
 */

import { isUnavailable } from "../core/database_error.ts";
import { sendBatch } from "../jobs/batcher.ts";
import type { Database } from "./database.ts";
import { rowText } from "./row_text.ts";

/** A request in the log of its sandbox. Members without a value are null or absent. */
export interface RequestLogEntry {
  environment_id: string;
  api_key_id: string;
  /** `req_…` */
  id: string;
  method: string;
  path: string;
  query?: string | null;
  status: number;
  error_code?: string | null;
  idempotency_key?: string | null;
  is_replay?: boolean;
  duration_us: number;
  /** Absent: a program. */
  source?: "web_page" | null;
  /** RFC 3339: the arrival of the request. */
  at: string;
  /** The resource that it has made, or else the one of its response or its path. */
  resource_id?: string | null;
  /** The fault that decided the response. `fault_id` is absent if a header asked for it. */
  fault?: string | null;
  fault_id?: string | null;
  /** RFC 3339: the time of the sandbox by which it was decided. Absent: it changes nothing. */
  decided_at?: string | null;
  /** JSON text without secrets. */
  request_body?: string | null;
  response_body?: string | null;
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
  /** The requests that the log of a sandbox stores. */
  stored: number;
}

/**
 * Half a second is short for a person who looks at the log, and at a thousand requests a second it
 * makes two statements of them. 5 000 waiting requests take about 2 MB. `stored` is
 * `pay_internal.stored_requests()`.
 */
const LIMITS: Limits = { collect_ms: 500, most: 500, waiting: 5_000, stored: 1_000 };
/** Longest time between two attempts while the database is unavailable. */
const MAX_PAUSE_MS = 10_000;

const LOG_REQUESTS = `select pay.log_requests(
  p_keys => $1::text, p_requests => $2::text, p_replays => $3::text, p_storage_gb => $4::int)`;

/** The columns of `pay_internal.logged_request`, after k. */
const COLUMNS = `id method path query status error_code idempotency_key is_replay duration_us source
  at resource_id fault fault_id decided_at request_body response_body`.split(/\s+/);

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

function requestParameters(
  requests: readonly RequestLogEntry[],
): [keys: string, requests: string | null] {
  const numbers = new Map<string, number>();
  const keys: { k: number; environment_id: string; api_key_id: string }[] = [];
  const rows = requests.map((request) => {
    const { environment_id, api_key_id } = request;
    const name = `${environment_id} ${api_key_id}`;
    let k = numbers.get(name);
    if (k === undefined) {
      k = keys.length;
      numbers.set(name, k);
      keys.push({ k, environment_id, api_key_id });
    }
    return rowText(COLUMNS, request, k);
  });
  return [JSON.stringify(keys), rows.length === 0 ? null : `{${rows.join()}}`];
}

export class RequestLog {
  readonly #send: Send;
  readonly #on_loss: (entries: number) => void;
  readonly #background: (work: Promise<unknown>) => void;
  readonly #limits: Limits;
  /** The requests that wait, by sandbox, the oldest first. */
  readonly #requests = new Map<string, RequestLogEntry[]>();
  /** Those requests, and those that are being written. */
  #count = 0;
  /** The replays that wait, by key. Further ones of a key only add to its count. */
  readonly #replays = new Map<string, CountedReplay>();
  /** The end of the collection, or of the pause before another attempt. */
  #next: { timer: ReturnType<typeof setTimeout>; end: () => void } | undefined;
  #pause_ms = 0;
  #writing: Promise<void> = Promise.resolve();
  /** The writes that are under way or follow, one after the other. */
  #writes = 0;
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
    this.#send = send;
    this.#on_loss = on_loss;
    this.#background = background;
    this.#limits = limits;
  }

  logRequest(request: RequestLogEntry): void {
    const { waiting, stored } = this.#limits;
    if (this.#count >= waiting) return void this.#lost++;
    const own = this.#requestsOf(request);
    own.push(request);
    this.#count++;
    // As many newer ones wait, so the log would delete them.
    if (own.length >= 2 * stored) this.#count -= own.splice(0, stored).length;
    this.#schedule();
    if (this.#isHalfFull() && this.#writes === 0 && this.#pause_ms === 0) this.flush();
  }

  countReplay(environment_id: string, api_key_id: string, key: string): void {
    this.#addReplays({ environment_id, api_key_id, key, count: 1 });
    this.#schedule();
  }

  /** Writes the entries that wait now. Does not throw: requests that cannot be written stay. */
  async flush(): Promise<void> {
    const next = this.#next;
    clearTimeout(next?.timer);
    this.#next = undefined;
    this.#writes++;
    this.#writing = this.#writing.then(() => this.#write());
    await this.#writing;
    next?.end();
  }

  /** Writes what waits and stops. Entries that the database does not take are lost and counted. */
  async close(): Promise<void> {
    // A write under way puts back the entries that the database does not take now.
    await this.flush();
    this.#is_closed = true;
    await this.flush();
  }

  #requestsOf({ environment_id }: RequestLogEntry): RequestLogEntry[] {
    let own = this.#requests.get(environment_id);
    if (own === undefined) this.#requests.set(environment_id, own = []);
    return own;
  }

  /** Then it is written at once: the other half is for requests that come meanwhile. */
  #isHalfFull(): boolean {
    return this.#count >= this.#limits.waiting / 2;
  }

  #addReplays(replay: CountedReplay): void {
    const name = `${replay.environment_id} ${replay.api_key_id} ${replay.key}`;
    const waiting = this.#replays.get(name);
    if (waiting) waiting.count += replay.count;
    else if (this.#replays.size >= this.#limits.waiting) this.#lost++;
    else this.#replays.set(name, replay);
  }

  #schedule(): void {
    // A write schedules the next one, after its pause.
    if (this.#next !== undefined || this.#writes > 0) return;
    const { promise, resolve: end } = Promise.withResolvers<void>();
    const wait_ms = this.#pause_ms || (this.#isHalfFull() ? 0 : this.#limits.collect_ms);
    this.#next = { timer: setTimeout(() => this.flush(), wait_ms), end };
    this.#background(promise);
  }

  async #write(): Promise<void> {
    const { most, stored, collect_ms } = this.#limits;
    const requests = [...this.#requests.values()].flatMap((own) => own.slice(-stored));
    const waiting: Entry[] = [...requests, ...this.#replays.values()];
    this.#requests.clear();
    this.#replays.clear();
    this.#count = requests.length;
    const again: Entry[] = [];
    let is_away = false;
    while (waiting.length > 0 && !is_away) {
      this.#reportLoss();
      await sendBatch(waiting.splice(0, most), {
        send: (some) => this.#send(some.filter(isRequest), some.filter(isReplay)),
        refuse: (refused, error) => {
          is_away ||= isUnavailable(error);
          // The statement may have been committed. A request that comes again changes nothing, but
          // a replay would be counted twice.
          const kept = isUnavailable(error) ? refused.filter(isRequest) : [];
          again.push(...kept);
          this.#lost += refused.length - kept.length;
        },
        in_order: true,
      });
    }
    this.#keep([...again, ...waiting], requests.length);
    this.#reportLoss();
    this.#writes--;
    this.#pause_ms = is_away ? Math.min(2 * this.#pause_ms || collect_ms, MAX_PAUSE_MS) : 0;
    if (this.#requests.size + this.#replays.size > 0) this.#schedule();
  }

  /** Lets entries wait again, of so many requests that have waited. After the end they are lost. */
  #keep(entries: readonly Entry[], of_requests: number): void {
    const kept = this.#is_closed ? [] : entries;
    this.#lost += entries.length - kept.length;
    this.#count += kept.filter(isRequest).length - of_requests;
    for (const entry of kept.toReversed()) {
      if (isReplay(entry)) this.#addReplays(entry);
      else this.#requestsOf(entry).unshift(entry);
    }
  }

  #reportLoss(): void {
    if (this.#lost > 0) this.#on_loss(this.#lost);
    this.#lost = 0;
  }
}
