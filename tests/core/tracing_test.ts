import assert from "node:assert/strict";
import { span, traceparentOf } from "../../shared/core/tracing.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";

const SAMPLED = `00-${TRACE}-${SPAN}-01`;
/** Headers that are not passed on. */
const IGNORED = [
  ...[undefined, "", "trace 7", SAMPLED.toUpperCase(), "0".repeat(8_000)],
  ...[SAMPLED.replace(TRACE, "0".repeat(32)), SAMPLED.replace(SPAN, "0".repeat(16))],
  // The version that is never valid, and a later one.
  ...[SAMPLED.replace("00-", "ff-"), `01-${TRACE}-${SPAN}-01-more`],
  ...[`${SAMPLED}-more`, SAMPLED.slice(0, -3), `${SAMPLED}, ${SAMPLED}`, `${SAMPLED}\n`],
];

Deno.test("traceparentOf() passes on a trace, sampled or not, and ignores all other text", () => {
  for (const sent of [SAMPLED, SAMPLED.replace(/1$/, "0")]) {
    assert.equal(traceparentOf(sent), sent);
  }
  for (const sent of IGNORED) assert.equal(traceparentOf(sent), null, sent);
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
