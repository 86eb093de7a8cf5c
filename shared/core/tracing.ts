/**
 * Traces of requests, and the place in a trace (W3C Trace Context) that goes from a request to the
 * work that follows it. Deno's OpenTelemetry samples and sends the spans
 * (docs/operations/monitoring.md). The spans that Deno itself would make are off, because they have
 * whole URLs, with keys and tokens. Without `OTEL_DENO=true`, and on a runtime that has none,
 * `span` only calls its function.
 */

/** Deno sends a number as a double, and a bigint as an integer. */
type Attributes = Record<string, string | bigint | string[]>;

/** The used parts of `Deno.telemetry`, which has the interfaces of @opentelemetry/api. */
interface Telemetry {
  tracerProvider: { getTracer(name: string): Tracer };
  meterProvider: { getMeter(name: string): Meter };
  contextManager: { active(): Context };
}
interface Tracer {
  startActiveSpan<T>(
    name: string,
    options: { kind: number; attributes: Attributes; root: boolean },
    context: Context,
    run: (span: Span) => T,
  ): T;
}
interface Span {
  spanContext(): { traceId: string; spanId: string; traceFlags: number };
  setAttributes(attributes: Attributes): void;
  setStatus(status: { code: number }): void;
  updateName(name: string): void;
  end(): void;
}
interface Context {
  getValue(key: symbol): unknown;
  setValue(key: symbol, value: unknown): Context;
}
interface Meter {
  createHistogram(
    name: string,
    options: { unit: string; description: string; advice: { explicitBucketBoundaries: number[] } },
  ): Histogram;
}
interface Histogram {
  record(value: number, attributes: Attributes): void;
}

const SCOPE = "payments";
/** The key of the present span in a context, as in @opentelemetry/api. */
const SPAN = Symbol.for("OpenTelemetry Context Key SPAN");
const KINDS = { internal: 0, server: 1, client: 2 };
const ERROR_STATUS = 2;
const SAMPLED = 1;
/** Bounds of the histograms in seconds, from the conventions of OpenTelemetry. */
const REQUEST_BOUNDS = [
  0.005,
  0.01,
  0.025,
  0.05,
  0.075,
  0.1,
  0.25,
  0.5,
  0.75,
  1,
  2.5,
  5,
  7.5,
  10,
];
const STATEMENT_BOUNDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10];

/** Version 00, without a trace or span of zeros. By the standard other texts count as absent. */
const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;

const telemetry = openTelemetry();

/** Opens the telemetry of the runtime; null: there is none, or it is off. */
function openTelemetry() {
  // Deno 2.1.4 types an older form, which it does not have without a flag.
  const { Deno: runtime } = globalThis as unknown as { Deno?: { telemetry?: Telemetry } };
  if (runtime?.telemetry === undefined) return null;
  const { tracerProvider, meterProvider, contextManager } = runtime.telemetry;
  try {
    // The only part of it that throws at once if telemetry is off.
    const meter = meterProvider.getMeter(SCOPE);
    const histogram = (name: string, description: string, explicitBucketBoundaries: number[]) =>
      meter.createHistogram(name, { unit: "s", description, advice: { explicitBucketBoundaries } });
    return {
      tracer: tracerProvider.getTracer(SCOPE),
      contexts: contextManager,
      requests: histogram(
        "http.server.request.duration",
        "Duration of HTTP server requests.",
        REQUEST_BOUNDS,
      ),
      statements: histogram(
        "db.client.operation.duration",
        "Duration of database client operations.",
        STATEMENT_BOUNDS,
      ),
    };
  } catch {
    return null;
  }
}

/**
 * The durations of requests; undefined without telemetry. Deno's metric of the same name has no
 * route.
 */
export const requestDurations: Histogram | undefined = telemetry?.requests;

/** Adds attributes to a span. `error.type` marks it as failed. A name replaces the first one. */
export type Describe = (attributes: Attributes, name?: string) => void;

interface SpanOptions {
  /** `server`: the span of a request; `client`: the call of another server. */
  kind?: keyof typeof KINDS;
  attributes?: Attributes;
  /**
   * The place in a trace where the span begins; null or another text: a new trace. By default the
   * present span.
   */
  parent?: string | null;
}

