/** The client with a real HTTP server that misbehaves: retries, timeouts, errors, aborts. */

import assert from "node:assert/strict";
import {
  ApiError,
  ConnectionError,
  type Exchange,
  PaymentsClient,
  PaymentsError,
  TimeoutError,
  UnexpectedResponseError,
  verifyWebhook,
} from "../../packages/client/mod.ts";
import { type EnvironmentHolder, readVariable } from "../../packages/client/environment.ts";
import { userAgentHeader, VERSION } from "../../packages/client/user_agent.ts";
import { API_KEY, error, json, withServer } from "../support/client/scripted_server.ts";

const PAYMENT = { id: "pay_1", object: "payment", status: "completed" };
const INPUT = { amount: 1000, currency: "EUR" };
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
/** Longer than a request takes to arrive, also on a busy machine. */
const TIMEOUT_MS = 500;

/** The error with which a promise rejects. */
async function failure(promise: PromiseLike<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  assert.fail("it did not fail");
}

/** Never responds. The client has to close the connection. */
function silence(): Promise<Response> {
  return new Promise(() => {});
}

Deno.test("create() sends key, type, body and a new idempotency key", () =>
  withServer([json(201, PAYMENT)], async ({ client, requested }) => {
    assert.deepEqual(await client.payments.create(INPUT), PAYMENT);
    await client.payments.create(INPUT);
    await client.payments.create(INPUT, { idempotencyKey: "order-1" });
    const [first, second, third] = requested;
    assert.equal(first!.path, "/functions/v1/api-v1-payments/v1/payments");
    assert.equal(first!.headers.get("Authorization"), `Bearer ${API_KEY}`);
    assert.equal(first!.headers.get("Content-Type"), "application/json");
    assert.equal(first!.body, JSON.stringify(INPUT));
    const keys = [first, second].map((requested) => requested!.headers.get("Idempotency-Key")!);
    for (const key of keys) assert.match(key, UUID);
    assert.notEqual(keys[0], keys[1]);
    assert.equal(third!.headers.get("Idempotency-Key"), "order-1");
  }));

Deno.test("create() retries with the same body and key after 5xx", () =>
  withServer(
    [error(500, "internal_error"), error(503, "service_unavailable"), json(201, PAYMENT)],
    async ({ client, requested, waits }) => {
      assert.deepEqual(await client.payments.create(INPUT), PAYMENT);
      assert.equal(requested.length, 3);
      assert.equal(new Set(requested.map(({ headers }) => headers.get("Idempotency-Key"))).size, 1);
      assert.deepEqual(requested.map(({ body }) => body), Array(3).fill(JSON.stringify(INPUT)));
      assert.deepEqual(waits, [375, 750]);
    },
  ));

/** The requests that calls send. All but GET have an idempotency key; an id is one segment. */
const CALLS: Record<string, (client: PaymentsClient) => unknown> = {
  "DELETE payments/v1/webhook_endpoints/whe_1 ": (client) =>
    client.webhookEndpoints.delete("whe_1"),
  "POST payments/v1/payments/pay_1/capture {}": (client) => client.payments.capture("pay_1"),
  "GET payments/v1/payments/..%2Frefunds%2Fre_1%3Fx%23y ": (client) =>
    client.payments.retrieve("../refunds/re_1?x#y"),
};
for (const [sent, call] of Object.entries(CALLS)) {
  Deno.test(`the client sends ${sent}`, () =>
    withServer([json(200, {})], async ({ client, requested }) => {
      await call(client);
      const { method, path, body, headers } = requested[0]!;
      assert.equal(`${method} ${path.replace("/functions/v1/api-v1-", "")} ${body}`, sent);
      assert.equal(headers.has("Idempotency-Key"), method !== "GET");
    }));
}

