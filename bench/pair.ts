/**
 * Pairs: a run of the product in turns with something other than pgbench. The one here compares
 * creates with many keys and creates with one; those of webhooks are in webhook_pairs.ts.
 */

import { ask, CREATE_A, CREATE_B, toWire } from "./api_request.ts";
import { CREATE_ROWS, createOf } from "./line.ts";
import { KEY_PLACE } from "./load_order.ts";
import { type Bench, measureServer, type Run } from "./measure.ts";
import type { Measurement } from "./report.ts";

/** Two sides that are measured in turns. */
export interface Pair {
  name: string;
  connections: number | null;
  run(): Promise<Run | null>;
  /** The rate that the run is compared with; null when it stands for itself. */
  measureBeside: (() => Promise<number | null>) | null;
}

/** API keys: more than the connections, so that concurrent requests have different ones. */
const MANY_KEYS = 64;
const CONNECTIONS = 32;

/** One repetition of a pair. */
export async function measurePair(
  { run, measureBeside }: Pair,
  { runs, floors, ratios }: Measurement,
): Promise<void> {
  const floor = measureBeside === null ? null : await measureBeside();
  const measured = await run();
  if (measured === null) return;
  runs.push(measured);
  if (floor === null) return;
  floors.push(floor);
  ratios.push(measured.per_second / floor);
}

/** Creates with many keys of one environment, beside creates with one. */
export async function prepareKeyPair(bench: Bench): Promise<Pair> {
  const keys: string[] = [];
  for (let i = 0; i < MANY_KEYS; i++) {
    const idempotency_key = crypto.randomUUID();
    const body = { name: `benchmark ${i}` };
    const path = "/v1/api_keys";
    keys.push((await ask(bench.product, { method: "POST", path, body, idempotency_key })).secret);
  }
  const measure = (name: string, test_keys: readonly string[]) => {
    const requests = test_keys.flatMap((test_key) =>
      [CREATE_A, CREATE_B].map((body) =>
        toWire({ ...bench.product, test_key }, createOf(body, KEY_PLACE))
      )
    );
    return measureServer(bench, name, CONNECTIONS, { requests, expected_status: 201 }, CREATE_ROWS);
  };
  const name = `create, ${MANY_KEYS} keys beside 1`;
  return {
    name,
    connections: CONNECTIONS,
    run: () => measure(name, keys),
    measureBeside: async () =>
      (await measure("create, 1 key", [bench.product.test_key]))?.per_second ?? null,
  };
}
