/**
 * Two instances over one database, as a platform runs isolates. Each has its own pool and queues,
 * so that their requests meet in the database only.
 */

import { NO_DISPATCHER } from "../webhook/dispatcher_polls.ts";
import { startSecondService } from "./second_service.ts";
import { startService, type TestResponse, type TestService } from "./service.ts";

/** A request to either instance, as JSON. */
export interface Ask {
  path: string;
  body?: unknown;
  idempotency_key?: string;
  key?: string;
}

/** Two instances of the product. */
export interface TwoInstances {
  service: TestService;
  /** Sends a POST to one of the instances. */
  post(instance: number, ask: Ask): Promise<TestResponse>;
  /** Sends requests in parallel, alternately to the two instances. */
  race(asks: readonly Ask[]): Promise<TestResponse[]>;
}

/**
 * Returns the size of a race: the value of the environment variable, or the size for CI.
 * `DUPLICATES` is the number of requests with one key, `ROUNDS` the number of runs
 * (docs/reliability.md).
 */
export function sizeOf(name: "DUPLICATES" | "ROUNDS", standard: number): number {
  const size = Number(Deno.env.get(name) ?? standard);
  if (!(Number.isSafeInteger(size) && size > 0)) throw new RangeError(`${name} is not a number`);
  return size;
}

/** Registers a test with two instances over a database of its own. Each step is one race. */
export function raceCase(
  name: string,
  run: (t: Deno.TestContext, two: TwoInstances) => Promise<void>,
): void {
  Deno.test(name, async (t) => {
    await using service = await startService();
    await using first = startSecondService(service, NO_DISPATCHER);
    await using second = startSecondService(service, NO_DISPATCHER);
    const post = (instance: number, { path, ...options }: Ask) =>
      [first, second][instance % 2]!.call("POST", path, options);
    const race = (asks: readonly Ask[]) => Promise.all(asks.map((ask, i) => post(i, ask)));
    // Opens the connections of both pools, so that requests of the first race meet.
    const path = "/api-v1-payments/v1/payments";
    await race(Array.from({ length: 16 }, () => ({ path, body: {} })));
    await run(t, { service, post, race });
  });
}

/** Requests that create and move payments, and reset the sandbox. */
export const ASKS = {
  create: (body: Record<string, unknown> = {}): Ask => ({
    path: "/api-v1-payments/v1/payments",
    body: { amount: 1000, currency: "EUR", ...body },
  }),
  cancel: (id: string): Ask => ({ path: `/api-v1-payments/v1/payments/${id}/cancel` }),
  refund: (id: string, amount?: number): Ask => ({
    path: `/api-v1-payments/v1/payments/${id}/refund`,
    body: amount === undefined ? {} : { amount },
  }),
  advance: (id: string, to: string): Ask => ({
    path: `/api-v1-sandbox/payments/${id}/advance`,
    body: { to },
  }),
  reset: (): Ask => ({ path: "/api-v1-sandbox/reset" }),
};
