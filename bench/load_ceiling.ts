/**
 * The ceiling of the load generator: its rate against a server that answers constant bytes. A line
 * that comes near it would tell of the load, not of the product.
 */

import { KEY_PLACE } from "./load_order.ts";
import type { LoadProcess } from "./load_process.ts";
import { startLoopbackServer } from "./loopback_server.ts";

/** Answers per second with these connections. Throws when a single one fails. */
export async function measureCeiling(
  load: LoadProcess,
  connections: number,
  seconds: number,
): Promise<number> {
  const server = await startLoopbackServer("constant_server.ts");
  try {
    const { measured, elapsed_ms, errors } = await load.run({
      port: server.port,
      connections,
      warmup_ms: 300,
      duration_ms: seconds * 1000,
      requests: [
        `POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nIdempotency-Key: ${KEY_PLACE}\r\n` +
        `Content-Length: 300\r\n\r\n${"x".repeat(300)}`,
      ],
      ids: [],
      keys: [],
      ids_once: false,
      expected_status: 200,
      expected_head: null,
      collect: false,
    });
    if (errors.length > 0) throw new Error(`constant server: ${errors.join("; ")}`);
    return measured / elapsed_ms * 1000;
  } finally {
    await server.stop();
  }
}
