/**
 * Concurrent moves of one payment on two instances. The responses match a legal order of the
 * requests, and the stored payment is the result of that order. The model of the lifecycle in this
 * file shares no code with the service.
 */

import assert from "node:assert/strict";
import {
  type Ask,
  ASKS,
  assertSound,
  sizeOf,
  startTwoInstances,
} from "../support/service/two_instances.ts";

const ROUNDS = sizeOf("ROUNDS", 100);

type Model = { status: string; refunded: number };
/** The response to a move in a state, and the state after it. */
type Move = (model: Model) => { response: string; next: Model };

const AMOUNT = 1000;
const refuse = (model: Model) => ({ response: `409 ${model.status}`, next: model });

/** Moves by name: the request, and its effect in the model. */
const MOVES: Record<string, { ask: (id: string) => Ask; move: Move }> = {
  cancel: {
    ask: (id) => ASKS.cancel(id),
    move: (model) =>
      ["pending", "requires_action"].includes(model.status)
        ? { response: "200 cancelled", next: { ...model, status: "cancelled" } }
        : refuse(model),
  },
  complete: {
    ask: (id) => ASKS.advance(id, "completed"),
    move: (model) =>
      ["pending", "completed"].includes(model.status)
        ? { response: "200 completed", next: { ...model, status: "completed" } }
        : refuse(model),
  },
  decline: {
    ask: (id) => ASKS.advance(id, "declined"),
    move: (model) =>
      ["pending", "declined"].includes(model.status)
        ? { response: "200 declined", next: { ...model, status: "declined" } }
        : refuse(model),
  },
  refund: {
    ask: (id) => ASKS.refund(id),
    move: (model) =>
      ["completed", "partially_refunded"].includes(model.status)
        ? { response: "201 refunded", next: { status: "refunded", refunded: AMOUNT } }
        : refuse(model),
  },
  refund_part: {
    ask: (id) => ASKS.refund(id, 400),
    move: (model) => {
      if (!["completed", "partially_refunded"].includes(model.status)) return refuse(model);
      if (AMOUNT - model.refunded < 400) return { response: "400", next: model };
      const next = { status: "partially_refunded", refunded: model.refunded + 400 };
      return { response: "201 partially_refunded", next };
    },
  },
  charge_back: {
    ask: (id) => ASKS.advance(id, "chargeback"),
    move: (model) =>
      ["completed", "partially_refunded", "chargeback"].includes(model.status)
        ? { response: "200 chargeback", next: { ...model, status: "chargeback" } }
        : refuse(model),
  },
};

const RACES: [outcome: string, start: string, moves: string[]][] = [
  ["pending", "pending", ["cancel", "complete", "refund"]],
  ["pending", "pending", ["cancel", "complete", "decline"]],
  ["pending", "pending", ["complete", "complete", "refund_part", "cancel"]],
  ["success", "completed", ["refund", "refund_part", "charge_back"]],
  ["success", "completed", ["refund_part", "refund_part", "refund_part", "charge_back", "cancel"]],
];

Deno.test("concurrent moves of one payment", async (t) => {
  const two = await startTwoInstances();
  try {
    for (const [outcome, start, moves] of RACES) {
      await t.step(
        `${moves.join(" against ")}: a legal order explains ${ROUNDS} rounds`,
        async () => {
          const orders = new Set<string>();
          for (let round = 0; round < ROUNDS; round++) {
            const { id } = (await two.service.make({ outcome })).body;
            // The first request alternates, so that each move can win.
            const turned = [
              ...moves.slice(round % moves.length),
              ...moves.slice(0, round % moves.length),
            ];
            const told = await two.race(turned.map((name) => MOVES[name]!.ask(id)));
            const responses = told.map(({ status, body }) =>
              status === 400
                ? "400"
                : `${status} ${body.error?.current_status ?? body.payment_status ?? body.status}`
            );
            const [stored] = await two.service.sql<Model[]>`
            select status, amount_refunded::int as refunded from pay.payments where id = ${id}`;
            const legal = permutations(turned.map((_, i) => i)).filter((order) =>
              explains(order, turned, responses, { status: start, refunded: 0 }, stored!)
            );
            assert.ok(legal.length > 0, `${turned}: ${responses}, then ${JSON.stringify(stored)}`);
            orders.add(responses.toString());
          }
          assert.ok(orders.size > 1, "every round had the same order, so the moves did not race");
          await assertSound(two.service);
        },
      );
    }
  } finally {
    await two.close();
  }
});

function explains(
  order: readonly number[],
  moves: readonly string[],
  responses: readonly string[],
  start: Model,
  end: Model,
): boolean {
  let model = start;
  for (const i of order) {
    const { response, next } = MOVES[moves[i]!]!.move(model);
    if (response !== responses[i]) return false;
    model = next;
  }
  return model.status === end.status && model.refunded === end.refunded;
}

function permutations(items: readonly number[]): number[][] {
  if (items.length <= 1) return [[...items]];
  return items.flatMap((item) =>
    permutations(items.filter((other) => other !== item)).map((rest) => [item, ...rest])
  );
}
