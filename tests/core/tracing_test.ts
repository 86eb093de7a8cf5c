import assert from "node:assert/strict";
import { span, traceparentOf } from "../../shared/core/tracing.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";

/** A header, and whether it is passed on. */
const HEADERS: [what: string, sent: string, is_taken: boolean][] = [
  ["a sampled trace", `00-${TRACE}-${SPAN}-01`, true],
  ["a trace that is not sampled", `00-${TRACE}-${SPAN}-00`, true],
  ["no text", "", false],
  ["any text", "trace 7", false],
  ["upper case", `00-${TRACE.toUpperCase()}-${SPAN}-01`, false],
  ["a trace of zeros", `00-${"0".repeat(32)}-${SPAN}-01`, false],
  ["a span of zeros", `00-${TRACE}-${"0".repeat(16)}-01`, false],
  ["the version that is never valid", `ff-${TRACE}-${SPAN}-01`, false],
  ["a later version", `01-${TRACE}-${SPAN}-01-more`, false],
  ["a longer text", `00-${TRACE}-${SPAN}-01-more`, false],
  ["a shorter text", `00-${TRACE}-${SPAN}`, false],
  ["two headers", `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`, false],
  ["a line end", `00-${TRACE}-${SPAN}-01\n`, false],
  ["8 000 characters", "0".repeat(8_000), false],
];

for (const [what, sent, is_taken] of HEADERS) {
  Deno.test(`traceparentOf() ${is_taken ? "passes on" : "ignores"} ${what}`, () => {
    assert.equal(traceparentOf(sent), is_taken ? sent : null);
  });
}

Deno.test("traceparentOf() of a request without the header is null", () => {
  assert.equal(traceparentOf(undefined), null);
});

Deno.test("span() without telemetry only calls its function", async () => {
  const promise = Promise.resolve(1);
  assert.equal(span("one", () => promise), promise);
  assert.equal(span("two", () => 2), 2);
  const error = new Error("three");
  assert.throws(() => span("three", () => raise(error)), error);
  await promise;
});

function raise(error: Error): never {
  throw error;
}