Deno.test("create() throws the last error and the key after maxRetries", () =>
  withServer([error(429, "rate_limited"), error(500, "internal_error")], async (server) => {
    const { client, requested } = server;
    const thrown = await failure(client.payments.create(INPUT));
    assert.ok(thrown instanceof ApiError && thrown.is("internal_error"));
    assert.deepEqual([thrown.attempts, requested.length], [3, 3]);
    assert.equal(thrown.idempotencyKey, requested[0]!.headers.get("Idempotency-Key"));
    assert.equal(thrown.operation, "POST /api-v1-payments/v1/payments");
    assert.equal(thrown.requestId, "req_1");
    assert.equal(thrown.message, "It is internal_error");
    await failure(client.payments.create(INPUT, { maxRetries: 0 }));
    assert.equal(requested.length, 4);
  }));

const page = (text: string | null, init: ResponseInit) => () => new Response(text, init);
const refused = (status: number, code: string, after: string) =>
  error(status, code, { "Retry-After": after });

/** Responses, the waits of the client between its attempts, and the error, with its members. */
const ENDS: [
  responses: string,
  steps: Parameters<typeof withServer>[0],
  waits: number[],
  thrown?: [type: typeof ApiError | typeof UnexpectedResponseError, members: object],
][] = [
  ["a duplicate", [refused(409, "idempotency_in_progress", "1"), json(201, PAYMENT)], [1_250]],
  [
    "a Retry-After that is a date",
    [refused(503, "service_unavailable", "Fri, 20 Nov 2026 12:00:05 GMT"), json(201, PAYMENT)],
    [5_250],
  ],
  [
    "a Retry-After beyond a minute",
    [refused(503, "service_unavailable", "3600")],
    [],
    [ApiError, { status: 503, retryAfterMs: 3_600_000 }],
  ],
  [
    "a proxy's page",
    [page("<h1>Bad gateway</h1>", { status: 502 })],
    [375, 750],
    [UnexpectedResponseError, { status: 502, body: "<h1>Bad gateway</h1>" }],
  ],
  ["a page with 200", [page("<h1>It works</h1>", {})], [], [UnexpectedResponseError, {}]],
  [
    "a redirect",
    [page(null, { status: 301, headers: { Location: "/canary" } })],
    [],
    [UnexpectedResponseError, { message: /redirect/ }],
  ],
  ...[400, 401, 402, 403, 404, 409, 415].map((status): typeof ENDS[number] => [
    `${status}`,
    [error(status, "invalid_parameter")],
    [],
    [ApiError, { status }],
  ]),
];
for (const [responses, steps, waits, thrown] of ENDS) {
  const attempts = waits.length + 1;
  Deno.test(`create() after ${responses}: ${attempts} of 3 attempts`, () =>
    withServer(steps, async ({ client, requested, waits: waited }) => {
      const call = client.payments.create(INPUT);
      if (thrown === undefined) assert.deepEqual(await call, PAYMENT);
      else {
        const error = await failure(call);
        assert.ok(error instanceof thrown[0] && error instanceof PaymentsError);
        await assert.rejects(Promise.reject(error), { attempts, ...thrown[1] });
      }
      assert.deepEqual([waited, requested.length], [waits, attempts]);
    }));
}

Deno.test("create() retries a broken response, then throws ConnectionError", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  let connections = 0;
  const serving = (async () => {
    for await (const connection of listener) {
      connections++;
      await connection.read(new Uint8Array(4096));
      const head = "HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{";
      await connection.write(new TextEncoder().encode(head));
      connection.close();
    }
  })();
  const client = new PaymentsClient({
    apiKey: API_KEY,
    baseUrl: `http://127.0.0.1:${(listener.addr as Deno.NetAddr).port}`,
    runtime: { sleep: () => Promise.resolve() },
  });
  const thrown = await failure(client.payments.create(INPUT));
  listener.close();
  await serving;
  assert.ok(thrown instanceof ConnectionError);
  assert.ok(thrown.cause instanceof Error);
  assert.match(thrown.idempotencyKey!, UUID);
  assert.deepEqual([thrown.attempts, connections], [3, 3]);
  const refused = await failure(client.payments.retrieve("pay_1"));
  assert.ok(refused instanceof ConnectionError && refused.attempts === 3);
});

