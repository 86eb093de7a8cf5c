/**
 * Traces of a server process with `OTEL_DENO=true`, as an OTLP receiver gets them: from the request
 * over decision, commit and provider to the delivery.
 */

import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import config from "../../deno.json" with { type: "json" };
import { addAccount } from "../support/database/provider_flow.ts";
import type { InboxDelivery } from "../../shared/schema/inbox.ts";
import { until } from "../support/common/until.ts";
import { keyedCall } from "../support/service/keyed_call.ts";
import { launchServer } from "../support/service/server_process.ts";
import { startService } from "../support/service/service.ts";
import { PAYMENTS } from "../support/service/service_case.ts";
import { no_stripe_double, startStripeDouble } from "../support/stripe/double.ts";
import { addInbox, readInbox } from "../support/webhook/inbox_reader.ts";
import { addEndpoint, openRecorder } from "../support/webhook/recording_receiver.ts";

const LEASE_MS = 2_500;
const PROVIDER_STRIPE = "sk_live_traces";
/** The span of the caller. */
const SENT_SPAN = "00f067aa0ba902b7";
const CARD = { number: "4242424242424242", exp_month: 12, exp_year: 2034, cvc: "123" };
/** Longer than the intervals at which a server sends spans and metrics. */
const SILENCE_MS = 1_000;

/** Starts a server process that sends to a receiver. `open` closes everything. */
async function openTraced(env: Record<string, string>, open: AsyncDisposableStack) {
  const service = await startService();
  open.defer(service.close);
  const receiver = openOtlpReceiver();
  open.defer(receiver.close);
  const hooks = openRecorder();
  open.defer(hooks.close);
  const { base_url, kill } = await launchServer(service.database.functions_url, {
    lease_ms: LEASE_MS,
    env: { PROVIDER_STRIPE, ...receiver.env, ...env },
  });
  open.defer(kill);
  return {
    ...{ service, receiver, base_url, hooks },
    /** Creates a payment at the server with a `traceparent`, and returns its status. */
    async pay(key: string, traceparent: string, body: object = {}) {
      const { status } = await keyedCall(base_url, "POST", PAYMENTS, {
        ...{ key, headers: { traceparent }, idempotency_key: crypto.randomUUID() },
        body: { amount_minor: 1000, currency: "EUR", ...body },
      });
      return status;
    },
    /** Waits until a trace has a number of spans, and returns them as lines, sorted. */
    async trace(trace_id: string, count: number) {
      const own = () => receiver.spans.filter((span) => span.trace_id === trace_id);
      await until(`${count} spans of ${trace_id}`, () => own().length >= count);
      return linesOf(own());
    },
  };
}

/** Runs a test with a server process that sends to a receiver. */
async function traced(
  env: Record<string, string>,
  test: (given: Awaited<ReturnType<typeof openTraced>>) => Promise<void>,
): Promise<void> {
  await using open = new AsyncDisposableStack();
  await test(await openTraced(env, open));
}

/** Formats spans as `name kind < name of the parent`. */
function linesOf(spans: OtlpReceiver["spans"]): string[] {
  const names = new Map(spans.map(({ id, name }) => [id, name]));
  names.set(SENT_SPAN, "the caller");
  return spans.map(({ name, kind, parent_id, failed }) =>
    `${name} ${kind} < ${names.get(parent_id ?? "")}${failed ? " failed" : ""}`
  ).sort();
}

const REQUEST = `POST ${PAYMENTS}`;
/** The first request with a key has it checked by the database. */
const KEY_CHECK = "load client < authenticate";

/** Makes a trace id and the header of a caller in this trace. */
function caller(): { trace_id: string; traceparent: string } {
  const trace_id = crypto.randomUUID().replaceAll("-", "");
  return { trace_id, traceparent: `00-${trace_id}-${SENT_SPAN}-01` };
}

