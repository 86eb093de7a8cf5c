/** A server that answers constant bytes: the most that any server can reach under our load. */

import { ID_PLACE } from "./load_order.ts";

/** As long as a payment's answer. */
const BODY = new TextEncoder().encode(JSON.stringify({ id: ID_PLACE, filler: "x".repeat(750) }));

if (import.meta.main) {
  Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    onListen: ({ port }) => console.log(port),
  }, async (request) => {
    await request.arrayBuffer();
    return new Response(BODY, { headers: { "Content-Type": "application/json" } });
  });
}
