/** A receiver of OpenTelemetry's protocol over HTTP, as JSON: it keeps spans and metrics. */

/** A span that has ended. */
export interface ReceivedSpan {
  name: string;
  kind: "internal" | "server" | "client";
  trace_id: string;
  id: string;
  /** Null: the span is the first of its trace. */
  parent_id: string | null;
  failed: boolean;
  attributes: Record<string, unknown>;
}

/** A metric, with the attributes of its series. */
interface ReceivedMetric {
  scope: string;
  name: string;
  unit: string;
  series: Record<string, unknown>[];
}

/** A running receiver. */
export interface OtlpReceiver {
  /**
   * The variables of a process that sends here, as `deno task serve` has them, without the one that
   * turns telemetry on.
   */
  env: Record<string, string>;
  spans: ReceivedSpan[];
  metrics: ReceivedMetric[];
  /** The bodies of all requests. */
  texts: string[];
  close(): Promise<void>;
}

const KINDS = ["", "internal", "server", "client"] as const;
const ERROR_STATUS = 2;

/** Starts a receiver on a free port. */
export function openOtlpReceiver(): OtlpReceiver {
  const spans: ReceivedSpan[] = [];
  const metrics: ReceivedMetric[] = [];
  const texts: string[] = [];
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      const text = await request.text();
      texts.push(text);
      const { resourceSpans = [], resourceMetrics = [] } = JSON.parse(text);
      for (const { scopeSpans } of resourceSpans) {
        for (const { spans: ended } of scopeSpans) spans.push(...ended.map(spanOf));
      }
      for (const { scopeMetrics } of resourceMetrics) {
        for (const { scope, metrics: read } of scopeMetrics) {
          metrics.push(...read.map((metric: Json) => metricOf(scope, metric)));
        }
      }
      return Response.json({ partialSuccess: {} });
    },
  );
  return {
    env: {
      OTEL_DENO_TRACING: "false",
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${server.addr.port}`,
      OTEL_BSP_SCHEDULE_DELAY: "100",
      OTEL_METRIC_EXPORT_INTERVAL: "500",
    },
    spans,
    metrics,
    texts,
    close: () => server.shutdown(),
  };
}

// deno-lint-ignore no-explicit-any
type Json = any;

function spanOf({ name, kind, traceId, spanId, parentSpanId, status, attributes }: Json) {
  return {
    name,
    kind: KINDS[kind]!,
    trace_id: traceId,
    id: spanId,
    parent_id: parentSpanId || null,
    failed: status?.code === ERROR_STATUS,
    attributes: valuesOf(attributes),
  } as ReceivedSpan;
}

function metricOf(scope: Json, { name, unit, histogram, sum, gauge }: Json): ReceivedMetric {
  const { dataPoints } = histogram ?? sum ?? gauge;
  return {
    scope: scope.name,
    name,
    unit,
    series: dataPoints.map((point: Json) => valuesOf(point.attributes)),
  };
}

/** Returns attributes by name. Throws if one is there twice, which the protocol forbids. */
function valuesOf(attributes: Json[] = []): Record<string, unknown> {
  const values = Object.fromEntries(attributes.map(({ key, value }) => [key, valueOf(value)]));
  if (Object.keys(values).length < attributes.length) throw new Error(JSON.stringify(attributes));
  return values;
}

/** Returns a value: an integer, which comes as text, as a bigint. */
function valueOf(value: Json): unknown {
  if ("arrayValue" in value) return value.arrayValue.values.map(valueOf);
  if ("intValue" in value) return BigInt(value.intValue);
  return Object.values(value)[0];
}
