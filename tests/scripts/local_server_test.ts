/**
 * The local server with clients that stall in the head of a request, in its body or before it, also
 * with many of them, while it serves another client.
 */

import assert from "node:assert/strict";
import type { ConnectionLimits } from "../../scripts/local/http_connections.ts";
import { type LocalServer, openLocalServer } from "../../scripts/local/local_server.ts";
import { ApiError } from "../../shared/core/errors.ts";
import { readBody } from "../../shared/http/request_body.ts";

const LIMITS: ConnectionLimits = { head_ms: 400, idle_ms: 800, connections: 50 };
/** On a busy machine a timeout may be exceeded by this time. */
const SLACK_MS = 3_000;
const PATH = "/functions/v1/api-v1-payments/health";
const GET = `GET ${PATH} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
const POST = `POST ${PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`;
/** The time that the functions of this test wait for a body. */
const BODY_MS = 600;

/** Requests whose responses the test holds. */
interface Held {
  /** Settles when two requests are in progress. */
  two: Promise<void>;
  respond(): void;
}

/** Runs a test with a server whose functions read the body and respond. */
async function withServer(
  limits: ConnectionLimits,
  test: (server: LocalServer, held: Held) => Promise<void>,
): Promise<void> {
  const held = Promise.withResolvers<void>();
  const two = Promise.withResolvers<void>();
  let under_way = 0;
  const response = async (request: Request) => {
    if (request.url.endsWith("/held")) {
      if (++under_way === 2) two.resolve();
      await held.promise;
    }
    try {
      if (request.method === "POST") await readBody(request, BODY_MS);
      return new Response("ok");
    } catch (error) {
      assert.ok(error instanceof ApiError);
      return new Response(error.message, { status: error.status });
    }
  };
  const server = await openLocalServer(0, { limits });
  server.serve({ "api-v1-payments": response, "api-v1-sandbox": response });
  try {
    await test(server, { two: two.promise, respond: () => held.resolve() });
  } finally {
    held.resolve();
    await server.stop(1_000);
  }
}

/** A socket to the server, and the text that it has received before it closes. */
async function connect(server: LocalServer, text = "") {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
  const began = performance.now();
  const write = (more: string) => connection.write(new TextEncoder().encode(more));
  if (text !== "") await write(text);
  let said = "";
  const first = Promise.withResolvers<void>();
  const closed = (async () => {
    const buffer = new Uint8Array(4_096);
    try {
      for (let n = await connection.read(buffer); n !== null; n = await connection.read(buffer)) {
        said += new TextDecoder().decode(buffer.subarray(0, n));
        first.resolve();
      }
    } catch {
      // A reset closes the connection as well.
    }
    first.resolve();
    connection.close();
    return { after_ms: performance.now() - began, said };
  })();
  return { write, responded: first.promise, closed };
}

/** Writes a piece repeatedly until the socket is closed. */
async function trickle(
  { write, closed }: Awaited<ReturnType<typeof connect>>,
  piece: string,
): Promise<void> {
  let is_open = true;
  closed.then(() => is_open = false);
  while (is_open) {
    await write(piece).catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function served(server: LocalServer): Promise<number> {
  const began = performance.now();
  const response = await fetch(`${server.base_url}/api-v1-payments/health`);
  assert.equal(await response.text(), "ok");
  return performance.now() - began;
}

Deno.test("openLocalServer() returns the address of the functions for a wrong path", async () => {
  await withServer(LIMITS, async (server) => {
    for (
      const [path, meant] of [
        ["/functions/v1", "/api-v1-payments/v1/payments"],
        ["/functions/v1/", "/api-v1-payments/v1/payments"],
        ["/v1/payments", "/api-v1-payments/v1/payments"],
        ["/api-v1-payments/v1/payments", "/api-v1-payments/v1/payments"],
        ["/api-v1-sandbox/reset", "/api-v1-sandbox/payments"],
      ]
    ) {
      const response = await fetch(`http://127.0.0.1:${server.port}${path}`);
      const { error } = await response.json();
      assert.deepEqual([response.status, error.code], [404, "not_found"]);
      assert.equal(error.message.split(": use ")[1], server.base_url + meant);
    }
  });
});

