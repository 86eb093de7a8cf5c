/**
 * Name resolution with a name server on loopback, which records every name that is queried.
 */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { publicNameResolver, resolveLocalName } from "../../shared/delivery/address_resolver.ts";
import { sendWebhook } from "../../shared/delivery/webhook_sender.ts";

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
const CASES: [name: string, records: Zone[string], expected: string[]][] = [
  ["both kinds", { A: ["93.184.216.34", "10.0.0.1"], AAAA: ["2606:4700:0:0:0:0:0:1"] }, [
    "10.0.0.1",
    "2606:4700::1",
    "93.184.216.34",
  ]],
  ["A alone while AAAA fails", { A: ["93.184.216.34"] }, ["93.184.216.34"]],
  ["an IPv4-mapped address as it is", { A: [], AAAA: ["0:0:0:0:0:ffff:7f00:1"] }, [
    "::ffff:127.0.0.1",
  ]],
];
for (const [name, records, expected] of CASES) {
  Deno.test(`publicNameResolver() ${name}`, async () => {
    const requested = await withNameServer({ [NAME]: records }, async (resolve) => {
      const addresses = await resolve(NAME, AbortSignal.timeout(5_000));
      assert.deepEqual(addresses.sort(), expected);
    });
    // The resolver has tried no search domain.
    assert.deepEqual(requested, [NAME]);
  });
}

Deno.test("sendWebhook() refuses a name whose addresses contain a private one", async () => {
  const zone = { [NAME]: { A: ["93.184.216.34", "127.0.0.1"], AAAA: [] } };
  await withNameServer(zone, async (resolve) => {
    const result = await sendWebhook({
      url: `https://${NAME}/`,
      headers: {},
      body: "{}",
      allow_private: false,
      resolve,
      seam: { dial: (address) => assert.fail(`dialled ${address}`) },
    });
    assert.deepEqual(result, { outcome: "connection_failed", duration_ms: 0 });
  });
});

for (const host of ["localhost", "app.localhost"]) {
  Deno.test(`resolveLocalName() ${host} is loopback`, async () => {
    const addresses = await resolveLocalName(host, AbortSignal.timeout(1_000));
    assert.deepEqual(addresses, ["127.0.0.1", "::1"]);
  });
}
