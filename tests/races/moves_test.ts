/**
 * Concurrent moves of one payment on two instances. The responses match a legal order of the
 * requests by the model of the lifecycle, and the stored payment is the result of that order:
 * refunds never exceed their payment. Of collections under a mandate that must be alone one wins.
 */

import assert from "node:assert/strict";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import {
  expectCreate,
  expectMove,
  type Move,
  type Standing,
} from "../support/model/payment_model.ts";
import { type Ask, ASKS, raceCase, sizeOf } from "../support/service/two_instances.ts";

/** Rounds of each race of moves. */
const ROUNDS = sizeOf("ROUNDS", 100);

const AMOUNT = 1000;

/** Moves by name: the request, and the move of the model. */
const MOVES: Record<string, [ask: (id: string) => Ask, move: Move]> = {
  cancel: [ASKS.cancel, { do: "cancel" }],
  complete: [(id) => ASKS.advance(id, "completed"), { do: "advance", to: "completed" }],
  decline: [(id) => ASKS.advance(id, "declined"), { do: "advance", to: "declined" }],
  refund: [(id) => ASKS.refund(id), { do: "refund", amount: null }],
  refund_part: [(id) => ASKS.refund(id, 400), { do: "refund", amount: 400 }],
  charge_back: [(id) => ASKS.advance(id, "chargeback"), { do: "advance", to: "chargeback" }],
};

const RACES: [outcome: string, moves: string[]][] = [
  ["pending", ["cancel", "complete", "refund"]],
  ["pending", ["cancel", "complete", "decline"]],
  ["pending", ["complete", "complete", "refund_part", "cancel"]],
  ["success", ["refund", "refund_part", "charge_back"]],
  ["success", ["refund_part", "refund_part", "refund_part", "charge_back", "cancel"]],
  ["success", ["refund_part", "refund_part", "refund_part", "refund_part", "refund"]],
];

raceCase("concurrent moves of one payment", async (t, two) => {
  for (const [outcome, moves] of RACES) {
    await t.step(`${moves.join(" against ")}: a legal order explains each round`, async () => {
      const orders = new Set<string>();
      for (let round = 0; round < ROUNDS; round++) {
        const { id } = (await two.service.make({ outcome })).body;
        // The first request alternates, so that each move can win.
        const turned = [
          ...moves.slice(round % moves.length),
          ...moves.slice(0, round % moves.length),
        ];
        const told = await two.race(turned.map((name) => MOVES[name]![0](id)));
        const responses = told.map(({ status, body }) =>
          status === 400
            ? "400"
            : `${status} ${body.error?.current_status ?? body.payment_status ?? body.status}`
        );
        const [stored] = await two.service.sql<Pick<Standing, "status" | "refunded">[]>`
          select status, amount_refunded::int as refunded from pay.payments where id = ${id}`;
        const start = expectCreate("none", outcome, AMOUNT, true).next;
        const legal = permutations(turned.map((_, i) => i)).filter((order) =>
          explains(order, turned, responses, start, stored!)
        );
        assert.ok(legal.length > 0, `${turned}: ${responses}, then ${JSON.stringify(stored)}`);
        orders.add(responses.toString());
      }
      assert.ok(orders.size > 1, "every round had the same order, so the moves did not race");
      await assertSilent(two.service.sql);
    });
  }
});

function explains(
  order: readonly number[],
  moves: readonly string[],
  responses: readonly string[],
  start: Standing,
  end: Pick<Standing, "status" | "refunded">,
): boolean {
  let model = start;
  for (const i of order) {
    const { http, next } = expectMove(model, MOVES[moves[i]!]![1]);
    if (responses[i] !== (http === 400 ? "400" : `${http} ${next.status}`)) return false;
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

const IBANS = ["DE89370400440532013000", "DE69512108001245133000"];
/** Collections at once under one mandate, and the rounds. */
const COLLECTIONS = 8;
const MANDATES = sizeOf("ROUNDS", 10);

raceCase(`${COLLECTIONS} concurrent collections under one mandate`, async (t, two) => {
  const collect = (id: string, sequence: string, iban = IBANS[0]!, more: object = {}) =>
    ASKS.create({ iban, mandate: { id, signed_at: new Date().toISOString(), sequence }, ...more });
  for (const sequence of ["first", "one_off"]) {
    await t.step(`one ${sequence} wins, the others are refused`, async () => {
      for (let round = 0; round < MANDATES; round++) {
        const request = collect(`${sequence.length} ${round}`, sequence);
        const told = await two.race(Array.from({ length: COLLECTIONS }, () => request));
        const statuses = told.map(({ status }) => status).sort();
        assert.deepEqual(statuses, [201, ...Array(COLLECTIONS - 1).fill(400)]);
      }
    });
  }
  await t.step("recurring ones of one account win, and those of another are refused", async () => {
    for (let round = 0; round < MANDATES; round++) {
      const told = await two.race(
        Array.from(
          { length: COLLECTIONS },
          // Each instance gets every second one, so both accounts are in its commit.
          (_, i) => collect(`R ${round}`, "recurring", IBANS[round % 2 * (i >> 1) % 2]),
        ),
      );
      const won = told.filter(({ status }) => status === 201).length;
      assert.equal(won, round % 2 === 0 ? COLLECTIONS : COLLECTIONS / 2);
      assert.equal(told.filter(({ status }) => status === 400).length, COLLECTIONS - won);
    }
  });
  await t.step("of two that save it for different customers one wins", async () => {
    for (let round = 0; round < MANDATES; round++) {
      const told = await two.race(
        IBANS.map((iban, i) =>
          collect(`S ${round}`, "recurring", iban, {
            save: "off_session",
            customer: { id: `of ${round} ${i}`, email: "a@example.com" },
          })
        ),
      );
      assert.deepEqual(told.map(({ status }) => status).sort(), [201, 400]);
      assert.equal(told.find(({ status }) => status === 400)!.body.error.param, "mandate.id");
    }
  });
  await t.step("a final one ends the mandate for those that come later", async () => {
    for (let round = 0; round < MANDATES; round++) {
      const id = `final ${round}`;
      const requests = ["recurring", "recurring", "final", "recurring", "recurring", "final"];
      const told = await two.race(requests.map((sequence) => collect(id, sequence)));
      const finals = [told[2]!, told[5]!].map(({ status }) => status).sort();
      assert.deepEqual(finals, [201, 400]);
      const late = await two.post(0, collect(id, "recurring"));
      assert.deepEqual([late.status, late.body.error.param], [400, "mandate.id"]);
    }
  });
  await assertSilent(two.service.sql);
});
