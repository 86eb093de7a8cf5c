/**
 * Notes about requests, written behind their answers: the log of the requests of sandboxes, and the
 * replays of each idempotency key. No request waits for a note.
 *
 * Notes collect for a moment, so that many requests share a statement (`pay.note_requests`). The
 * memory is bounded: when too many wait, the queue drops the new ones and counts them. It also drops
 * and counts a note that the database refuses, without the others. `close` writes everything that
 * waits. A process that is killed loses what it has not written (ADR 0022).
 */

import { sendApart } from "./apart.ts";
import { type Database, isUnavailable } from "./database.ts";

/** A request in the log of its sandbox. Members without a value are absent. */
export interface NotedRequest {
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
}

/** A replay of the stored answer of an idempotency key. */
interface NotedReplay {
  environment_id: string;
  api_key_id: string;
  key: string;
}

type CountedReplay = NotedReplay & { count: number };

function isReplay(note: NotedRequest | CountedReplay): note is CountedReplay {
  return "count" in note;
}

function isRequest(note: NotedRequest | CountedReplay): note is NotedRequest {
  return !isReplay(note);
}

/** Sends notes in one statement. Throws the driver's error. */
type Send = (
  requests: readonly NotedRequest[],
  replays: readonly CountedReplay[],
) => Promise<unknown>;

/** Limits of the queue. */
interface NoteLimits {
  /** Milliseconds for which notes collect. */
  collect_ms: number;
  /** Most requests of one statement. */
  batch: number;
  /** Most requests, and most idempotency keys, that wait. */
  waiting: number;
}

/**
 * Half a second is short for a person who looks at the log, and at a thousand requests a second it
 * makes two statements of them. 5 000 waiting requests take about 2 MB.
 */
const LIMITS: NoteLimits = { collect_ms: 500, batch: 500, waiting: 5_000 };
/** Longest time between two attempts while the database is unavailable. */
const MAX_PAUSE_MS = 10_000;

const NOTE = `select pay.note_requests(
  p_keys => $1::text, p_requests => $2::text, p_replays => $3::text)`;

/** Sends notes to a database. */
export function noteIn(database: Database): Send {
  return (requests, replays) =>
    database.attempt(NOTE, [...requestParameters(requests), JSON.stringify(replays)]);
}

/** Returns the API keys of requests, and the requests with the numbers of their keys. */
function requestParameters(requests: readonly NotedRequest[]): [keys: string, requests: string] {
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

/** The notes that wait. */
export class RequestNotes {
  readonly #send: Send;
  readonly #on_loss: (notes: number) => void;
  readonly #background: (work: Promise<unknown>) => void;
  readonly #limits: NoteLimits;
  #requests: NotedRequest[] = [];
  #replays = new Map<string, CountedReplay>();
  #timer: { number: ReturnType<typeof setTimeout>; resolve: () => void } | null = null;
  #under_way: Promise<boolean> | null = null;
  #pause_ms: number;
  #lost = 0;
  #is_closed = false;

  /**
   * @param on_loss called with the number of notes that were dropped
   * @param background keeps the process alive for work behind an answer
   * @param limits only tests pass others
   */
  constructor(
    send: Send,
    on_loss: (notes: number) => void,
    background: (work: Promise<unknown>) => void = () => {},
    limits: NoteLimits = LIMITS,
  ) {
    this.#send = send;
    this.#on_loss = on_loss;
    this.#background = background;
    this.#limits = limits;
    this.#pause_ms = limits.collect_ms;
  }

  /** Adds a request to the log of its sandbox. */
  logRequest(request: NotedRequest): void {
    if (this.#requests.length >= this.#limits.waiting) return void this.#lost++;
    this.#requests.push(request);
    this.#wake();
  }

  /** Counts a replay. */
  countReplay(environment_id: string, api_key_id: string, key: string): void {
    const name = `${environment_id} ${api_key_id} ${key}`;
    const counted = this.#replays.get(name);
    if (counted) return void counted.count++;
    if (this.#replays.size >= this.#limits.waiting) return void this.#lost++;
    this.#replays.set(name, { environment_id, api_key_id, key, count: 1 });
    this.#wake();
  }

  /** Writes the notes that wait now. Does not throw: notes that cannot be written stay. */
  async flush(): Promise<void> {
    this.#cancelTimer();
    // Bounded, because new notes may arrive as fast as the old ones are written. The batch under
    // way may be another caller's, and may hold notes from before this call.
    const most = Math.ceil(this.#limits.waiting / this.#limits.batch) + 2;
    for (let sent = 0; sent < most && (this.#under_way !== null || this.#isWaiting()); sent++) {
      if (!await this.#sendNext()) break;
    }
    this.#reportLoss();
    if (this.#isWaiting()) this.#wake();
  }

  /** Writes what waits and stops. Notes that the database does not take are lost and counted. */
  async close(): Promise<void> {
    this.#is_closed = true;
    await this.flush();
    this.#lost += this.#requests.length + this.#replays.size;
    this.#requests = [];
    this.#replays.clear();
    this.#reportLoss();
  }

  #isWaiting(): boolean {
    return this.#requests.length > 0 || this.#replays.size > 0;
  }

  #wake(): void {
    if (this.#timer !== null || this.#under_way !== null || this.#is_closed) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const number = setTimeout(() => this.#background(this.flush()), this.#pause_ms);
    this.#timer = { number, resolve };
    this.#background(promise);
  }

  #cancelTimer(): void {
    if (this.#timer === null) return;
    clearTimeout(this.#timer.number);
    this.#timer.resolve();
    this.#timer = null;
  }

  /** Sends one batch. Returns whether the database has taken it. */
  #sendNext(): Promise<boolean> {
    return this.#under_way ??= this.#sendBatch().finally(() => this.#under_way = null);
  }

  async #sendBatch(): Promise<boolean> {
    const requests = this.#requests.splice(0, this.#limits.batch);
    const replays = [...this.#replays.values()];
    this.#replays = new Map();
    const again: NotedRequest[] = [];
    let is_unavailable = false;
    const notes = [...requests, ...replays];
    await sendApart(notes, {
      send: (notes) => this.#send(notes.filter(isRequest), notes.filter(isReplay)),
      refuse: (notes, error) => {
        is_unavailable ||= isUnavailable(error);
        // The statement may have been committed. A request that comes again changes nothing, but a
        // replay would be counted twice.
        if (isUnavailable(error)) again.push(...notes.filter(isRequest));
        this.#lost += notes.filter((note) => isReplay(note) || !isUnavailable(error)).length;
      },
      in_order: true,
    });
    this.#requests = [...again, ...this.#requests];
    this.#pause_ms = is_unavailable
      ? Math.min(2 * this.#pause_ms, MAX_PAUSE_MS)
      : this.#limits.collect_ms;
    return !is_unavailable;
  }

  #reportLoss(): void {
    if (this.#lost > 0) this.#on_loss(this.#lost);
    this.#lost = 0;
  }
}
