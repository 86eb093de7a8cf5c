/**
 * The local server with clients that stall in the head of a request, in its body or before it, or
 * leave, also with many of them, while it serves another client.
 */

import assert from "node:assert/strict";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import type { ConnectionInfo, ConnectionLimits } from "../../apps/server/local/http_connections.ts";
import { type LocalServer, openLocalServer } from "../../apps/server/local/local_server.ts";
import { ApiError } from "../../shared/core/errors.ts";
import { readRaw } from "../../shared/http/request_body.ts";

const LIMITS: ConnectionLimits = { head_ms: 400, idle_ms: 800, connections: 50 };
/** On a busy machine a timeout may be exceeded by this time. */
const SLACK_MS = 3_000;
const PATH = "/functions/v1/api-v1-payments/health";
const GET = `GET ${PATH} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
const POST = `POST ${PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`;
/** Characters of a response that no buffer of a socket holds. */
const LARGE = 16 * 1024 * 1024;
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
  const response = async (request: Request, info?: ConnectionInfo) => {
    if (request.url.endsWith("/held")) {
      if (++under_way === 2) two.resolve();
      await held.promise;
    }
    if (request.url.endsWith("/large")) return new Response("x".repeat(LARGE));
    if (request.url.endsWith("/lost")) {
      await new Promise((resolve) => request.signal.addEventListener("abort", resolve));
      info!.loseConnection();
    }
    try {
      if (request.method === "POST") await readRaw(request, 65_536, { deadline_ms: BODY_MS });
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

Deno.test("openLocalServer() returns the address of the functions for a wrong path", () =>
  withServer(LIMITS, async (server) => {
    const payments = "/api-v1-payments/v1/payments";
    for (
      const [path, meant] of [
        ["/functions/v1", payments],
        ["/functions/v1/", payments],
        ["/v1/payments", payments],
        ["/api-v1-payments/v1/payments", payments],
        ["/api-v1-sandbox/reset", "/api-v1-sandbox/payments"],
      ]
    ) {
      const response = await fetch(`http://127.0.0.1:${server.port}${path}`);
      const { error } = await response.json();
      assert.deepEqual([response.status, error.code], [404, "not_found"]);
      assert.equal(error.message.split(": use ")[1], server.base_url + meant);
    }
  }));

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