Deno.test("openLocalServer() returns 400 for a malformed Host header on every path", async () => {
  await withServer(LIMITS, async (server) => {
    for (const path of ["/", "/console", "/nothing", PATH]) {
      for (const host of ["[::", "a b", "a:99999", "%"]) {
        const request = `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
        const { said } = await (await connect(server, request)).closed;
        assert.match(said, /^HTTP\/1\.1 400 /, `${path} ${host}: ${said}`);
      }
    }
  });
});

/**
 * [client, its text, its repeated piece, the time after which its connection must be closed, the
 * response]
 */
const STALLS: [name: string, text: string, piece: string, limit_ms: number, said: RegExp][] = [
  ["that sends nothing", "", "", LIMITS.head_ms, /^$/],
  ["that stops in the first line", "GET /func", "", LIMITS.head_ms, /^$/],
  ["that stops in the head", GET.slice(0, -2), "", LIMITS.head_ms, /^$/],
  ["with a slow head", GET.slice(0, -2), "a: b\r\n", LIMITS.head_ms, /^$/],
  [
    "that stops in the body",
    `${POST}Content-Length: 100\r\n\r\n{"a":`,
    "",
    BODY_MS,
    /^HTTP\/1\.1 400 [^]*took longer than 0\.6 s/,
  ],
  [
    "with a slow body",
    `${POST}Content-Length: 60000\r\n\r\n{"a":"`,
    "a",
    BODY_MS,
    /^HTTP\/1\.1 400 [^]*took longer than 0\.6 s/,
  ],
  [
    "with slow chunks",
    `${POST}Transfer-Encoding: chunked\r\n\r\n`,
    "1\r\na\r\n",
    BODY_MS,
    /^HTTP\/1\.1 400 [^]*took longer than 0\.6 s/,
  ],
  ["that is idle after a response", GET, "", LIMITS.idle_ms, /^HTTP\/1\.1 200 /],
  ["that stops in its second head", GET + GET.slice(0, 20), "", LIMITS.idle_ms, /^HTTP\/1\.1 200 /],
];

for (const [name, text, piece, limit_ms, said] of STALLS) {
  Deno.test(`openLocalServer() closes the connection of a client ${name}`, () =>
    withServer(LIMITS, async (server) => {
      const client = await connect(server, text);
      const trickling = piece === "" ? Promise.resolve() : trickle(client, piece);
      assert.ok(await served(server) < SLACK_MS, "another client is served");
      const end = await client.closed;
      await trickling;
      assert.match(end.said, said);
      assert.ok(end.after_ms >= limit_ms * 0.9, `${end.after_ms} ms`);
      assert.ok(end.after_ms < limit_ms + LIMITS.idle_ms + SLACK_MS, `${end.after_ms} ms`);
    }));
}

Deno.test("openLocalServer() serves another client beside 1 000 idle ones", () =>
  withServer({ head_ms: 60_000, idle_ms: 60_000, connections: 500 }, async (server) => {
    const idle = [];
    for (let i = 0; i < 1_000; i++) idle.push(await connect(server));
    assert.ok(await served(server) < SLACK_MS);
    // The server has closed the oldest connection.
    await Promise.all(idle.slice(0, 500).map(({ closed }) => closed));
    const still_open = idle.slice(501).map(({ closed }) => closed.then(() => "closed"));
    assert.equal(
      await Promise.race([...still_open, served(server).then(() => "served")]),
      "served",
    );
  }));

Deno.test("openLocalServer() keeps connections with a request in progress", () =>
  withServer({ ...LIMITS, connections: 2 }, async (server, held) => {
    const text = GET.replace("/health", "/held");
    const clients = [await connect(server, text), await connect(server, text)];
    await held.two;
    const refused = await connect(server, GET);
    assert.equal((await refused.closed).said, "");
    // Longer than every timeout, while the test holds the response.
    await new Promise((resolve) => setTimeout(resolve, LIMITS.idle_ms * 1.5));
    held.respond();
    for (const { closed } of clients) assert.match((await closed).said, /^HTTP\/1\.1 200 /);
  }));

Deno.test("openLocalServer() keeps a connection that is in use", () =>
  withServer({ ...LIMITS, idle_ms: 2_000 }, async (server) => {
    const client = await connect(server, GET);
    await client.responded;
    for (let i = 0; i < 5; i++) {
      await new Promise((resolve) => setTimeout(resolve, 500));
      await client.write(GET);
    }
    const { said } = await client.closed;
    assert.equal(said.split("HTTP/1.1 200 ").length - 1, 6);
  }));

Deno.test("openLocalServer() stops at once beside stalled clients", async () => {
  const server = await openLocalServer(0, {
    limits: { ...LIMITS, head_ms: 60_000, idle_ms: 60_000 },
  });
  server.serve({
    "api-v1-payments": () => new Response("ok"),
    "api-v1-sandbox": () => new Response("ok"),
  });
  const clients = [
    await connect(server),
    await connect(server, "GET /"),
    await connect(server, GET),
  ];
  await clients[2]!.responded;
  const began = performance.now();
  await server.stop(20_000);
  assert.ok(performance.now() - began < 5_000);
  await Promise.all(clients.map(({ closed }) => closed));
});
