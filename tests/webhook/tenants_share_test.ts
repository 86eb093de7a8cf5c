/**
 * Receivers of one tenant that never answer delay no other tenant's deliveries (promise R13), with the
 * product's own timeouts: sixteen of them would fill a relay that knew no shares.
 */

import assert from "node:assert/strict";
import { startService } from "../support/service.ts";

const SILENT = 16;
const PAYMENTS_EACH = 20;

Deno.test("silent receivers of one tenant leave the other's deliveries alone", async () => {
  const service = await startService();
  const silent = Array.from(
    { length: SILENT },
    () => Deno.listen({ hostname: "127.0.0.1", port: 0 }),
  );
  const held: Deno.Conn[] = [];
  for (const listener of silent) {
    (async () => {
      for await (const connection of listener) held.push(connection);
    })().catch(() => {});
  }
  let arrived = 0;
  const all = Promise.withResolvers<void>();
  const healthy = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      await request.body?.cancel();
      if (++arrived === 2 * PAYMENTS_EACH) all.resolve();
      return new Response();
    },
  );
  try {
    const register = (port: number, key: string) =>
      service.call("POST", "/api-v1-payments/v1/webhook_endpoints", {
        key,
        body: { url: `http://127.0.0.1:${port}/` },
      });
    for (const listener of silent) await register(listener.addr.port, service.other.text);
    await register(healthy.addr.port, service.key.text);
    for (let i = 0; i < PAYMENTS_EACH; i++) {
      await service.make({ outcome: "success" }, { key: service.other.text });
    }
    const started = performance.now();
    for (let i = 0; i < PAYMENTS_EACH; i++) await service.make({ outcome: "success" });
    await all.promise;
    const took_ms = performance.now() - started;
    // A relay whose places were all taken would answer after a timeout of 15 s.
    assert.ok(took_ms < 12_000, `${took_ms} ms`);
    assert.equal(held.length >= 60, true, `${held.length} attempts are held`);
  } finally {
    for (const connection of held) connection.close();
    for (const listener of silent) listener.close();
    await healthy.shutdown();
    await service.close();
  }
});
