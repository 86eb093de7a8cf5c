/**
 * The load generator: a separate process that reads orders from standard input and prints one
 * result for each. It prepares requests as bytes and writes only the key and the id into them.
 */

import { onLines, tell } from "../../tests/support/common/process.ts";
import { HttpConnection, type LoadResponse } from "./http_connection.ts";
import { quantile } from "./measurement.ts";
import { ID_PLACE, KEY_PLACE, type LoadOrder, type LoadResult } from "./load_order.ts";

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
  let responses = 0;
  let last_ms = 0;
  const start = performance.now() + order.warmup_ms;
  const end = start + order.duration_ms;
  const loop = async (connection: HttpConnection) => {
    const request = source.copy();
    for (;;) {
      const sent = performance.now();
      if (sent >= end || !source.prepare(request)) return;
      const response = await connection.ask(request.bytes[request.turn]!);
      const now = performance.now();
      const fault = faultOf(order, response);
      if (fault !== null) {
        errors.add(fault);
        return;
      }
      responses++;
      if (sent < start) continue;
      latencies.push(now - sent);
      last_ms = Math.max(last_ms, now);
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
    errors: [...errors].slice(0, MAX_ERRORS),
  };
}

/** The requests of one connection; each turn overwrites one of them. */
interface PreparedRequest {
  bytes: Uint8Array[];
  turn: number;
}

/** Hands out keys and ids and writes them into requests. */
class RequestSource {
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
    const { ids, keys, requests_max } = this.#order;
    const count = this.#count++;
    if (requests_max !== null && count >= requests_max) return false;
    request.turn = count % request.bytes.length;
    const bytes = request.bytes[request.turn]!;
    const place = this.#places[request.turn]!;
    if (place.id >= 0) encoder.encodeInto(ids[count % ids.length]!, bytes.subarray(place.id));
    if (place.key < 0) return true;
    const key = keys.length > 0 ? keys[count % keys.length]! : crypto.randomUUID();
    encoder.encodeInto(key, bytes.subarray(place.key));
    return true;
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
