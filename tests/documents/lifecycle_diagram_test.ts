/** The diagram of docs/architecture.md has the statuses and moves of the lifecycle table. */

import assert from "node:assert/strict";
import { nextStatuses } from "../../shared/domain/payments/lifecycle.ts";
import { METHOD_KINDS, PAYMENT_STATUSES } from "../../shared/schema/payment.ts";
import { readProjectFile } from "../support/documents/project_files.ts";

/** The start and the end in the diagram. */
const OUTSIDE = "[*]";

const page = await readProjectFile("docs/architecture.md");
const [, diagram = ""] = /```mermaid\nstateDiagram-v2\n(.*?)```/s.exec(page) ?? [];
const arrows = [...diagram.matchAll(/^ *(\S+) --> ([^\s:]+)/gm)].map(([, from, to]) => [from, to]);

const standing = { amount_minor: 1000, amount_refunded: 0 };
const moves = PAYMENT_STATUSES.map((status) => ({
  status,
  next: new Set(
    METHOD_KINDS.flatMap((method_kind) => nextStatuses({ ...standing, status, method_kind })),
  ),
}));

Deno.test("docs/architecture.md shows every move of a payment and no other", () => {
  const shown = arrows.filter((ends) => !ends.includes(OUTSIDE)).map(String);
  const expected = moves.flatMap(({ status, next }) => [...next].map((to) => `${status},${to}`));
  assert.deepEqual(shown.sort(), expected.sort());
});

Deno.test("docs/architecture.md starts a payment as pending and ends it in final statuses", () => {
  assert.deepEqual(arrows.filter(([from]) => from === OUTSIDE), [[OUTSIDE, "pending"]]);
  const ends = arrows.filter(([, to]) => to === OUTSIDE).map(([from]) => from);
  const expected = moves.filter(({ next }) => next.size === 0).map(({ status }) => status);
  assert.deepEqual(ends.sort(), [...expected].sort());
});
