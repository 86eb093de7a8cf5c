/**
 * Over a real socket: a body that ends early is a clear 400 and not a 500, a card number as a query
 * name is not repeated, and 405 names the allowed methods.
 */

import assert from "node:assert/strict";
import { createPaymentsFunction } from "../../shared/functions/payments_function.ts";
import { startService } from "../support/service/service.ts";

const FRAMINGS: [name: string, header: string, body: string][] = [
  ["Content-Length", "Content-Length: 100", `{"a":`],
  ["chunks", "Transfer-Encoding: chunked", `5\r\n{"a":\r\n`],
];

Deno.test("a body that ends early is 400 invalid_json", async (t) => {
  const service = await startService();
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    createPaymentsFunction(service.deps),
  );
  try {
    for (const [name, header, body] of FRAMINGS) {
      await t.step(name, async () => {
        const { port } = server.addr as Deno.NetAddr;
        using connection = await Deno.connect({ hostname: "127.0.0.1", port });
        const head = [
          "POST /api-v1-payments/v1/payments HTTP/1.1",
          "Host: localhost",
          `Authorization: Bearer ${service.key.text}`,
          "Content-Type: application/json",
          header,
        ].join("\r\n");
        await connection.write(new TextEncoder().encode(`${head}\r\n\r\n${body}`));
        await connection.closeWrite();
        await new Response(connection.readable).text().catch(() => "");
        const line = service.logs.at(-1);
        assert.equal(line?.status, 400);
        assert.equal(line?.code, "invalid_json");
      });
    }
  } finally {
    await server.shutdown();
    await service.close();
  }
});

Deno.test("a query parameter named like a card number is refused and not repeated", async () => {
  const service = await startService();
  try {
    const number = "4242424242424242";
    for (const query of [`limit=1&${number}=1`, `${number}=1&${number}=2`]) {
      const refused = await service.call("GET", `/api-v1-payments/v1/payments?${query}`);
      assert.equal(refused.status, 400, refused.text);
      assert.ok(!refused.text.includes(number));
      assert.ok(![...refused.headers.values()].join().includes(number));
    }
  } finally {
    await service.close();
  }
});

Deno.test("POST /health is 405 with Allow", async () => {
  const service = await startService();
  try {
    const refused = await service.call("POST", "/api-v1-payments/health");
    assert.equal(refused.status, 405, refused.text);
    assert.equal(refused.headers.get("Allow"), "GET");
  } finally {
    await service.close();
  }
});
