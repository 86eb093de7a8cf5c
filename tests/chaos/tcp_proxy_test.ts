/**
 * The chaos test's proxy forwards bytes unchanged. Each of its faults happens when it reports it.
 */

import assert from "node:assert/strict";
import { type FaultRates, TcpProxy } from "./tcp_proxy.ts";

const NONE: FaultRates = { reset: 0, stall: 0, halve: 0, stall_ms: [0, 0] };
const BODY = "x".repeat(1_000);

/** Runs `work` with a server behind a proxy. */
async function through(rates: FaultRates, work: (url: string, proxy: TcpProxy) => Promise<void>) {
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    () => new Response(BODY),
  );
  const proxy = new TcpProxy({ target_port: server.addr.port, rates });
  try {
    await work(`http://127.0.0.1:${proxy.port}/`, proxy);
  } finally {
    proxy.close();
    await server.shutdown();
  }
}

async function textOf(url: string): Promise<string> {
  const response = await fetch(url, { headers: { Connection: "close" } });
  return await response.text();
}

Deno.test("TcpProxy forwards bytes unchanged", async () => {
  await through(NONE, async (url, proxy) => {
    assert.equal(await textOf(url), BODY);
    assert.deepEqual([proxy.counts.reset, proxy.counts.stall, proxy.counts.halve], [0, 0, 0]);
  });
});

Deno.test("TcpProxy resets a connection", async () => {
  await through({ ...NONE, reset: 1 }, async (url, proxy) => {
    await assert.rejects(textOf(url));
    assert.ok(proxy.counts.reset > 0);
  });
});

Deno.test("TcpProxy forwards half of a response", async () => {
  await through({ ...NONE, halve: 1 }, async (url, proxy) => {
    await assert.rejects(textOf(url));
    assert.ok(proxy.counts.halve > 0);
  });
});

Deno.test("TcpProxy stalls a connection", async () => {
  await through({ ...NONE, stall: 1, stall_ms: [100, 100] }, async (url, proxy) => {
    const started = performance.now();
    assert.equal(await textOf(url), BODY);
    assert.ok(performance.now() - started >= 195, "both ways");
    assert.ok(proxy.counts.stall >= 2);
  });
});

Deno.test("TcpProxy causes no fault after calm()", async () => {
  await through({ ...NONE, reset: 1 }, async (url, proxy) => {
    proxy.calm();
    assert.equal(await textOf(url), BODY);
  });
});
