/**
 * Resets a large sandbox while another environment creates: measures the time until the response,
 * and the rate of the creates before and during the reset.
 */

import { makeSandbox } from "../../tests/chaos/sandbox.ts";
import { fillEnvironment } from "./fill.ts";
import { CONNECTIONS, CREATE_ROWS, createPlan, type RequestForge } from "./line.ts";
import { SLOT_MS } from "./load_order.ts";
import { counts, measureServer, type Run } from "./measure.ts";
import type { Figure, Pair } from "./measurement.ts";
import type { Product } from "./product.ts";

/** Time of the creates before the reset, and longest time of the reset. */
const BEFORE_MS = 1500;
const WITH_MS = 5000;
/** Fewest slots of a rate. In a shorter time one statement decides the rate. */
const MIN_SLOTS = 4;

/** The pair, and the figure to which each run adds a value. */
export function prepareResetPair(
  forge: RequestForge,
  payments: number,
): { pair: Pair; figure: Figure } {
  const { bench } = forge;
  const { product, sql } = bench;
  const figure: Figure = { name: `reset of ${payments} payments`, unit: "s", values: [] };
  const name = `create during a reset of ${payments}`;
  let before: number | null = null;
  let meanwhile: Run | null = null;

  async function resetWhileCreating(): Promise<void> {
    [before, meanwhile] = [null, null];
    // A new sandbox each time, so that the rows of a refused reset do not matter.
    const { text } = await makeSandbox(sql, "Reset");
    const sandbox: Product = { ...product, test_key: text };
    await fillEnvironment(sql, { product: sandbox, payments, deliveries: true, vacuum: false });
    const creating = measureServer(bench, name, CONNECTIONS, {
      ...createPlan(forge),
      duration_ms: BEFORE_MS + WITH_MS,
    }, CREATE_ROWS);
    await new Promise((resolve) => setTimeout(resolve, BEFORE_MS));
    const began_ms = now();
    const problems = await reset(sandbox, payments);
    const ended_ms = now();
    const run = await creating;
    if (ended_ms - began_ms > WITH_MS) problems.push("took longer than the creates beside it");
    if (run === null || !counts(bench, figure.name, problems)) return;
    const { started_ms, responses_by_slot } = run.result;
    const rate = (from_ms: number, to_ms: number) => {
      const [first, last] = [from_ms, to_ms].map((at) => Math.ceil((at - started_ms) / SLOT_MS));
      const from = Math.max(0, first!);
      const slots = responses_by_slot.slice(from, Math.max(last!, from + MIN_SLOTS));
      return slots.reduce((sum, count) => sum + count, 0) / (slots.length * SLOT_MS) * 1000;
    };
    figure.values.push((ended_ms - began_ms) / 1000);
    before = rate(started_ms, began_ms);
    meanwhile = {
      ...run,
      per_second: rate(began_ms, ended_ms),
      p50_ms: NaN,
      p99_ms: NaN,
      cpu: null,
    };
  }

  return {
    figure,
    pair: {
      name,
      connections: CONNECTIONS,
      measureBeside: async () => {
        await resetWhileCreating();
        return before;
      },
      run: () => Promise.resolve(meanwhile),
    },
  };
}

/** Resets the sandbox and returns the problems of the response. */
async function reset({ base_url, test_key }: Product, payments: number): Promise<string[]> {
  const response = await fetch(`${base_url}/api-v1-sandbox/reset`, {
    method: "POST",
    headers: { Authorization: `Bearer ${test_key}`, "Content-Type": "application/json" },
    body: "{}",
  });
  const text = await response.text();
  if (!response.ok) return [`${response.status} ${text}`];
  const { deleted } = JSON.parse(text);
  // The copies, and the payment from which they were made.
  const due = {
    payments: payments + 1,
    events: 2 * (payments + 1),
    webhook_deliveries: 2 * payments,
  };
  return Object.entries(due).flatMap(([kind, count]) =>
    deleted[kind] === count ? [] : [`${deleted[kind]} ${kind} deleted, there were ${count}`]
  );
}

function now(): number {
  return performance.timeOrigin + performance.now();
}