Deno.test("create() retries after a timeout, then throws TimeoutError", () =>
  withServer([silence], async ({ client, requested }) => {
    const thrown = await failure(client.payments.create(INPUT, { maxRetries: 1 }));
    assert.ok(thrown instanceof TimeoutError);
    assert.deepEqual([thrown.timeoutMs, thrown.attempts, requested.length], [TIMEOUT_MS, 2, 2]);
  }, { timeoutMs: TIMEOUT_MS }));

Deno.test("create() throws TimeoutError for a response that never ends", () =>
  withServer([
    () => new Response(new ReadableStream({ start: (c) => c.enqueue(new Uint8Array(1)) })),
  ], async ({ client }) => {
    const options = { maxRetries: 0, timeoutMs: TIMEOUT_MS };
    assert.ok(await failure(client.payments.retrieve("pay_1", options)) instanceof TimeoutError);
  }));

Deno.test("create() with an aborted signal sends nothing", () =>
  withServer([json(200, PAYMENT)], async ({ client, requested }) => {
    const signal = AbortSignal.abort("stop");
    assert.equal(await failure(client.payments.retrieve("pay_1", { signal })), "stop");
    assert.equal(requested.length, 0);
  }));

Deno.test("an abort ends a request in progress with its reason and without a retry", async () => {
  const controller = new AbortController();
  const reason = new Error("the user has left");
  const abort = () => {
    controller.abort(reason);
    return silence();
  };
  await withServer([abort], async ({ client, requested }) => {
    const { signal } = controller;
    assert.equal(await failure(client.payments.create(INPUT, { signal, maxRetries: 0 })), reason);
    assert.equal(requested.length, 1);
  });
});

Deno.test("an abort ends a wait between attempts", async () => {
  const controller = new AbortController();
  const exchanges: Exchange[] = [];
  await withServer([error(503, "service_unavailable", { "Retry-After": "60" })], async (server) => {
    const started = performance.now();
    const { signal } = controller;
    assert.equal(await failure(server.client.payments.create(INPUT, { signal })), "stop");
    assert.ok(performance.now() - started < 5_000);
    assert.equal(exchanges.length, 1);
  }, {
    runtime: {},
    onExchange(exchange) {
      exchanges.push(exchange);
      setTimeout(() => controller.abort("stop"), 10);
    },
  });
});

Deno.test("sandboxFault fails the first attempt only", () =>
  withServer([error(500, "internal_error"), json(201, PAYMENT)], async ({ client, requested }) => {
    await client.payments.create(INPUT, { sandboxFault: "server_error_after" });
    await client.payments.retrieve("pay_1", { sandboxFault: { delay_ms: 50 } });
    assert.deepEqual(
      requested.map(({ headers }) => headers.get("Sandbox-Fault")),
      ["server_error_after", null, "delay; delay_ms=50"],
    );
  }));

