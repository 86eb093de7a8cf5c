/**
 * A webhook receiver as fast as one gets: keeps each body with the time of its arrival and answers
 * 200. `GET` tells what has arrived since the last one, as a list of `Arrival`, and forgets it.
 */

/** One POST that arrived. */
export interface Arrival {
  /** Milliseconds since 1970, finer than whole ones. */
  at_ms: number;
  /** The event's text. */
  body: string;
}

if (import.meta.main) {
  let arrivals: Arrival[] = [];
  Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    onListen: ({ port }) => console.log(port),
  }, async (request) => {
    if (request.method === "POST") {
      const body = await request.text();
      arrivals.push({ at_ms: performance.timeOrigin + performance.now(), body });
      return new Response();
    }
    const told = arrivals;
    arrivals = [];
    return Response.json(told);
  });
}
