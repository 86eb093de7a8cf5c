/**
 * Connections to receivers and their pool: which connections can be reused. No name is resolved
 * here.
 */
import assert from "node:assert/strict";
import {
  type ConnectTarget,
  openConnection,
  WebhookConnectionPool,
} from "../../shared/delivery/webhook_connection.ts";
import { openReceiver } from "../support/webhook/loopback_receiver.ts";

function targetAt(port: number): ConnectTarget {
  return { address: "127.0.0.1", port, host: "hooks.example.com", secure: false };
}

const OTHERS: [name: string, change: Partial<ConnectTarget>][] = [
  ["address", { address: "127.0.0.2" }],
  ["port", { port: 1 }],
  ["host", { host: "other.example.com" }],
  ["scheme", { secure: true }],
  ["authority", { ca_certs: [""] }],
];
for (const [name, change] of OTHERS) {
  Deno.test(`WebhookConnectionPool.take() finds no connection for another ${name}`, async () => {
    const receiver = openReceiver(() => {});
    const target = targetAt(receiver.port);
    const connection = await openConnection(target, 1_000);
    const pool = new WebhookConnectionPool();
    pool.put(target, connection!);
    assert.equal(pool.take({ ...target, ...change }), undefined);
    assert.equal(pool.take({ ...target }), connection);
    connection!.close();
    pool.close();
    await receiver.close();
  });
}

Deno.test("WebhookConnectionPool.put() keeps the most recently used connections", async () => {
  const receiver = openReceiver(() => {});
  const pool = new WebhookConnectionPool();
  const put = async (host: string) => {
    const target = { ...targetAt(receiver.port), host };
    const connection = await openConnection(target, 1_000);
    pool.put(target, connection!);
    return { target, connection: connection! };
  };
  // The maximum of the pool, each connection to a host of its own.
  const idle = [];
  for (let i = 0; i < 128; i++) idle.push(await put(`${i}.example.com`));
  const next = await put("next.example.com");
  assert.equal(idle[0]!.connection.usable, false);
  assert.equal(pool.take(idle[0]!.target), undefined);
  for (const { target, connection } of [...idle.slice(1), next]) {
    assert.equal(pool.take(target), connection);
    connection.close();
  }
  pool.close();
  await receiver.close();
});

Deno.test("WebhookConnectionPool.put() closes a connection with unsent bytes", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const target = targetAt(listener.addr.port);
  const [connection, receiver] = await Promise.all([
    openConnection(target, 1_000),
    listener.accept(),
  ]);
  // More than the buffers of two sockets hold while nobody reads.
  connection!.write(new Uint8Array(64 * 1024 * 1024));
  await receiver.write(new TextEncoder().encode("HTTP/1.1 200 OK\r\n\r\n"));
  assert.ok(await connection!.read());
  const pool = new WebhookConnectionPool();
  pool.put(target, connection!);
  assert.equal(pool.take(target), undefined);
  assert.equal(await connection!.read(), null);
  pool.close();
  receiver.close();
  listener.close();
});

Deno.test("WebhookConnectionPool.put() closes a connection after close()", async () => {
  const receiver = openReceiver(() => {});
  const connection = await openConnection(targetAt(receiver.port), 1_000);
  const pool = new WebhookConnectionPool();
  pool.close();
  pool.put(targetAt(receiver.port), connection!);
  assert.equal(connection!.usable, false);
  await receiver.close();
});

Deno.test("WebhookConnectionPool.take() skips a connection that the receiver closed", async () => {
  const receiver = openReceiver(() => {});
  const target = targetAt(receiver.port);
  const connection = await openConnection(target, 1_000);
  const pool = new WebhookConnectionPool();
  pool.put(target, connection!);
  await receiver.close();
  assert.equal(await connection!.read(), null);
  assert.equal(pool.take(target), undefined);
  pool.close();
});

for (const address of ["localhost", "hooks.example.com", "127.1", "0x7f000001", "", "[::1]"]) {
  Deno.test(`openConnection() throws for "${address}", which is not an address`, async () => {
    await assert.rejects(openConnection({ ...targetAt(1), address }, 100), TypeError);
  });
}
