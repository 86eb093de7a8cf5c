/**
 * The service for a test file: both functions over a database of their own, keys of two sandboxes
 * and one live environment, a clock that a test sets, and the statements sent to the database.
 * product.ts describes TEST_FUNCTIONS, which makes the functions processes of their own.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { idGenerator } from "../../../shared/core/ids.ts";
import type { OpenDependencies } from "../../../shared/functions/dependencies.ts";
import type { Settings } from "../../../shared/functions/settings.ts";
import type { LogLine } from "../../../shared/http/log_line.ts";
import { createApiKey, createEnvironment } from "../database/api_keys.ts";
import { cloneDatabase, connect } from "../database/database.ts";
import { keyedCall, sentBody } from "./keyed_call.ts";
import { NeedsInternals } from "./needs_internals.ts";
import { IS_REMOTE, openProduct } from "./product.ts";
import { checkExchange } from "./openapi_check.ts";

/** The base URL in the settings of the functions. */
export const BASE_URL = "http://127.0.0.1:54321/functions/v1";
/** The documentation to which `doc_url` of errors leads. */
export const DOCS_URL = "https://docs.example.com";
/** The master secret of the test service, from which it derives the secrets of endpoints. */
export const MASTER_SECRET = "master secret of the test service, 32 bytes and more";
/** The token that wakes the dispatcher of the test service. */
export const RELAY_TOKEN = "relay-token-of-the-test-service";
/** A published test card that is approved. */
export const APPROVED_CARD = {
  number: "4242 4242 4242 4242",
  exp_month: 12,
  exp_year: 2034,
  cvc: "123",
};

/** A key and its environment. */
export interface TestKey {
  text: string;
  id: string;
  environment_id: string;
}

/** A response whose body has been read. */
export interface TestResponse {
  status: number;
  headers: Headers;
  text: string;
  // deno-lint-ignore no-explicit-any
  body: any;
}

/** The parts of a request beside its method and path. */
export interface CallOptions {
  /** A key text, or null for none; the first sandbox's key by default. */
  key?: string | null;
  /** An object is sent as JSON, a text or bytes as they are. */
  body?: unknown;
  idempotency_key?: string;
  headers?: Record<string, string>;
  /** Skips the comparison with the OpenAPI document, if the test itself stored the response. */
  unchecked?: boolean;
}

/** The running product. */
export interface TestService extends AsyncDisposable {
  /** Calls a function: `POST /api-v1-payments/v1/payments`. */
  call(method: string, path: string, options?: CallOptions): Promise<TestResponse>;
  /** Returns the body of a GET. Asserts its success, as `post` does. */
  get(path: string, options?: CallOptions): Promise<TestResponse["body"]>;
  /** Returns the body of a POST. */
  post(path: string, body?: unknown, options?: CallOptions): Promise<TestResponse["body"]>;
  /** `POST /api-v1-payments/v1/payments` by default with 1000 EUR cents. */
  pay(body?: Record<string, unknown>, options?: CallOptions): Promise<TestResponse>;
  /** Makes a payment in any status: `POST /api-v1-sandbox/payments`. */
  make(body?: Record<string, unknown>, options?: CallOptions): Promise<TestResponse>;
  key: TestKey;
  /** The key of another sandbox. */
  other: TestKey;
  live: TestKey;
  /** Makes one more key. */
  issueKey(
    environment_id: string,
    options?: { scopes?: string[]; expires_at?: string },
  ): Promise<TestKey>;
  /** Returns the current id of a key's environment, which each reset changes. */
  environmentOf(key: TestKey): Promise<string>;
  /** A connection as superuser, which sees all rows. */
  sql: postgres.Sql;
  /** Counts rows of a table: `payments`, or with conditions `payments where currency = 'EUR'`. */
  count(rows: string): Promise<number>;
  deps: OpenDependencies;
  database: { url: string; functions_url: string };
  /** Removes and returns the recorded statements. Throws `NeedsInternals` over processes. */
  takeStatements(): string[];
  /** Removes the recorded statements. */
  forgetStatements(): void;
  /** Asserts the number of recorded statements and removes them. No check over processes. */
  assertStatements(count: number): void;
  logs: LogLine[];
  /**
   * Sets the clock of the functions and of the database; null means the machine's time. The next
   * call waits until the clock of the database is set.
   */
  setClock(at_ms: number | null): Promise<void>;
  /** Sets the clock of the functions, but not of the database. */
  setWrongClock(at_ms: number): void;
  /** Sets the clock and returns true. Returns false over processes, which use the machine's. */
  trySetClock(at_ms: number | null): boolean;
  close(): Promise<void>;
}

/** Sets the time of a test's own database; null means the machine's time. */
export async function setServerTime(sql: postgres.Sql, at_ms: number | null): Promise<void> {
  const at = at_ms === null ? "pg_catalog.now()" : `timestamptz '${new Date(at_ms).toISOString()}'`;
  await sql.unsafe(`create or replace function pay_internal.server_time() returns timestamptz
    language sql stable parallel safe set search_path = pg_catalog, pg_temp
    as $$ select ${at} $$`);
}