/** Calls with an option that does not exist, which send nothing. */
const UNKNOWN_OPTIONS: [name: string, call: (client: PaymentsClient) => unknown][] = [
  ["idempotency_key", (client) => client.payments.create(INPUT, other({ idempotency_key: "1" }))],
  ["IdempotencyKey", (client) => client.transfers.cancel("tr_1", other({ IdempotencyKey: "1" }))],
  ["timeout", (client) => client.payments.retrieve("pay_1", other({ timeout: 1 }))],
  ["idempotencyKey", (client) => client.payments.list({}, other({ idempotencyKey: "1" }))],
  ["idempotencyKey", (client) => client.balance.retrieve(other({ idempotencyKey: "1" }))],
  ["retries", (client) => client.webhookEndpoints.inbox("whe_1", {}, other({ retries: 1 }))],
  ["limit", (client) => client.payments.list().toArray({ max: 1, ...other({ limit: 1 }) })],
  ["ms", (one) => one.balance.retrieve({ sandboxFault: { delay_ms: 1, ...other({ ms: 1 }) } })],
  ["strict", () => new PaymentsClient(other({ strict: true }))],
  ["api_key", () => new PaymentsClient(other({ api_key: "sk_test_1" }))],
  [
    "wait",
    () =>
      new PaymentsClient({
        apiKey: API_KEY,
        baseUrl: "https://api.example",
        runtime: other({ wait: 1 }),
      }),
  ],
  ["tolerance", () => verifyWebhook("{}", "t=1,v1=", "whsec_1", other({ tolerance: 1 }))],
];
for (const [name, call] of UNKNOWN_OPTIONS) {
  Deno.test(`an option "${name}" that does not exist is a TypeError: ${call}`, () =>
    withServer([json(201, PAYMENT)], async ({ client, requested }) => {
      // deno-lint-ignore require-await -- some calls throw at once, others reject
      const error = await failure((async () => call(client))());
      assert.ok(error instanceof TypeError, String(error));
      assert.ok(error.message.startsWith(`"${name}" is not an option: there are `), error.message);
      assert.equal(requested.length, 0);
    }));
}

/** Options that the types refuse. */
function other(options: Record<string, unknown>): Record<string, never> {
  return options as Record<string, never>;
}

Deno.test("onExchange gets each attempt, without the key", async () => {
  const exchanges: Exchange[] = [];
  await withServer([error(500, "internal_error"), json(201, PAYMENT)], async (server) => {
    await server.client.payments.create(INPUT);
    assert.deepEqual(exchanges.map(({ attempt }) => attempt), [1, 2]);
    const { request, response, duration_ms } = exchanges[1]!;
    assert.equal(request.method, "POST");
    assert.equal(request.url, `${server.base_url}/api-v1-payments/v1/payments`);
    assert.equal(request.body, JSON.stringify(INPUT));
    assert.equal(request.headers.Authorization, "Bearer sk_test_…");
    assert.equal(
      request.headers["Idempotency-Key"],
      server.requested[0]!.headers.get("Idempotency-Key"),
    );
    assert.equal(response!.status, 201);
    assert.equal(response!.headers["content-type"], "application/json");
    assert.equal(response!.body, JSON.stringify(PAYMENT));
    assert.ok(duration_ms > 0);
    assert.ok(!JSON.stringify(exchanges).includes(API_KEY));
  }, { onExchange: (exchange) => exchanges.push(exchange) });
});

Deno.test("onExchange gets the error when there is no response", async () => {
  const exchanges: Exchange[] = [];
  await withServer([silence], async ({ client }) => {
    await failure(client.payments.retrieve("pay_1", { maxRetries: 0, timeoutMs: TIMEOUT_MS }));
    assert.equal(exchanges[0]!.response, null);
    assert.ok(exchanges[0]!.error);
  }, { onExchange: (exchange) => exchanges.push(exchange) });
});

Deno.test("onExchange may throw without an effect on the payment", () =>
  withServer([json(201, PAYMENT)], async ({ client }) => {
    assert.deepEqual(await client.payments.create(INPUT), PAYMENT);
  }, {
    onExchange() {
      throw new Error("the listener's own");
    },
  }));

Deno.test("the client sends a User-Agent, but not in a browser", () =>
  withServer([json(200, PAYMENT)], async ({ client, requested }) => {
    await client.payments.retrieve("pay_1");
    assert.equal(requested[0]!.headers.get("User-Agent"), `payments-client/${VERSION}`);
    for (const runtime of [undefined, "Deno/2.9.6", "Node.js/22", "Cloudflare-Workers"]) {
      assert.deepEqual(Object.keys(userAgentHeader(runtime)), ["User-Agent"]);
    }
    assert.deepEqual(userAgentHeader("Mozilla/5.0 (X11; Linux x86_64) Chrome/130"), {});
  }));

