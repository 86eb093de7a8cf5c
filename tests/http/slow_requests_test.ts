/**
 * Clients that hold as many connections as the local server has, each with a request that does not
 * end: the places of their network or account are the bound, and others are served meanwhile.
 */

import assert from "node:assert/strict";
import { CONNECTION_LIMITS } from "../../apps/server/local/http_connections.ts";
import { PLACE_BOUNDS } from "../../shared/jobs/places.ts";
import { until } from "../support/common/until.ts";
import { NeedsInternals } from "../support/service/needs_internals.ts";
import { IS_REMOTE } from "../support/service/product.ts";
import { type ServedService, withServedService } from "../support/service/served_service.ts";
import { addInbox } from "../support/webhook/inbox_reader.ts";

const V1 = "/functions/v1/api-v1-payments/v1";
/** Requests of others, each on a connection of its own. */
const OTHERS = 20;

/** Sends the beginning of a request on a new connection, which it leaves open. */
async function begin(base_url: string, head: string): Promise<Deno.TcpConn> {
  const { hostname, port } = new URL(base_url);
  const connection = await Deno.connect({ hostname, port: Number(port) });
  await connection.write(new TextEncoder().encode(`${head}\r\nHost: x\r\n`));
  return connection;
}

/** The rest of a head whose body does not arrive. */
const NO_BODY = "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{";

interface Row {
  name: string;
  /** Makes the head and the rest of each request. */
  prepare(served: ServedService): Promise<(i: number) => [head: string, rest: string]>;
  /** Whether all requests that get a place have it. */
  holds(served: ServedService): number;
  most: number;
}

const { keyless, sandboxes, long_waits } = PLACE_BOUNDS;

const ROWS: Row[] = [
  {
    name: "notifications with one byte of the body",
    prepare: () =>
      Promise.resolve(
        () => [`POST ${V1.slice(0, -3)}/providers/pac_1/notifications HTTP/1.1`, NO_BODY],
      ),
    holds: () => 0,
    most: keyless.of_owner,
  },
  {
    name: "challenges with one byte of the body",
    prepare: () =>
      Promise.resolve(() => ["POST /functions/v1/api-v1-sandbox/challenges/x HTTP/1.1", NO_BODY]),
    holds: ({ service }) => runningIn(service.deps.places.keyless),
    most: keyless.of_owner,
  },
  {
    name: "creates of one key with one byte of the body",
    prepare: ({ service }) =>
      Promise.resolve(() => [
        `POST ${V1}/payments HTTP/1.1\r\nAuthorization: Bearer ${service.key.text}`,
        NO_BODY,
      ]),
    holds: ({ service }) => runningIn(service.deps.places.sandboxes),
    most: sandboxes.of_owner,
  },
  {
    name: "reads of inboxes of two accounts",
    async prepare({ service }) {
      const inboxes = await Promise.all([service.key, service.live].map(async ({ text }) => {
        const { id } = await addInbox(service, {}, { key: text });
        return `GET ${V1}/webhook_endpoints/${id}/inbox?wait=20 HTTP/1.1\r\nAuthorization: Bearer ${text}`;
      }));
      return (i) => [inboxes[i % 2]!, "\r\n"];
    },
    holds: ({ service }) => runningIn(service.deps.places.long_waits),
    most: long_waits.in_all - long_waits.reserved.slots,
  },
];

function runningIn(
  queue: { owner_queues: Iterable<{ levels: readonly { running: number }[] }> },
): number {
  return [...queue.owner_queues].reduce((sum, { levels }) => sum + levels.at(-1)!.running, 0);
}

for (const { name, prepare, holds, most } of ROWS) {
  Deno.test(`${name} on every connection leave others theirs`, async () => {
    if (IS_REMOTE) throw new NeedsInternals("the connections of the local server");
    await withServedService(async (served) => {
      const { service, base_url } = served;
      await service.pay({}, { key: service.other.text });
      const request = await prepare(served);
      const connections: Deno.TcpConn[] = [];
      for (let i = 0; i < CONNECTION_LIMITS.connections + 76; i++) {
        const [head, rest] = request(i);
        const connection = await begin(base_url, head);
        await connection.write(new TextEncoder().encode(rest));
        connections.push(connection);
      }
      try {
        const held = holds(served);
        assert.ok(held <= most, `${held} are held`);
        const statuses = [];
        for (let i = 0; i < OTHERS; i++) {
          const one = await begin(base_url, `GET ${V1}/balance HTTP/1.1`);
          const rest = `Authorization: Bearer ${service.other.text}\r\nConnection: close\r\n\r\n`;
          await one.write(new TextEncoder().encode(rest));
          const text = await new Response(one.readable).text().catch(() => "cut");
          statuses.push(text.slice(9, 12));
        }
        assert.deepEqual(statuses, Array(OTHERS).fill("200"));
      } finally {
        for (const connection of connections) connection.close();
      }
      await until("all places are free", () => holds(served) === 0);
    });
  });
}