Deno.test("a trace leads from the request of a sandbox to its deliveries", async (t) => {
  await traced({ OTEL_DENO: "true" }, async (given) => {
    const { service, receiver, base_url, hooks, pay, trace } = given;
    hooks.judge = ({ event }) => event.type === "payment.created" ? 204 : 500;
    await addEndpoint(service, hooks.url("/"));
    const { trace_id, traceparent } = caller();
    assert.equal(await pay(service.key.text, traceparent, { card: CARD }), 201);
    assert.deepEqual(await trace(trace_id, 8), [
      `${REQUEST} server < the caller`,
      `authenticate internal < ${REQUEST}`,
      `commit client < ${REQUEST}`,
      `decide internal < ${REQUEST}`,
      `delivery client < ${REQUEST}`,
      `delivery client < ${REQUEST} failed`,
      KEY_CHECK,
      "provider internal < decide",
    ]);

    const own = receiver.spans.filter((span) => span.trace_id === trace_id);
    const [request] = own.filter(({ kind }) => kind === "server");
    const { "http.response.header.request-id": request_id, ...described } = request!.attributes;
    assert.match(String(request_id), /^req_/);
    const series = {
      "http.request.method": "POST",
      "http.response.status_code": 201n,
      "http.route": PAYMENTS,
      "url.scheme": "http",
    };
    assert.deepEqual(described, { ...series, "url.path": PAYMENTS });
    const [commit] = own.filter(({ name }) => name === "commit");
    assert.deepEqual(commit!.attributes, {
      "db.system.name": "postgresql",
      "db.stored_procedure.name": "pay.commit",
    });
    for (const { headers } of hooks.arrivals) {
      const [, sent_trace, sent_span] = headers.get("traceparent")!.split("-");
      const { name, attributes } = own.find(({ id }) => id === sent_span)!;
      assert.equal(`${name} ${sent_trace}`, `delivery ${trace_id}`);
      assert.deepEqual(attributes["http.request.header.webhook-id"], [headers.get("webhook-id")]);
    }
    const failed = own.find(({ failed }) => failed)!;
    assert.equal(failed.attributes["error.type"], "500");
    assert.equal(failed.attributes["http.response.status_code"], 500n);

    const hasSeries = (name: string, sought: object) =>
      receiver.metrics.some((metric) =>
        metric.scope === "payments" && metric.name === name && metric.unit === "s" &&
        metric.series.some((one) => isDeepStrictEqual({ ...one }, sought))
      );
    await until("both metrics arrive", () =>
      hasSeries("http.server.request.duration", series) &&
      hasSeries("db.client.operation.duration", commit!.attributes));

    await t.step("a key that is not valid marks the span of its check as failed", async () => {
      const { trace_id, traceparent } = caller();
      assert.equal(await pay("sk_test_wrong", traceparent), 401);
      assert.deepEqual(await trace(trace_id, 2), [
        "POST server < the caller",
        "authenticate internal < POST failed",
      ]);
    });
    await t.step("neither the path of a request nor an unknown method is sent", async () => {
      receiver.metrics.length = 0;
      for (const [method, name] of [["GET", "GET"], ["BREW", "HTTP"]]) {
        const { trace_id, traceparent } = caller();
        const url = `${base_url}/api-v1-payments/v1/a-secret?with=a-secret`;
        const response = await fetch(url, { method: method!, headers: { traceparent } });
        await response.body?.cancel();
        await trace(trace_id, 2);
        const [span] = receiver.spans.filter((span) =>
          span.trace_id === trace_id && span.kind === "server"
        );
        assert.equal(span!.name, name);
      }
      await until("metrics arrive", () => receiver.metrics.length > 0);
      assert.doesNotMatch(receiver.texts.join(), /a-secret/);
      const own = receiver.metrics.filter(({ scope }) => scope === "payments");
      assert.doesNotMatch(Deno.inspect([receiver.spans, own], { depth: 9 }), /BREW/);
    });
  });
});

Deno.test("the tasks turn off the spans of Deno itself, which have whole URLs", () => {
  for (const task of [config.tasks.serve, config.tasks.start]) {
    assert.match(task, /^OTEL_DENO_TRACING=false deno run /);
  }
});

Deno.test({
  name: "a live trace has the provider's calls, also those that the worker sends again",
  ignore: no_stripe_double,
  async fn() {
    const double = await startStripeDouble();
    try {
      await traced({ OTEL_DENO: "true" }, async ({ service, pay, trace }) => {
        const { live } = service;
        const settings = { base_url: double!.base_url };
        await addAccount(service.sql, live.environment_id, { settings });
        // A poll could bring the provider event before the worker sends again.
        await service.sql`update pay.provider_cursors set polled_at = now() + interval '1 year'`;
        const first = caller();
        const card = { token: "pm_card_visa" };
        assert.equal(await pay(live.text, first.traceparent, { card }), 201);
        assert.deepEqual(await trace(first.trace_id, 8), [
          `${REQUEST} server < the caller`,
          "POST client < provider",
          `authenticate internal < ${REQUEST}`,
          `commit client < ${REQUEST}`,
          `decide internal < ${REQUEST}`,
          KEY_CHECK,
          `provider internal < ${REQUEST}`,
          `record client < ${REQUEST}`,
        ]);

        // The response is lost, so the worker sends the operation again, in the same trace.
        const { id } = await addInbox(service, {}, { key: live.text });
        await double!.plant({ method: "POST", at: "after", act: "cut" });
        const second = caller();
        assert.equal(await pay(live.text, second.traceparent, { card }), 201);
        await service.sql`update pay.provider_operations set next_attempt_at = now()
          where state = 'pending'`;
        assert.deepEqual(await trace(second.trace_id, 11), [
          `${REQUEST} server < the caller`,
          "POST client < provider",
          "POST client < provider",
          `authenticate internal < ${REQUEST}`,
          `commit client < ${REQUEST}`,
          `decide internal < ${REQUEST}`,
          `provider internal < ${REQUEST} failed`,
          "provider internal < work",
          `record client < ${REQUEST}`,
          "record client < work",
          `work internal < ${REQUEST}`,
        ]);
        const { body } = await readInbox(service, id, "", { key: live.text });
        const traces = body.data.map(({ headers }: InboxDelivery) =>
          headers.traceparent!.split("-")[1]
        );
        assert.deepEqual([...new Set(traces)], [second.trace_id]);
      });
    } finally {
      await double!.close();
    }
  },
});