Deno.test("the client and its errors do not print the key", () =>
  withServer([error(401, "unauthorized")], async ({ client }) => {
    const thrown = await failure(client.payments.create(INPUT));
    for (const value of [client, client.payments, thrown]) {
      assert.ok(!Deno.inspect(value, { depth: 99, showHidden: true }).includes(API_KEY));
      assert.ok(!JSON.stringify(value).includes(API_KEY));
    }
  }));

const WRONG: [name: string, options: Record<string, unknown>][] = [
  ["apiKey", { apiKey: "" }],
  ["apiKey", { apiKey: undefined }],
  ["apiKey", { apiKey: `${API_KEY}\n` }],
  ["baseUrl", { baseUrl: "" }],
  ["baseUrl", { baseUrl: undefined }],
  ["baseUrl", { baseUrl: "example.com/functions/v1" }],
  ["baseUrl", { baseUrl: "ftp://example.com" }],
  ["baseUrl", { baseUrl: "https://example.com/?a=1" }],
  ["baseUrl", { baseUrl: "https://" }],
  ["maxRetries", { maxRetries: -1 }],
  ["maxRetries", { maxRetries: 1.5 }],
  ["timeoutMs", { timeoutMs: 0 }],
  ["timeoutMs", { timeoutMs: NaN }],
  ["timeoutMs", { timeoutMs: Infinity }],
];
for (const [name, options] of WRONG) {
  Deno.test(`PaymentsClient() refuses ${Deno.inspect(options)}`, () => {
    const given = { apiKey: API_KEY, baseUrl: "https://example.com/functions/v1", ...options };
    const make = () => new PaymentsClient(given as { apiKey: string; baseUrl: string });
    assert.throws(make, (error: Error) => {
      assert.ok(error instanceof TypeError && error.message.includes(name), error.message);
      return !error.message.includes(API_KEY);
    });
  });
}

/** Runs a function with these variables of the environment, or without those that are undefined. */
async function withVariables(
  variables: Record<"PAYMENTS_BASE_URL" | "PAYMENTS_API_KEY", string | undefined>,
  run: () => void | Promise<void>,
): Promise<void> {
  const before = Object.keys(variables).map((name) => [name, Deno.env.get(name)] as const);
  const set = (name: string, value: string | undefined) =>
    value === undefined ? Deno.env.delete(name) : Deno.env.set(name, value);
  for (const [name, value] of Object.entries(variables)) set(name, value);
  try {
    await run();
  } finally {
    for (const [name, value] of before) set(name, value);
  }
}

Deno.test("PaymentsClient() reads PAYMENTS_BASE_URL and PAYMENTS_API_KEY; options come first", () =>
  withServer(
    [json(200, PAYMENT)],
    ({ base_url, requested }) =>
      withVariables({ PAYMENTS_BASE_URL: base_url, PAYMENTS_API_KEY: API_KEY }, async () => {
        await new PaymentsClient().payments.retrieve("pay_1");
        await new PaymentsClient({ apiKey: "sk_test_other" }).payments.retrieve("pay_1");
        assert.deepEqual(
          requested.map(({ headers }) => headers.get("Authorization")),
          [`Bearer ${API_KEY}`, "Bearer sk_test_other"],
        );
      }),
  ));

