/**
 * Traces of requests, and the place in a trace (W3C Trace Context) that goes from a request to the
 * work that follows it. Spans and metrics are Deno's own OpenTelemetry (docs/operations.md), which
 * also makes the span of each request that it serves and of each `fetch`. Without
 * `OTEL_DENO=true`, and on a runtime that has none, `span` only calls its function.
 */

type Attributes = Record<string, string | number | string[]>;

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
    options: { unit: string; description: string },
  ): { record(value: number, attributes: Attributes): void };
}

/** The name of the instrumentation. */
const SCOPE = "payments";
/** The key of the present span in a context, as in @opentelemetry/api. */
const SPAN = Symbol.for("OpenTelemetry Context Key SPAN");
const INTERNAL_KIND = 0;
const CLIENT_KIND = 2;
const ERROR_STATUS = 2;
const SAMPLED = 1;

/** Version 00, without a trace or span of zeros. Other texts count as absent, as the standard says. */
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
    return {
      tracer: tracerProvider.getTracer(SCOPE),
      contexts: contextManager,
      statements: meter.createHistogram("db.client.operation.duration", {
        unit: "s",
        description: "Duration of database client operations.",
      }),
    };
  } catch {
    return null;
  }
}

/** Adds attributes to a span. `error.type` marks it as failed. */
type Describe = (attributes: Attributes) => void;

interface SpanOptions {
  /** True: the span is the call of another server. */
  calls?: boolean;
  attributes?: Attributes;
  /** The place in a trace where the span begins; null: a new trace. By default the present span. */
  parent?: string | null;
}

/** Runs a function in a span, which ends with it. An error marks the span as failed. */
export function span<T>(
  name: string,
  run: (describe: Describe) => T,
  { calls = false, attributes = {}, parent }: SpanOptions = {},
): T {
  if (telemetry === null || parent === undefined && !isSampled()) return run(ignore);
  const kind = calls ? CLIENT_KIND : INTERNAL_KIND;
  const root = parent === null;
  return telemetry.tracer.startActiveSpan(name, { kind, attributes, root }, at(parent), (open) => {
    const fail = (error: unknown): never => {
      describe(open, { "error.type": typeOf(error) });
      open.end();
      throw error;
    };
    try {
      const result = run((more) => describe(open, more));
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
  }, { calls: true, attributes });
}

/** Names the span that the server has made of the present request. */
export function describeRequest(name: string, attributes: Attributes): void {
  const present = presentSpan();
  present?.updateName(name);
  present?.setAttributes(attributes);
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

/** Returns the context of a place in a trace, or the present one. */
function at(traceparent: string | null | undefined): Context {
  const context = telemetry!.contexts.active();
  const [, traceId, spanId, flags] = TRACEPARENT.exec(traceparent ?? "") ?? [];
  if (traceId === undefined) return context;
  const traceFlags = parseInt(flags!, 16);
  return context.setValue(SPAN, { spanContext: () => ({ traceId, spanId, traceFlags }) });
}

function describe(open: Span, attributes: Attributes): void {
  open.setAttributes(attributes);
  if ("error.type" in attributes) open.setStatus({ code: ERROR_STATUS });
}

/** Returns the code of an error of ours or of the database, or its class. Never its text. */
function typeOf(error: unknown): string {
  const { code, name } = error as { code?: unknown; name?: unknown };
  return typeof code === "string" ? code : String(name);
}

function ignore(): void {}
