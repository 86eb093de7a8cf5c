/**
 * One state machine: only `applyEvent` moves a payment, refund, dispute or transfer. The steps that
 * write a status stand in four modules, and only the rules that apply provider events import them.
 */

import assert from "node:assert/strict";
import { readModules } from "../support/documents/imports.ts";

/** The modules with the steps, and the functions in them that move nothing. */
const STEPS = new Map<string, readonly string[]>([
  ["shared/domain/payments/payment_steps.ts", ["CAPTURE_WINDOW_MS", "FAILURES", "declineResponse"]],
  ["shared/domain/payments/refund_payment.ts", ["refundOf", "sampleRefund"]],
  [
    "shared/domain/payments/dispute_payment.ts",
    [
      "evidenceOf",
      "acceptanceOf",
      "StoredDispute",
      "isOpen",
      "sampleDispute",
      "invalidDisputeState",
    ],
  ],
  ["shared/domain/transfers/transfer_steps.ts", []],
]);
/** The rules, which `applyEvent` alone reaches. */
const RULES = [
  "shared/domain/payments/apply_to_payment.ts",
  "shared/domain/payments/apply_to_refund.ts",
  "shared/domain/payments/apply_to_dispute.ts",
  "shared/domain/payments/received_money.ts",
  "shared/domain/transfers/apply_to_transfer.ts",
];
/** Adds the event of a new payment or transfer. */
const BEGINNING = "shared/domain/operations/operations.ts";
const APPLY = "shared/domain/operations/apply_event.ts";

const modules = [...await readModules()].filter(([path]) => path.startsWith("shared/"));

Deno.test("only the steps write events of payments, refunds, disputes and transfers", () => {
  const writers = modules
    .filter(([, { text }]) => /\.add(Refund|Dispute)?Event\(/.test(text))
    .map(([path]) => path);
  assert.deepEqual(writers.sort(), [...STEPS.keys(), BEGINNING].sort());
});

Deno.test("only the card behind a token is amended without an event of its own", () => {
  const amended = modules.flatMap(([path, { text }]) =>
    [...text.matchAll(/\.amend\(\{ (\w+)/g)].map(([, member]) => `${path} ${member}`)
  );
  assert.deepEqual(amended, ["shared/domain/payments/apply_to_payment.ts method"]);
  const calls = modules.filter(([, { text }]) => text.includes(".amend("));
  assert.equal(calls.length, amended.length);
});

Deno.test("a new payment or transfer gets no other status from the one way of operations", () => {
  const [, { text }] = modules.find(([path]) => path === BEGINNING)!;
  const events = [...text.matchAll(/\.addEvent\("([a-z_.]+)"/g)].map(([, type]) => type);
  assert.deepEqual(events, ["payment.created", "transfer.created"]);
});

Deno.test("only the rules take the steps", () => {
  const others = modules.flatMap(([path, { imports }]) =>
    RULES.includes(path) || STEPS.has(path) ? [] : imports.flatMap(({ target, names }) => {
      const harmless = STEPS.get(target);
      if (!harmless) return [];
      return (names ?? ["*"]).filter((name) => !harmless.includes(name))
        .map((name) => `${path} imports ${name} of ${target}`);
    })
  );
  assert.deepEqual(others, []);
});

Deno.test("only applyEvent() calls the rules", () => {
  const others = modules.flatMap(([path, { imports }]) =>
    path === APPLY || RULES.includes(path)
      ? []
      : imports.filter(({ target }) => RULES.includes(target))
        .map(({ target }) => `${path} imports ${target}`)
  );
  assert.deepEqual(others, []);
});
