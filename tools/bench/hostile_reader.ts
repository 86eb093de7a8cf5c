/**
 * Measures the creates of one tenant while another tenant lists at its rate limit, with filters that
 * match none of many payments.
 */

import { makeSandbox } from "../../tests/chaos/sandbox.ts";
import { fillEnvironment } from "./fill.ts";
import { CONNECTIONS, CREATE_ROWS, createPlan, type RequestForge } from "./line.ts";
import { counts, measureServer } from "./measure.ts";
import type { Pair } from "./measurement.ts";
import type { Product } from "./product.ts";

/** Requests a second: the rate limit of a key (contract §5). */
const RATE_PER_S = 100;
/** Lists with filters that match nothing and have no index. */
const LISTS = [
  "payments?limit=100&currency=USD",
  "payments?limit=100&method_kind=swift",
  "payments?limit=100&status=completed&currency=GBP",
  "events?limit=100&type=payment.failed",
  "ledger_entries?limit=100&account=chargebacks",
];
/** Allowed statuses: a page, or a request to retry later. */
const RESPONSES = [200, 429, 503];

/** The pair. The first repetition fills the reader's sandbox. */
export function prepareHostileReaderPair(forge: RequestForge, payments: number): Pair {
  const { bench } = forge;
  const name = `create beside a hostile reader of ${payments}`;
  let reader: Promise<Product> | undefined;
  const openReader = () =>
    reader ??= (async () => {
      const { text } = await makeSandbox(bench.sql, "Hostile");
      const product = { ...bench.product, test_key: text };
      await fillEnvironment(bench.sql, { product, payments, deliveries: false, vacuum: true });
      return product;
    })();
  const create = (side: string) =>
    measureServer(bench, `${name}: ${side}`, CONNECTIONS, createPlan(forge), CREATE_ROWS);
  return {
    name,
    connections: CONNECTIONS,
    measureBeside: async () => {
      await openReader();
      return (await create("without it"))?.per_second ?? null;
    },
    run: async () => {
      const stop = readHostilely(await openReader());
      const run = await create("with it");
      return counts(bench, name, await stop()) ? run : null;
    },
  };
}

/**
 * Requests lists at a constant rate, without waiting for responses. The returned function stops
 * that and resolves with the problems of the responses.
 */
function readHostilely({ base_url, test_key }: Product): () => Promise<string[]> {
  const began = performance.now();
  const under_way = new Set<Promise<void>>();
  const problems = new Set<string>();
  let [sent, pages] = [0, 0];
  const send = async (list: string) => {
    const response = await fetch(`${base_url}/api-v1-payments/v1/${list}`, {
      headers: { Authorization: `Bearer ${test_key}` },
    });
    const text = await response.text();
    if (response.status === 200) pages++;
    if (!RESPONSES.includes(response.status)) problems.add(`${response.status} ${text}`);
  };
  const timer = setInterval(() => {
    const due = (performance.now() - began) / 1000 * RATE_PER_S;
    for (; sent < due; sent++) {
      const request: Promise<void> = send(LISTS[sent % LISTS.length]!)
        .catch((error) => void problems.add(String(error)))
        .finally(() => under_way.delete(request));
      under_way.add(request);
    }
  }, 1000 / RATE_PER_S);
  return async () => {
    clearInterval(timer);
    await Promise.all(under_way);
    return [...problems, ...(pages === 0 ? ["the reader got no page"] : [])];
  };
}
