/**
 * Measures the rate of one tenant's creates while another tenant lists at its rate limit, with
 * filters that match none of many payments.
 */

import { fillEnvironment } from "./fill.ts";
import { CONNECTIONS, CREATE_ROWS, createPlan, type RequestForge } from "./line.ts";
import { counts, measureServer, type Run } from "./measure.ts";
import type { Figure } from "./measurement.ts";
import type { Pair } from "./pair.ts";
import type { Product } from "./product.ts";
import { makeSandbox } from "./sandbox.ts";

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
/** Statuses that the reader may get: a page, or to retry later. */
const ANSWERS = [200, 429, 503];

/** The pair, and the rate of the pages that the reader gets. */
export function prepareHostileReaderPair(
  forge: RequestForge,
  payments: number,
): { pair: Pair; figure: Figure } {
  const { bench } = forge;
  const name = `create beside a hostile reader of ${payments}`;
  const figure: Figure = { name: `pages of the hostile reader`, unit: "1/s", values: [] };
  let reader: Product | null = null;

  async function openReader(): Promise<Product> {
    const sandbox = { ...bench.product, test_key: await makeSandbox(bench.sql, "hostile") };
    await fillEnvironment(bench.sql, {
      product: sandbox,
      payments,
      deliveries: false,
      vacuum: true,
    });
    return sandbox;
  }

  const create = (side: string) =>
    measureServer(bench, `${name}: ${side}`, CONNECTIONS, createPlan(forge), CREATE_ROWS);

  async function createBeside(): Promise<Run | null> {
    const reading = readHostilely(reader ??= await openReader());
    const run = await create("with it");
    const { pages, others, seconds } = await reading.stop();
    const problems = others.size === 0 ? [] : [`answers of the reader: ${[...others].join(", ")}`];
    if (pages === 0) problems.push("the reader got no page");
    if (!counts(bench, name, problems)) return null;
    figure.values.push(pages / seconds);
    return run;
  }

  return {
    figure,
    pair: {
      name,
      connections: CONNECTIONS,
      measureBeside: async () => {
        reader ??= await openReader();
        return (await create("without it"))?.per_second ?? null;
      },
      run: createBeside,
    },
  };
}

/** The answers to a reader. */
interface Reading {
  pages: number;
  /** Answers with other statuses. */
  others: Set<string>;
  seconds: number;
}

/** Requests lists at a constant rate, without waiting for answers, until it is stopped. */
function readHostilely({ base_url, test_key }: Product): { stop(): Promise<Reading> } {
  const began = performance.now();
  const under_way = new Set<Promise<void>>();
  const reading: Reading = { pages: 0, others: new Set(), seconds: 0 };
  let sent = 0;
  const send = async (list: string) => {
    const response = await fetch(`${base_url}/api-v1-payments/v1/${list}`, {
      headers: { Authorization: `Bearer ${test_key}` },
    });
    const text = await response.text();
    if (response.status === 200) reading.pages++;
    if (!ANSWERS.includes(response.status)) reading.others.add(`${response.status} ${text}`);
  };
  const timer = setInterval(() => {
    const due = (performance.now() - began) / 1000 * RATE_PER_S;
    for (; sent < due; sent++) {
      const request: Promise<void> = send(LISTS[sent % LISTS.length]!)
        .catch((error) => void reading.others.add(String(error)))
        .finally(() => under_way.delete(request));
      under_way.add(request);
    }
  }, 1000 / RATE_PER_S);
  return {
    async stop() {
      clearInterval(timer);
      reading.seconds = (performance.now() - began) / 1000;
      await Promise.all(under_way);
      return reading;
    },
  };
}
