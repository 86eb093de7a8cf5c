/**
 * Connections to receivers and their pool: which connections can be reused. Names are resolved with
 * a name server on loopback, which records every name that is queried.
 */

import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { publicNameResolver, resolveLocalName } from "../../shared/delivery/address_resolver.ts";
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
  const [connection, peer] = await Promise.all([openConnection(target, 1_000), listener.accept()]);
  // More than the buffers of two sockets hold while nobody reads.
  connection!.write(new Uint8Array(64 * 1024 * 1024));
  await peer.write(new TextEncoder().encode("HTTP/1.1 200 OK\r\n\r\n"));
  assert.ok(await connection!.read());
  const pool = new WebhookConnectionPool();
  pool.put(target, connection!);
  assert.equal(pool.take(target), undefined);
  assert.equal(await connection!.read(), null);
  pool.close();
  peer.close();
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

/** Records by name and type. The server returns SERVFAIL for a missing type. */
type Zone = Record<string, { A?: string[]; AAAA?: string[] }>;

/** Serves a zone and calls `use` with the resolver. Returns the queried names. */
async function withNameServer(
  zone: Zone,
  use: (resolve: ReturnType<typeof publicNameResolver>) => Promise<void>,
): Promise<string[]> {
  const requested = new Set<string>();
  const socket = createSocket("udp4");
  socket.on("message", (query: Uint8Array, from: { port: number; address: string }) => {
    socket.send(responseTo(query, zone, requested), from.port, from.address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  await use(publicNameResolver({ ipAddr: "127.0.0.1", port: socket.address().port }));
  socket.close();
  await once(socket, "close");
  return [...requested].sort();
}

/** One DNS response (RFC 1035 §4): the question, then the records with a pointer to its name. */
function responseTo(query: Uint8Array, zone: Zone, requested: Set<string>): Uint8Array {
  const labels: string[] = [];
  let at = 12;
  for (; query[at] !== 0; at += query[at]! + 1) {
    labels.push(new TextDecoder().decode(query.subarray(at + 1, at + 1 + query[at]!)));
  }
  const end = at + 5;
  const name = labels.join(".").toLowerCase();
  requested.add(name);
  const type = query[at + 2] === 1 ? "A" : "AAAA";
  const records = zone[name]?.[type];
  const responses = (records ?? []).flatMap((address) => {
    const data = type === "A" ? address.split(".").map(Number) : ipv6Bytes(address);
    return [0xc0, 12, 0, type === "A" ? 1 : 28, 0, 1, 0, 0, 0, 1, 0, data.length, ...data];
  });
  const flags = [0x81, records === undefined ? 0x82 : 0x80];
  const counts = [0, 1, 0, records?.length ?? 0, 0, 0, 0, 0];
  return new Uint8Array([
    ...query.subarray(0, 2),
    ...flags,
    ...counts,
    ...query.subarray(12, end),
    ...responses,
  ]);
}

/** Bytes of an uncompressed IPv6 address. */
function ipv6Bytes(address: string): number[] {
  return address.split(":").flatMap((group) => {
    const value = parseInt(group, 16);
    return [value >> 8, value & 255];
  });
}

const NAME = "hooks.example.com";
const CASES: [records: Zone[string], expected: string[]][] = [
  [{ A: ["93.184.216.34", "10.0.0.1"], AAAA: ["2606:4700:0:0:0:0:0:1"] }, [
    "10.0.0.1",
    "2606:4700::1",
    "93.184.216.34",
  ]],
  [{ A: ["93.184.216.34"] }, ["93.184.216.34"]],
  [{ A: [], AAAA: ["0:0:0:0:0:ffff:7f00:1"] }, ["::ffff:127.0.0.1"]],
];
for (const [records, expected] of CASES) {
  Deno.test(`publicNameResolver() of ${JSON.stringify(records)}`, async () => {
    const requested = await withNameServer({ [NAME]: records }, async (resolve) => {
      const addresses = await resolve(NAME, AbortSignal.timeout(5_000));
      assert.deepEqual(addresses.sort(), expected);
    });
    // The resolver has tried no search domain.
    assert.deepEqual(requested, [NAME]);
  });
}

for (const host of ["localhost", "app.localhost"]) {
  Deno.test(`resolveLocalName() ${host} is loopback`, async () => {
    const addresses = await resolveLocalName(host, AbortSignal.timeout(1_000));
    assert.deepEqual(addresses, ["127.0.0.1", "::1"]);
  });
}
