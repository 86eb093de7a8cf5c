/**
 * A tenant that tries to take all slots of the dispatcher (promise R13). In a loop it creates
 * endpoints whose receiver returns 200 slowly, creates payments, resets its sandbox and deletes the
 * endpoints.
 */

import { addEndpoint, callApi, ENDPOINTS, SANDBOX_PAYMENTS } from "./api_call.ts";

const ENDPOINTS_EACH = 4;
const PAYMENTS_EACH = 20;
/** Two rounds a second: enough to fill a dispatcher without quotas, with little load. */
const ROUND_MS = 500;

/** Rounds after which a dispatcher without quotas has no slot left: each takes 64 of 256. */
const FILLING_ROUNDS = 6;

/** An attacker that works between `start` and `stop`. */
interface Attacker {
  /** Resolves after `FILLING_ROUNDS` rounds. */
  start(): Promise<void>;
  /** Resolves after its last round; attempts may still be under way. */
  stop(): Promise<void>;
  /** Attempts at its receiver: under way now, most under way at once, and in total. */
  readonly held: { now: number; most: number; all: number };
  close(): Promise<void>;
}

/**
 * Opens the receiver of an attacker.
 * @param base_url URL of the server under attack
 * @param api_key key of a sandbox in a separate account
 * @param response_ms time that the receiver takes to respond
 */
export function openAttacker(base_url: string, api_key: string, response_ms: number): Attacker {
  const held = { now: 0, most: 0, all: 0 };
  const receiver = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      held.all++;
      held.most = Math.max(held.most, ++held.now);
      await request.body?.cancel();
      await new Promise((resolve) => setTimeout(resolve, response_ms));
      held.now--;
      return new Response();
    },
  );
  const url = `http://127.0.0.1:${receiver.addr.port}/`;
  let is_at_work = false;
  let work = Promise.resolve();
  return {
    held,
    start() {
      is_at_work = true;
      const filled = Promise.withResolvers<void>();
      work = (async () => {
        for (let round = 1; is_at_work; round++) {
          const began = performance.now();
          await attackOnce(base_url, api_key, url);
          if (round === FILLING_ROUNDS) filled.resolve();
          const left_ms = began + ROUND_MS - performance.now();
          await new Promise((resolve) => setTimeout(resolve, Math.max(0, left_ms)));
        }
      })();
      // A round that fails also ends the wait.
      return Promise.race([filled.promise, work]);
    },
    async stop() {
      is_at_work = false;
      await work;
    },
    async close() {
      is_at_work = false;
      await Promise.allSettled([work, receiver.shutdown()]);
    },
  };
}

/** One round: creates endpoints and payments, resets the sandbox and deletes the endpoints. */
async function attackOnce(base_url: string, api_key: string, url: string): Promise<void> {
  const ids: string[] = [];
  for (let i = 0; i < ENDPOINTS_EACH; i++) {
    ids.push((await addEndpoint(base_url, api_key, url, ["*"])).id);
  }
  const body = { amount_minor: 100, currency: "EUR", outcome: "success" };
  await Promise.all(
    Array.from(
      { length: PAYMENTS_EACH },
      () => callApi(base_url, api_key, SANDBOX_PAYMENTS, { body }),
    ),
  );
  await callApi(base_url, api_key, "/api-v1-sandbox/reset", { body: {} });
  for (const id of ids) {
    const response = await fetch(`${base_url}${ENDPOINTS}/${id}`, {
      method: "DELETE",
      headers: { Authorization: `Bearer ${api_key}` },
    });
    await response.body?.cancel();
  }
}