Deno.test("the sampler leaves out a trace, but not one that its caller has sampled", async () => {
  const env = {
    OTEL_DENO: "true",
    OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
    OTEL_TRACES_SAMPLER_ARG: "0",
  };
  await traced(env, async ({ service, receiver, hooks, pay, trace }) => {
    await addEndpoint(service, hooks.url("/"));
    const { trace_id, traceparent } = caller();
    const left_out = traceparent.replace(/01$/, "00");
    assert.equal(await pay(service.key.text, left_out, { card: CARD }), 201);
    await until("deliveries arrive", () => hooks.arrivals.length === 2);
    for (const { headers } of hooks.arrivals) {
      const [, sent_trace, , flags] = headers.get("traceparent")!.split("-");
      assert.deepEqual([sent_trace, flags], [trace_id, "00"]);
    }
    await until("metrics arrive", () => receiver.metrics.length > 0);
    assert.deepEqual(receiver.spans, []);

    const sampled = caller();
    assert.equal(await pay(service.key.text, sampled.traceparent, { card: CARD }), 201);
    assert.equal((await trace(sampled.trace_id, 7)).length, 7);
  });
});

Deno.test("without OTEL_DENO a server sends no span and no metric", async () => {
  await traced({}, async ({ service, receiver, hooks, pay }) => {
    await addEndpoint(service, hooks.url("/"));
    const { traceparent } = caller();
    assert.equal(await pay(service.key.text, traceparent, { card: CARD }), 201);
    await until("deliveries arrive", () => hooks.arrivals.length === 2);
    for (const { headers } of hooks.arrivals) {
      assert.equal(headers.get("traceparent"), traceparent);
    }
    await new Promise((resolve) => setTimeout(resolve, SILENCE_MS));
    assert.deepEqual([receiver.spans, receiver.metrics], [[], []]);
  });
});

/** A running receiver. */
type OtlpReceiver = ReturnType<typeof openOtlpReceiver>;

const KINDS = ["", "internal", "server", "client"] as const;
const ERROR_STATUS = 2;

/** Starts a receiver on a free port. */
function openOtlpReceiver() {
  const spans: ReturnType<typeof spanOf>[] = [];
  const metrics: ReturnType<typeof metricOf>[] = [];
  /** The bodies of all requests. */
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
          metrics.push(...read.map((metric: Json) => metricOf(scope.name, metric)));
        }
      }
      return Response.json({ partialSuccess: {} });
    },
  );
  return {
    /** The variables of a process that sends here, without the one that turns telemetry on. */
    env: {
      OTEL_DENO_TRACING: "false",
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${server.addr.port}`,
      OTEL_BSP_SCHEDULE_DELAY: "100",
      OTEL_METRIC_EXPORT_INTERVAL: "500",
    },
    ...{ spans, metrics, texts },
    close: () => server.shutdown(),
  };
}

// deno-lint-ignore no-explicit-any
type Json = any;

/** Reads a span that has ended. The first one of a trace has no parent. */
function spanOf({ name, kind, traceId, spanId, parentSpanId, status, attributes }: Json) {
  return {
    name: name as string,
    kind: KINDS[kind as number],
    trace_id: traceId as string,
    id: spanId as string,
    parent_id: parentSpanId as string | undefined,
    failed: status?.code === ERROR_STATUS,
    attributes: valuesOf(attributes),
  };
}

/** Reads a metric with the attributes of its series. */
function metricOf(scope: string, { name, unit, histogram, sum, gauge }: Json) {
  const { dataPoints } = histogram ?? sum ?? gauge;
  const series: Json[] = dataPoints.map((point: Json) => valuesOf(point.attributes));
  return { scope, series, name: name as string, unit: unit as string };
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
