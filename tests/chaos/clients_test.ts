/** The clients of the chaos test's main run, against a server that refuses on purpose. */

import assert from "node:assert/strict";
import { RepeatingClient } from "./harness/client.ts";
import { PlanClients } from "./worlds/sandbox/clients.ts";
import { planOf, SANDBOXES } from "./worlds/sandbox/plan.ts";

Deno.test("the clients repeat a replay that gets 503, and report one that differs", async () => {
  /** The response to each key, and the keys that were refused once. */
  const stored = new Map<string, string>();
  const refused = new Set<string>();
  let is_calm = false;
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
    const key = request.headers.get("Idempotency-Key");
    if (key === null) return Response.json({});
    if (is_calm && !refused.has(key)) {
      refused.add(key);
      return new Response(null, { status: 503 });
    }
    const body = stored.get(key) ?? JSON.stringify({ id: `pay_${stored.size}` });
    const headers: HeadersInit = stored.has(key) ? { "Idempotent-Replayed": "true" } : {};
    stored.set(key, body);
    const is_wrong = is_calm && key === [...stored.keys()].at(0);
    return new Response(is_wrong ? "{}" : body, { headers });
  });
  const ends: (() => unknown)[] = [];
  const client = new RepeatingClient({ atEnd: (end) => ends.push(end) }, {
    urls: [`http://127.0.0.1:${server.addr.port}`],
  });
  const clients = new PlanClients({
    ...{ plan: planOf(1, 20, 0), client, clients: 4, onFinished: () => {} },
    keys: Object.fromEntries(SANDBOXES.map((name) => [name, name])) as Record<string, string>,
  });
  try {
    await clients.tell();
    is_calm = true;
    const { replayed, faults } = await clients.replay(client);
    assert.ok(replayed > 10, `${replayed} replays`);
    assert.ok(refused.size >= replayed);
    assert.deepEqual(faults.map((fault) => fault.replace(/\d+/, "N")), [
      "operation N: 200, then 200",
    ]);
  } finally {
    for (const end of ends) end();
    await server.shutdown();
  }
});