const SLOW_BODY = /^HTTP\/1\.1 400 [^]*took longer than 0\.6 s/;
/** [client, text, repeated piece, the time after which its connection is closed, response] */
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
    SLOW_BODY,
  ],
  ["with a slow body", `${POST}Content-Length: 60000\r\n\r\n{"a":"`, "a", BODY_MS, SLOW_BODY],
  [
    "with slow chunks",
    `${POST}Transfer-Encoding: chunked\r\n\r\n`,
    "1\r\na\r\n",
    BODY_MS,
    SLOW_BODY,
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

/** Connects and resets, so often that a pause of 50 ms for each would take ten seconds. */
const RESETS = `import { connect } from "node:net";
for (let n = 0; n < 200; n++) {
  await new Promise((ended) => {
    const socket = connect(Number(Deno.args[0]), "127.0.0.1", () => socket.resetAndDestroy());
    socket.on("error", () => {}).on("close", ended);
  });
}`;

Deno.test("openLocalServer() does not wait for clients that have left before the accept", () =>
  withServer({ ...LIMITS, idle_ms: 60_000 }, async (server) => {
    const other = await connect(server, GET);
    await other.responded;
    // Blocks the server meanwhile, so that all connections wait for their accept.
    const resets = new Deno.Command(Deno.execPath(), {
      args: ["eval", RESETS, String(server.port)],
    }).outputSync();
    assert.ok(resets.success, new TextDecoder().decode(resets.stderr));
    assert.ok(await served(server) < SLACK_MS);
    await other.write(GET.replace("Host", "Connection: close\r\nHost"));
    assert.equal((await other.closed).said.match(/HTTP\/1\.1 200/g)!.length, 2);
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

Deno.test("openLocalServer() stops at once beside stalled clients", () =>
  withServer({ ...LIMITS, head_ms: 60_000, idle_ms: 60_000 }, async (server) => {
    const texts = ["", "GET /", GET];
    const clients = await Promise.all(texts.map((text) => connect(server, text)));
    await clients[2]!.responded;
    const began = performance.now();
    await server.stop(20_000);
    assert.ok(performance.now() - began < 5_000);
    await Promise.all(clients.map(({ closed }) => closed));
  }));

Deno.test("openLocalServer() stops after a request whose body is still arriving", () =>
  withServer(LIMITS, async (server) => {
    const path = "/functions/v1/api-v1-payments/body";
    const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n`;
    const client = await connect(server, `${head}{ `);
    await new Promise((resolve) => setTimeout(resolve, BODY_MS / 6));
    const stopped = server.stop(20_000);
    await new Promise((resolve) => setTimeout(resolve, BODY_MS / 6));
    await client.write(" }");
    assert.match((await client.closed).said, /^HTTP\/1\.1 200 /);
    await stopped;
  }));

/** Requests over HTTP/2 without TLS. A session that the server has closed gives null. */
async function getOverHttp2(session: ClientHttp2Session, path: string): Promise<number | null> {
  const stream = session.request({ ":path": path });
  stream.resume();
  return await new Promise<number | null>((resolve) => {
    stream.on("response", (headers) => resolve(Number(headers[":status"])));
    stream.on("error", () => resolve(null)).on("close", () => resolve(null));
  });
}

function openHttp2(server: LocalServer): ClientHttp2Session {
  return connectHttp2(`http://127.0.0.1:${server.port}`).on("error", () => {});
}

Deno.test("openLocalServer() closes the connection of a client that does not read", () =>
  withServer(LIMITS, async (server) => {
    const client = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
    await client.write(new TextEncoder().encode(GET.replace("/health", "/large")));
    await new Promise((resolve) => setTimeout(resolve, LIMITS.idle_ms * 1.5));
    let received = 0;
    try {
      for await (const part of client.readable) received += part.length;
    } catch {
      // A reset closes the connection as well.
    }
    assert.ok(received < LARGE, `${received} bytes`);
  }));

Deno.test("openLocalServer() closes an HTTP/2 connection with two requests at a time", () =>
  withServer(LIMITS, async (server, held) => {
    const session = openHttp2(server);
    assert.equal(await getOverHttp2(session, PATH), 200);
    const both = [1, 2].map(() => getOverHttp2(session, PATH.replace("/health", "/held")));
    const responses = Promise.all(both);
    assert.deepEqual(await Promise.race([responses, held.two]), [null, null]);
    session.destroy();
    await served(server);
  }));

Deno.test("openLocalServer() closes an HTTP/2 connection without a request", () =>
  withServer(LIMITS, async (server) => {
    const session = openHttp2(server);
    await new Promise((resolve) => session.on("close", resolve));
    await served(server);
  }));

/** The bytes of `GET` over HTTP/2: the preface, empty settings, and the head of stream 1. */
const GET_OVER_HTTP2 = (() => {
  const text = (value: string) => [value.length, ...new TextEncoder().encode(value)];
  // Indexed `:method: GET` and `:scheme: http`, then `:path` and `:authority` as text (RFC 7541).
  const head = [0x82, 0x86, 0x04, ...text(PATH), 0x01, ...text("localhost")];
  return new Uint8Array([
    ...new TextEncoder().encode("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ...[0, 0, 0, 4, 0, 0, 0, 0, 0],
    ...[0, 0, head.length, 1, 5, 0, 0, 0, 1, ...head],
  ]);
})();

function getAndLeave(request: Uint8Array): Client {
  return async (server) => {
    const client = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
    await client.write(request);
    await client.read(new Uint8Array(1_024)).catch(() => {});
    client.close();
  };
}

/** Fewer connections than clients. */
const AT_LIMIT: ConnectionLimits = { ...LIMITS, connections: 128 };

/**
 * Clients that leave while the server closes their connections. An error that nothing catches fails
 * the test, as it would end the process.
 */
const LEAVING: [name: string, limits: ConnectionLimits, clients: number, client: Client][] = [
  ["after a response", AT_LIMIT, 300, getAndLeave(new TextEncoder().encode(GET))],
  ["after a response over HTTP/2", AT_LIMIT, 300, getAndLeave(GET_OVER_HTTP2)],
  ["when their time is over", { ...LIMITS, head_ms: 20 }, 40, async (server) => {
    const client = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
    await new Promise((resolve) => setTimeout(resolve, 15 + 10 * Math.random()));
    client.close();
  }],
  ["before the connection is lost", LIMITS, 1, async (server) => {
    const session = openHttp2(server);
    const lost = getOverHttp2(session, PATH.replace("/health", "/lost"));
    await new Promise((resolve) => setTimeout(resolve, 50));
    session.destroy();
    await lost;
  }],
];
type Client = (server: LocalServer) => Promise<void>;

for (const [name, limits, clients, client] of LEAVING) {
  Deno.test(`openLocalServer() outlives clients that leave ${name}`, () =>
    withServer(limits, async (server) => {
      const until = performance.now() + 1_000;
      await Promise.all(Array.from({ length: clients }, async () => {
        while (performance.now() < until) await client(server).catch(() => {});
      }));
      await served(server);
    }));
}
