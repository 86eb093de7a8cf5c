/**
 * The clients of the chaos test's main run, as a process, against a server that refuses on purpose.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import type { ClientReport, ClientSettings } from "./client_process.ts";
import { SANDBOXES } from "./plan.ts";
import { launch } from "./process.ts";

const PROGRAM = import.meta.resolve("./client_process.ts");

Deno.test("the clients repeat a replay that gets 503, and report one that differs", async () => {
  const folder = await Deno.makeTempDir();
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
    const is_replay = stored.has(key);
    stored.set(key, body);
    const is_wrong = is_calm && key === [...stored.keys()].at(0);
    return new Response(is_wrong ? "{}" : body, {
      headers: is_replay ? { "Idempotent-Replayed": "true" } : {},
    });
  });
  const url = `http://127.0.0.1:${server.addr.port}`;
  const told = Promise.withResolvers<void>();
  const replayed = Promise.withResolvers<{ replayed: number; faults: string[] }>();
  const settings: ClientSettings = {
    seed: 1,
    operations: 20,
    clients: 4,
    journal: join(folder, "journal"),
    base_urls: [url],
    calm_urls: [url],
    keys: Object.fromEntries(SANDBOXES.map((name) => [name, name])) as ClientSettings["keys"],
  };
  const clients = await launch(PROGRAM, settings, (line) => {
    const report = line as ClientReport;
    if ("counts" in report) told.resolve();
    else if ("replayed" in report) replayed.resolve(report);
  });
  try {
    await told.promise;
    is_calm = true;
    await clients.send("replay");
    const { replayed: count, faults } = await replayed.promise;
    assert.ok(count > 10, `${count} replays`);
    assert.ok(refused.size >= count);
    assert.deepEqual(faults.map((fault) => fault.replace(/\d+/, "N")), [
      "operation N: 200, then 200",
    ]);
  } finally {
    clients.kill();
    await clients.ended;
    await server.shutdown();
    await Deno.remove(folder, { recursive: true });
  }
});