const KEY_AND_URL = { PAYMENTS_BASE_URL: "https://example.com/v1", PAYMENTS_API_KEY: API_KEY };
const MISSING: [
  variables: Partial<typeof KEY_AND_URL>,
  options: { apiKey?: string | undefined; baseUrl?: string | undefined },
  message: RegExp,
][] = [
  [{}, {}, /has no baseUrl and no apiKey: .* PAYMENTS_BASE_URL and PAYMENTS_API_KEY in/],
  [{ ...KEY_AND_URL, PAYMENTS_API_KEY: "" }, {}, /has no apiKey: .* set PAYMENTS_API_KEY in/],
  [{}, { apiKey: API_KEY }, /^PaymentsClient has no baseUrl: .* set PAYMENTS_BASE_URL in/],
  // The missing key of one account never becomes the key of another.
  [KEY_AND_URL, { apiKey: undefined }, /^PaymentsClient has no apiKey/],
  [{ ...KEY_AND_URL, PAYMENTS_API_KEY: `${API_KEY}\n` }, {}, /^PAYMENTS_API_KEY is empty, or/],
  [{ ...KEY_AND_URL, PAYMENTS_BASE_URL: "example.com" }, {}, /^PAYMENTS_BASE_URL "example.com"/],
];
for (const [variables, options, message] of MISSING) {
  const given = Object.keys(variables).join(", ") || "no variables";
  Deno.test(`PaymentsClient(${Deno.inspect(options)}) with ${given}: ${message.source}`, () =>
    withVariables(
      { PAYMENTS_BASE_URL: undefined, PAYMENTS_API_KEY: undefined, ...variables },
      () => {
        assert.throws(
          () => new PaymentsClient(options as { apiKey: string }),
          (error: Error) => {
            assert.ok(error instanceof TypeError);
            assert.match(error.message, message);
            return !error.message.includes(API_KEY);
          },
        );
      },
    ));
}

Deno.test("readVariable() finds a variable on Deno and Node, and none in a browser", () => {
  const holders: EnvironmentHolder[] = [
    { Deno: { env: { get: (name) => `${name} of Deno` } }, process: {} },
    { process: { env: { KEY: "of Node" } } },
    ...[{ process: { env: {} } }, { process: { env: { KEY: "" } } }, { process: {} }, {}],
  ];
  const found = holders.map((holder) => readVariable("KEY", holder));
  assert.deepEqual(found, ["KEY of Deno", "of Node", ...Array(4).fill(undefined)]);
});

Deno.test("a call with an invalid argument throws and sends nothing", () =>
  withServer([json(200, PAYMENT)], async ({ client, requested }) => {
    const wrong: [string, () => unknown][] = [
      ["maxRetries", () => client.payments.retrieve("pay_1", { maxRetries: NaN })],
      ["timeoutMs", () => client.payments.retrieve("pay_1", { timeoutMs: -1 })],
      ["idempotencyKey", () => client.payments.create(INPUT, { idempotencyKey: "" })],
      ["idempotencyKey", () => client.payments.create(INPUT, { idempotencyKey: "a b" })],
      ["idempotencyKey", () => client.payments.create(INPUT, { idempotencyKey: "x".repeat(256) })],
      ["id", () => client.payments.retrieve("")],
      ["id", () => client.payments.retrieve("..")],
      ["id", () => client.payments.listRefunds(undefined as unknown as string)],
      ["input is a string", () => client.sandbox.authenticate("pay_1", "success" as never)],
      ["input is a number", () => client.payments.refund("pay_1", 500 as never)],
      ["input is null", () => client.payments.capture("pay_1", null as never)],
      ["input is an array", () => client.payments.create([INPUT] as never)],
      ["params is a string", () => client.payments.list("declined" as never)],
      ["params is a string", () => client.webhookEndpoints.inbox("whe_1", "inb_1" as never)],
      ["options is a string", () => client.payments.create(INPUT, "order-1042" as never)],
      ["options is a number", () => client.webhookEndpoints.inbox("whe_1", {}, 20 as never)],
      // The message does not show the key.
      ["options is a string, but must be an object", () => new PaymentsClient(API_KEY as never)],
    ];
    for (const [name, call] of wrong) {
      const thrown = await failure(Promise.resolve().then(call));
      assert.ok(thrown instanceof TypeError && thrown.message.startsWith(name), String(thrown));
      assert.ok(!thrown.message.includes(API_KEY));
    }
    assert.equal(requested.length, 0);
  }));

Deno.test("baseUrl may end with a slash", () =>
  withServer([json(200, PAYMENT)], async ({ base_url, requested }) => {
    const client = new PaymentsClient({ apiKey: API_KEY, baseUrl: `${base_url}/` });
    await client.payments.retrieve("pay_1");
    assert.equal(requested[0]!.path, "/functions/v1/api-v1-payments/v1/payments/pay_1");
  }));