/** Starts the product over a new database. Call `close` at the end of the file. */
export async function startService(options: Partial<Settings> = {}): Promise<TestService> {
  const database = await cloneDatabase();
  const sql = connect(database.url, 4);
  let statements: string[] = [];
  let fixed_ms: number | null = null;
  let server_time = Promise.resolve();
  const setClock = (at_ms: number | null) => {
    fixed_ms = at_ms;
    server_time = server_time.then(() => setServerTime(sql, at_ms));
    return server_time;
  };
  const product = openProduct({
    database_url: database.functions_url,
    base_url: BASE_URL,
    docs_url: DOCS_URL,
    allowed_origins: ["http://localhost:*", "https://console.example.com"],
    webhook_master_secret: MASTER_SECRET,
    allow_private_webhooks: true,
    relay_token: RELAY_TOKEN,
    ...options,
  }, {
    clock: () => fixed_ms ?? Date.now(),
    on_statement: (text) => statements.push(text),
    ...options,
  });
  const newId = idGenerator((options.clock ?? Date.now)(), options.random);

  async function environment(livemode: boolean, account: string): Promise<string> {
    const id = newId("env_");
    await createEnvironment(sql, { id, account, livemode });
    return id;
  }

  async function issueKey(
    environment_id: string,
    { scopes, expires_at }: { scopes?: string[]; expires_at?: string } = {},
  ): Promise<TestKey> {
    const [row] = await sql`select livemode from pay.environments where id = ${environment_id}`;
    const id = newId("key_");
    const text = await createApiKey(sql, {
      id,
      environment_id,
      livemode: row!.livemode,
      scopes,
      expires_at,
      random: options.random,
    });
    return { text, id, environment_id };
  }

  const key = await issueKey(await environment(false, "one"));
  const other = await issueKey(await environment(false, "two"));
  const live = await issueKey(await environment(true, "one"));
  await product.start();

  async function call(
    method: string,
    path: string,
    { key: text = key.text, body, unchecked = false, ...options }: CallOptions = {},
  ): Promise<TestResponse> {
    await server_time;
    const response = await keyedCall(
      { fetch: async (request) => unzipped(await product.fetch(request)) },
      method,
      path,
      { key: text, body, ...options },
    );
    if (!unchecked) {
      const sent = sentBody(body);
      checkExchange({
        ...{ method, path, ...response },
        sent: sent instanceof Uint8Array
          ? new TextDecoder().decode(sent)
          : sent as string | undefined,
      });
    }
    return response;
  }

  async function succeed(
    method: string,
    path: string,
    options?: CallOptions,
  ): Promise<TestResponse["body"]> {
    const { status, text, body } = await call(method, path, options);
    assert.ok(status >= 200 && status < 300, `${method} ${path} ${status}: ${text}`);
    return body;
  }

  const close = async () => {
    await server_time;
    await product.close();
    await sql.end();
    await database.drop();
  };
  return {
    call,
    get: (path, options) => succeed("GET", path, options),
    post: (path, body, options) => succeed("POST", path, { ...options, body }),
    pay: (body = {}, options = {}) =>
      call("POST", "/api-v1-payments/v1/payments", {
        ...options,
        body: { amount: 1000, currency: "EUR", ...body },
      }),
    make: (body = {}, options = {}) =>
      call("POST", "/api-v1-sandbox/payments", {
        ...options,
        body: { amount_minor: 1000, currency: "EUR", ...body },
      }),
    key,
    other,
    live,
    issueKey,
    async environmentOf({ id }) {
      const [row] = await sql`select environment_id from pay.api_keys where id = ${id}`;
      return row!.environment_id;
    },
    sql,
    async count(rows) {
      const [row] = await sql.unsafe(`select count(*)::int as n from pay.${rows}`);
      return row!.n;
    },
    get deps() {
      return product.deps;
    },
    database,
    takeStatements() {
      if (IS_REMOTE) throw new NeedsInternals("statements");
      return statements.splice(0);
    },
    forgetStatements: () => statements = [],
    assertStatements(count) {
      if (!IS_REMOTE) assert.equal(statements.length, count, statements.join(";\n"));
      statements = [];
    },
    logs: product.logs,
    setClock(at_ms) {
      if (IS_REMOTE) throw new NeedsInternals("the clock");
      return setClock(at_ms);
    },
    setWrongClock(at_ms) {
      if (IS_REMOTE) throw new NeedsInternals("the clock");
      fixed_ms = at_ms;
    },
    trySetClock(at_ms) {
      if (!IS_REMOTE) setClock(at_ms);
      return !IS_REMOTE;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Decompresses a response as an HTTP client does. `fetch` has done so already. */
function unzipped(response: Response): Response {
  if (response.headers.get("Content-Encoding") !== "gzip") return response;
  return new Response(response.body?.pipeThrough(new DecompressionStream("gzip")), response);
}
