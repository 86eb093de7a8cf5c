/**
 * Runs the two functions over a database: by default in the process of the test. With
 * `TEST_FUNCTIONS=cells` they are one of two cells behind HAProxy, on Deno 2.1.4 as deployed; with
 * `cells-pooled` both cells reach their databases through a transaction pooler.
 *
 * In another process, tests cannot reach the internals of the functions, such as the clock and the
 * SQL statements. A test or step that needs them ends with `NeedsInternals`. The run counts these
 * tests and names them at its end.
 */

import {
  createDependencies,
  type OpenDependencies,
} from "../../../shared/functions/dependencies.ts";
import type { Settings } from "../../../shared/functions/settings.ts";
import { createPaymentsFunction } from "../../../shared/functions/payments_function.ts";
import type { LogLine } from "../../../shared/http/log_line.ts";
import { createSandboxFunction } from "../../../shared/functions/sandbox_function.ts";
import { NeedsInternals, recordUntested } from "./needs_internals.ts";
import { openCells } from "./two_cells.ts";

/** The running functions. */
interface Product {
  /** Responds to a request to `/<function>/…`; its host does not matter. */
  fetch(request: Request): Promise<Response>;
  /** Resolves when the functions serve. The first `fetch` waits for this too. */
  start(): Promise<void>;
  /** Throws `NeedsInternals` if the functions are cells. */
  readonly deps: OpenDependencies;
  logs: LogLine[];
  close(): Promise<void>;
}

/** The way in which this run starts the functions; undefined: in the process of the test. */
const WAY = Deno.env.get("TEST_FUNCTIONS");
/** Whether the functions are in processes of their own. */
export const IS_REMOTE = WAY === "cells" || WAY === "cells-pooled";
if (WAY && !IS_REMOTE) throw new Error(`TEST_FUNCTIONS "${WAY}" is not cells or cells-pooled`);
if (IS_REMOTE) recordUntested();

/** Longer than the default, because a database on a busy machine can be slow. */
const AWAY_AFTER_MS = 15_000;

/** Opens the functions. `inside` are settings that apply only in the process of the test. */
export function openProduct(settings: Settings, inside: Partial<Settings> = {}): Product {
  return IS_REMOTE ? openThere(settings) : openHere({ ...settings, ...inside });
}

function openHere(settings: Settings): Product {
  const logs: LogLine[] = [];
  const deps = createDependencies({
    log: (line) => logs.push(line),
    unavailable_after_ms: AWAY_AFTER_MS,
    ...settings,
  });
  const functions = {
    "api-v1-payments": createPaymentsFunction(deps),
    "api-v1-sandbox": createSandboxFunction(deps),
  };
  return {
    async fetch(request) {
      const name = new URL(request.url).pathname.split("/")[1] as keyof typeof functions;
      return await functions[name](request);
    },
    start: () => Promise.resolve(),
    deps,
    logs,
    close: () => deps.close(),
  };
}

function openThere(settings: Settings): Product {
  const logs: LogLine[] = [];
  const cells = openCells(settings, (line) => logs.push(line));
  return {
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const url = await cells.urlOf(pathname);
      if (request.headers.has("Content-Length")) throw new NeedsInternals("a false Content-Length");
      const response = await send(url + pathname + search, request);
      const id = response.headers.get("Request-Id");
      // Internal routes and health checks are not logged. A response without an id is not theirs.
      if (id && !/\/internal\/|\/health$/.test(pathname)) await cells.logged(id);
      return response;
    },
    start: async () => void await cells.urlOf("/"),
    get deps(): OpenDependencies {
      throw new NeedsInternals("the parts of the service");
    },
    logs,
    close: () => cells.close(),
  };
}

const TRANSPORT_HEADERS: ReadonlySet<string> = new Set([
  "date",
  "content-encoding",
  "transfer-encoding",
]);
/** Opens a connection for each request: the server closes connections of refused bodies. */
const client = IS_REMOTE ? Deno.createHttpClient({ poolMaxIdlePerHost: 0 }) : undefined;

async function send(url: string, { method, headers, body: stream }: Request): Promise<Response> {
  const body = stream && await new Response(stream).bytes();
  try {
    const options = {
      method,
      headers,
      body,
      redirect: "manual",
      ...(client && { client }),
    } as const;
    const response = await fetch(url, options);
    // Removes headers of the transport: the date, the encoding that `fetch` has removed, and the
    // length of the encoded body.
    const is_coded = response.headers.has("content-encoding");
    const kept = [...response.headers].filter(([name]) =>
      !TRANSPORT_HEADERS.has(name) && !(is_coded && name === "content-length")
    );
    return new Response(response.body, { status: response.status, headers: kept });
  } catch (error) {
    if (!String(error).includes("header value")) throw error;
    throw new NeedsInternals("a header that no client sends");
  }
}
