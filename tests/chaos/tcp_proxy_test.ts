/** The chaos test's proxy forwards bytes unchanged. Each of its faults happens when it reports it. */

import assert from "node:assert/strict";
import { type FaultCounts, type FaultRates, TcpProxy } from "../support/proxy/tcp_proxy.ts";

const NONE: FaultRates = { reset: 0, stall: 0, halve: 0, stall_ms: [100, 100] };
const BODY = "x".repeat(1_000);

const CASES: [name: string, rates: Partial<FaultRates>, fault: keyof FaultCounts | null][] = [
  ["forwards bytes unchanged", {}, null],
  ["resets a connection", { reset: 1 }, "reset"],
  ["forwards half of a response", { halve: 1 }, "halve"],
  ["stalls a connection", { stall: 1 }, "stall"],
  ["causes no fault after calm()", { reset: 1, halve: 1, stall: 1 }, null],
];

for (const [name, rates, fault] of CASES) {
  Deno.test(`TcpProxy ${name}`, async () => {
    const server = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen: () => {} },
      () => new Response(BODY),
    );
    const proxy = new TcpProxy({ target_port: server.addr.port, rates: { ...NONE, ...rates } });
    if (fault === null) proxy.calm();
    try {
      const started = performance.now();
      const reading = fetch(`http://127.0.0.1:${proxy.port}/`, { headers: { Connection: "close" } })
        .then((response) => response.text());
      if (fault === "reset" || fault === "halve") await assert.rejects(reading);
      else assert.equal(await reading, BODY);
      if (fault === "stall") assert.ok(performance.now() - started >= 195, "both ways");
      for (const [kind, count] of Object.entries(proxy.counts)) {
        assert.equal(count > 0, kind === fault, kind);
      }
    } finally {
      proxy.close();
      await server.shutdown();
    }
  });
}
