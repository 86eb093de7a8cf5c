/**
 * The committed test vectors equal the output of their generator. After a change of the cases run
 * `UPDATE_VECTORS=1 deno test -A tests/client/webhook_vectors_test.ts`, then read the difference.
 */

import assert from "node:assert/strict";
import {
  DEFAULT_TOLERANCE_SECONDS,
  WEBHOOK_SIGNATURE_HEADER,
} from "../../packages/client/webhook_signature.ts";
import { Event } from "../../shared/schema/event.ts";
import { Payment } from "../../shared/schema/payment.ts";
import { Refund } from "../../shared/schema/refund.ts";
import { webhookVectors } from "../support/client/webhook_vector_cases.ts";

const FILE = new URL("../../packages/client/test_vectors/webhook_signatures.json", import.meta.url);

/** The whole file: its description, then each vector on its line. */
function makeFile(): string {
  const file = {
    description:
      "Verification of webhooks. For each vector: verify `body` (text, sent as UTF-8) or " +
      "`body_base64` with `header`, `secret` and the clock at `now` (Unix seconds). `expect` is " +
      "valid, or why it is refused. Format: docs/webhook_verification.md.",
    header_name: WEBHOOK_SIGNATURE_HEADER,
    tolerance_seconds: DEFAULT_TOLERANCE_SECONDS,
    vectors: [],
  };
  const vectors = webhookVectors().map((vector) => `    ${JSON.stringify(vector)}`);
  return JSON.stringify(file, null, 2).replace("[]", () => `[\n${vectors.join(",\n")}\n  ]`) + "\n";
}

Deno.test("webhookVectors() makes the committed file, byte for byte", async () => {
  if (Deno.env.get("UPDATE_VECTORS") === "1") await Deno.writeTextFile(FILE, makeFile());
  assert.equal(await Deno.readTextFile(FILE), makeFile());
});

/** Events with members of newer releases, so that every receiver is tried with them. */
const EVENT_TYPES: readonly [type: string, livemode: boolean][] = [
  ["payment.requires_action", false],
  ["payment.authorized", false],
  ["refund.created", false],
  ["refund.completed", false],
  ["refund.failed", false],
  ["payment.partially_refunded", false],
  ["payment.completed", true],
];

for (const [type, livemode] of EVENT_TYPES) {
  const name = `webhookVectors() has ${livemode ? "a live" : "a test"} event ${type}, complete`;
  Deno.test(name, async () => {
    const { vectors } = JSON.parse(await Deno.readTextFile(FILE)) as {
      vectors: { body?: string; expect: string }[];
    };
    const bodies = vectors.flatMap(({ body, expect }) =>
      expect === "valid" && body?.includes(`"type":"${type}"`) ? [body] : []
    );
    const [event] = bodies.map((body) => JSON.parse(body))
      .filter((event) => event.livemode === livemode && event.data.object.created_at);
    assert.ok(event, type);
    // A member that the schema does not know, or that the event lacks, is a difference.
    assert.deepEqual(Event.parse(event), event);
    const { object } = event.data;
    const shape = object.object === "payment" ? Payment.shape : Refund.shape;
    assert.deepEqual(Object.keys(object), Object.keys(shape));
  });
}

Deno.test("webhookVectors() has at least 60 vectors, and no name twice", () => {
  const names = webhookVectors().map((vector) => vector.name);
  assert.ok(names.length >= 60, `${names.length} vectors`);
  assert.equal(new Set(names).size, names.length);
});

Deno.test("webhookVectors() expects every outcome at least twice", () => {
  const counts = new Map<string, number>();
  for (const { expect } of webhookVectors()) counts.set(expect, (counts.get(expect) ?? 0) + 1);
  assert.deepEqual([...counts.keys()].sort(), [
    "invalid_payload",
    "malformed_header",
    "missing_header",
    "missing_secret",
    "no_matching_signature",
    "timestamp_outside_tolerance",
    "valid",
  ]);
  for (const [expect, count] of counts) assert.ok(count >= 2, expect);
});
