/**
 * A fast webhook receiver: it keeps each body with its path and the time of its arrival and returns
 * 200. `GET` returns the arrivals since the last `GET`.
 */

import { onLines, tell } from "../../tests/chaos/process.ts";

/** A received POST. */
export interface Arrival {
  /** Milliseconds since 1970, with fractions. */
  at_ms: number;
  /** The path of the endpoint's URL. */
  to: string;
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
      arrivals.push({ at_ms, to: new URL(request.url).pathname, body });
      return new Response();
    }
    const taken = arrivals;
    arrivals = [];
    return Response.json(taken);
  });
  // Ends this process when the benchmark ends.
  onLines(() => {});
}
