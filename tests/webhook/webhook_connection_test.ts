/** Connections and their pool: what may be used again, and that no name is ever resolved here. */
import assert from "node:assert/strict";
import {
  type ConnectTarget,
  openConnection,
  WebhookConnectionPool,
} from "../../shared/store/webhook_connection.ts";
import { openReceiver } from "./loopback_receiver.ts";

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
  Deno.test(`WebhookConnectionPool.take() another ${name} gets no connection`, async () => {
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

Deno.test("WebhookConnectionPool.put() closes what comes back after close()", async () => {
  const receiver = openReceiver(() => {});
  const connection = await openConnection(targetAt(receiver.port), 1_000);
  const pool = new WebhookConnectionPool();
  pool.close();
  pool.put(targetAt(receiver.port), connection!);
  assert.equal(connection!.usable, false);
  await receiver.close();
});

Deno.test("WebhookConnectionPool.take() a connection that the receiver closed is none", async () => {
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
  Deno.test(`openConnection() "${address}" is no address: throws`, async () => {
    await assert.rejects(openConnection({ ...targetAt(1), address }, 100), TypeError);
  });
}
