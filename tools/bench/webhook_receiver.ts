/**
 * A fast webhook receiver: it keeps each body with the time of its arrival and returns
 * 200. `GET` returns the arrivals since the last `GET`.
 */

import { onLines, tell } from "../../tests/support/common/process.ts";

/** A received POST. */
export interface Arrival {
  /** Milliseconds since 1970, with fractions. */
  at_ms: number;
  /** The text of the event. */
  body: string;
}

if (import.meta.main) {
  let arrivals: Arrival[] = [];
  Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    onListen: ({ port }) => tell({ port }),
  }, async (request) => {
    if (request.method === "POST") {
      const body = await request.text();
      const at_ms = performance.timeOrigin + performance.now();
      arrivals.push({ at_ms, body });
      return new Response();
    }
    const taken = arrivals;
    arrivals = [];
    return Response.json(taken);
  });
  // Ends this process when the benchmark ends.
  onLines(() => {});
}