/** Runs a function in a span, which ends with it. An error marks the span as failed. */
export function span<T>(
  name: string,
  run: (describe?: Describe) => T,
  { kind = "internal", attributes = {}, parent }: SpanOptions = {},
): T {
  if (telemetry === null || parent === undefined && !isSampled()) return run();
  const active = telemetry.contexts.active();
  const context = parent === undefined ? active : at(parent, active);
  const options = { kind: KINDS[kind], attributes, root: context === null };
  return telemetry.tracer.startActiveSpan(name, options, context ?? active, (open) => {
    const fail = (error: unknown): never => {
      describe(open, { "error.type": typeOf(error) });
      open.end();
      throw error;
    };
    try {
      // The sampler decides by the trace, so only the first span of ours asks for its decision.
      const result = parent === undefined || isSampled()
        ? run((more, name) => describe(open, more, name))
        : run();
      if (result instanceof Promise) {
        return result.then((value) => {
          open.end();
          return value;
        }, fail) as T;
      }
      open.end();
      return result;
    } catch (error) {
      return fail(error);
    }
  });
}

/**
 * Runs the call of an entry function of the database in a span, with the wait for the statement
 * that it shares with others.
 */
export function databaseSpan<T>(
  name: string,
  entry_function: string,
  run: () => Promise<T>,
): Promise<T> {
  if (telemetry === null) return run();
  const { statements } = telemetry;
  const attributes = {
    "db.system.name": "postgresql",
    "db.stored_procedure.name": entry_function,
  };
  const started = performance.now();
  const record = (failed?: Attributes) =>
    statements.record((performance.now() - started) / 1000, { ...attributes, ...failed });
  return span(name, async () => {
    try {
      const result = await run();
      record();
      return result;
    } catch (error) {
      record({ "error.type": typeOf(error) });
      throw error;
    }
  }, { kind: "client", attributes });
}

/** Calls `fetch` in a span. */
export function fetchInSpan(
  url: string,
  init: RequestInit & { method: string },
): Promise<Response> {
  const { method } = init;
  const attributes = callAttributes(method, url);
  return span(method, async (describe) => {
    const response = await fetch(url, init);
    describe?.(responseAttributes(response.status));
    return response;
  }, { kind: "client", attributes });
}

/**
 * Returns the attributes of an HTTP client's span, without the path and the query of the URL, which
 * can contain secrets. Without telemetry there are none.
 */
export function callAttributes(method: string, url: string): Attributes {
  if (telemetry === null) return {};
  const { hostname, port, protocol } = new URL(url);
  return {
    "http.request.method": method,
    "server.address": hostname,
    "server.port": BigInt(port || (protocol === "https:" ? 443 : 80)),
  };
}

/** Returns the attributes of the response to an HTTP client. It has failed without a 2xx. */
export function responseAttributes(status: number): Attributes {
  return {
    "http.response.status_code": BigInt(status),
    ...((status < 200 || status > 299) && { "error.type": String(status) }),
  };
}

/**
 * Returns the place in a trace for the work that follows a request: that of its span, or without
 * telemetry the one that the caller has sent; null: none.
 * @param sent the header `traceparent`
 */
export function traceparentOf(sent: string | null | undefined): string | null {
  const present = presentSpan();
  if (!present) return sent && TRACEPARENT.test(sent) ? sent : null;
  const { traceId, spanId, traceFlags } = present.spanContext();
  return `00-${traceId}-${spanId}-${(traceFlags & SAMPLED).toString().padStart(2, "0")}`;
}

function presentSpan(): Span | undefined {
  return telemetry?.contexts.active().getValue(SPAN) as Span | undefined;
}

/** Reports whether the sampler has chosen the present span, so that its children are sent too. */
function isSampled(): boolean {
  const { traceFlags = SAMPLED } = presentSpan()?.spanContext() ?? {};
  return (traceFlags & SAMPLED) === SAMPLED;
}

/** Returns the context of a place in a trace; null: the text is none. */
function at(traceparent: string | null, context: Context): Context | null {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(traceparent ?? "") ?? [];
  if (traceId === undefined) return null;
  const traceFlags = parseInt(flags!, 16);
  return context.setValue(SPAN, { spanContext: () => ({ traceId, spanId, traceFlags }) });
}

function describe(open: Span, attributes: Attributes, name?: string): void {
  if (name !== undefined) open.updateName(name);
  open.setAttributes(attributes);
  if ("error.type" in attributes) open.setStatus({ code: ERROR_STATUS });
}

/** Returns the code of an error of ours or of the database, or its class. Never its text. */
function typeOf(error: unknown): string {
  const { code, name } = error as { code?: unknown; name?: unknown };
  return typeof code === "string" ? code : String(name);
}
