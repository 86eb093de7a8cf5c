/**
 * The load generator: a separate process that reads orders from standard input and prints one result
 * for each. It prepares requests as bytes and writes only the key and the id into them.
 */

import { onLines, tell } from "../../tests/chaos/process.ts";
import { HttpConnection, type LoadResponse } from "./http_connection.ts";
import { quantile } from "./measurement.ts";
import { ID_PLACE, KEY_PLACE, type LoadOrder, type LoadResult, SLOT_MS } from "./load_order.ts";

const encoder = new TextEncoder();
/** Most kinds of errors in a result. */
const MAX_ERRORS = 5;

/** Carries out an order; resolves when every request has its response. */
async function runLoad(order: LoadOrder): Promise<LoadResult> {
  const connections = await Promise.all(
    Array.from({ length: order.connections }, () => HttpConnection.open(order.port)),
  );
  const source = new RequestSource(order);
  const latencies: number[] = [];
  const errors = new Set<string>();
  const ids: string[] = [];
  let responses = 0;
  let last_ms = 0;
  const start = performance.now() + order.warmup_ms;
  const end = start + order.duration_ms;
  const responses_by_slot: number[] = [];
  const { rate_per_s } = order;
  const first_due = performance.now();
  let due_count = 0;
  const loop = async (connection: HttpConnection) => {
    const request = source.copy();
    for (;;) {
      let sent = performance.now();
      if (rate_per_s !== null) {
        sent = first_due + due_count++ * 1000 / rate_per_s;
        if (sent < end) await waitUntil(sent);
      }
      if (sent >= end || !source.prepare(request)) return;
      const response = await connection.ask(request.bytes[request.turn]!);
      const now = performance.now();
      const fault = faultOf(order, response);
      if (fault !== null) {
        errors.add(fault);
        return;
      }
      responses++;
      if (order.collect) ids.push(response.body.slice(7, 7 + ID_PLACE.length));
      if (sent < start) continue;
      latencies.push(now - sent);
      last_ms = Math.max(last_ms, now);
      const slot = Math.floor((now - start) / SLOT_MS);
      responses_by_slot[slot] = (responses_by_slot[slot] ?? 0) + 1;
    }
  };
  await Promise.all(connections.map(async (connection) => {
    await loop(connection).catch((error) => errors.add(String(error)));
    connection.close();
  }));
  latencies.sort((a, b) => a - b);
  return {
    responses,
    measured: latencies.length,
    elapsed_ms: last_ms - start,
    p50_ms: quantile(latencies, 0.5),
    p99_ms: quantile(latencies, 0.99),
    started_ms: performance.timeOrigin + start,
    responses_by_slot: Array.from(responses_by_slot, (count) => count ?? 0),
    errors: [...errors].slice(0, MAX_ERRORS),
    ids,
    keys: source.keys_sent,
  };
}

/** The requests of one connection; each turn overwrites one of them. */
interface PreparedRequest {
  bytes: Uint8Array[];
  turn: number;
}

/** Hands out keys and ids and writes them into requests. */
class RequestSource {
  readonly keys_sent: string[] = [];
  readonly #order: LoadOrder;
  readonly #places: { key: number; id: number }[];
  #count = 0;

  constructor(order: LoadOrder) {
    this.#order = order;
    this.#places = order.requests.map((text) => ({
      key: text.indexOf(KEY_PLACE),
      id: text.indexOf(ID_PLACE),
    }));
  }

  copy(): PreparedRequest {
    return { bytes: this.#order.requests.map((text) => encoder.encode(text)), turn: 0 };
  }

  /** Writes the next key and id; false when the ids are used up. */
  prepare(request: PreparedRequest): boolean {
    const { ids, keys, ids_once, collect, requests_max } = this.#order;
    const count = this.#count++;
    if (requests_max !== null && count >= requests_max) return false;
    if (ids_once && count >= ids.length) return false;
    request.turn = count % request.bytes.length;
    const bytes = request.bytes[request.turn]!;
    const place = this.#places[request.turn]!;
    if (place.id >= 0) encoder.encodeInto(ids[count % ids.length]!, bytes.subarray(place.id));
    if (place.key < 0) return true;
    const key = keys.length > 0 ? keys[count % keys.length]! : crypto.randomUUID();
    if (collect) this.keys_sent.push(key);
    encoder.encodeInto(key, bytes.subarray(place.key));
    return true;
  }
}

/** Waits until a time. Timers have whole milliseconds; the delay of up to one counts as latency. */
async function waitUntil(at_ms: number): Promise<void> {
  for (let rest; (rest = at_ms - performance.now()) > 0;) {
    await new Promise((resolve) => setTimeout(resolve, Math.ceil(rest)));
  }
}

function faultOf(order: LoadOrder, { status, head, body }: LoadResponse): string | null {
  if (status !== order.expected_status) return `${status} ${body.slice(0, 300)}`;
  const { expected_head } = order;
  if (expected_head === null || head.toLowerCase().includes(expected_head)) return null;
  return `a response without "${expected_head}"`;
}

if (import.meta.main) {
  tell({});
  onLines(async (order) => tell(await runLoad(order as LoadOrder)));
}
