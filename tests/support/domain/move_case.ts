/**
 * Registers a test for each decided move of a payment at sequence 3: its response, its events, its
 * movements, its refunds and the members that it changes.
 */

import assert from "node:assert/strict";
import type * as z from "zod";
import { parseBody } from "../../../shared/http/parse_input.ts";
import type { Payment } from "../../../shared/schema/payment.ts";
import type { Change } from "../../../shared/store/commit_rows.ts";
import { readBody } from "../http/read_body.ts";
import { NOW, refusalOf, summaryOf } from "./decided_change.ts";

/** Decides a move. Null: the payment stays as it is. */
export type Decide = (payment: Payment) => Change | null;

/** A move and its result. */
export interface MoveCase {
  name: string;
  payment: Payment;
  decide: Decide;
  /** By default 200. */
  http?: number;
  /** Types of the events; the first has sequence 4. By default one of the new status. */
  events?: string[];
  /** Movements, as `summaryOf` writes them. By default none. */
  ledger?: string[];
  /** Refunds, as `summaryOf` writes them. */
  refunds?: string[];
  /** The members of the payment that the move changes. */
  members: Partial<Payment>;
}

/** Registers a test for each move. */
export function testMoves(cases: readonly MoveCase[]): void {
  for (const { name, ...move } of cases) {
    const { status = move.payment.status } = move.members;
    Deno.test(`${name} → ${move.http ?? 200} ${status}`, () => assertMove(move));
  }
}

/** Registers a test for each refused move, with the code and the field of its refusal. */
export function testRefusals(
  cases: readonly [name: string, Payment, Decide, refusal: string][],
): void {
  for (const [name, payment, decide, refusal] of cases) {
    Deno.test(`${name} is ${refusal}`, () => {
      assert.equal(refusalOf(() => decide(payment)), refusal);
    });
  }
}

/** A body as it is sent: a text, or its members. */
export type SentBody = string | Record<string, unknown>;

/** Registers a test for each body: the field that is refused, or null if the body is taken. */
export function testBodies(
  name: string,
  rows: readonly (readonly [param: string | null, ...bodies: SentBody[]])[],
  send: (body: SentBody) => unknown,
): void {
  for (const [param, ...bodies] of rows) {
    const expected = param === null ? "none" : `invalid_parameter ${param}`;
    for (const body of bodies) {
      const shown = (typeof body === "string" ? body : JSON.stringify(body)).slice(0, 90);
      Deno.test(`the body of ${name}: ${shown} → ${param ?? "accepted"}`, () => {
        assert.equal(refusalOf(() => send(body)), expected);
      });
    }
  }
}

/** Returns what reads a body by its schema. */
export function parsed(schema: z.ZodType): (body: SentBody) => unknown {
  return (body) => parseBody<unknown>(schema, readBody(body, schema));
}

/** Asserts the result of a move. */
export function assertMove(move: Omit<MoveCase, "name">): void {
  const { payment, decide, http = 200, ledger = [], refunds = [], members } = move;
  const types = move.events ?? [`payment.${members.status}`];
  const before = structuredClone(payment);
  const change = decide(payment)!;
  assert.deepEqual(payment, before, "the payment that was given is left as it was");
  const events = types.map((type, i) => `${4 + i} ${type}`);
  assert.deepEqual(summaryOf(change), { events, ledger, refunds });
  assert.deepEqual(change.expects, { id: payment.id, sequence: 3 });
  const sequence = 3 + events.length;
  const expected = { ...payment, ...members, sequence, updated_at: NOW };
  const { body, ...row } = change.payment!;
  assert.deepEqual(JSON.parse(body), expected);
  const { amount_minor, amount_captured } = expected;
  assert.equal(row.amount_released, amount_captured === 0 ? 0 : amount_minor - amount_captured);
  for (
    const name of ["status", "amount_refunded", "amount_refunding", "amount_disputed"] as const
  ) {
    assert.equal(row[name], expected[name], name);
  }
  assert.equal(row.sequence, sequence);
  assertResponse(change, http, expected);
}

/** 200 shows the payment or the refund, 201 a new refund, and 402 an error with the payment. */
function assertResponse(
  { response, payment, refunds, ledger }: Change,
  http: number,
  shown: Payment,
) {
  assert.equal(response.status, http);
  if (http === 402) {
    assert.deepEqual(JSON.parse(response.body).error.payment, shown);
    return;
  }
  const is_refund = response.body.startsWith('{"id":"re_');
  assert.equal(is_refund || http === 200, true);
  assert.equal(response.body, is_refund ? refunds[0]!.body : payment!.body);
  for (const { kind, refund_id } of ledger) {
    assert.equal(refund_id, kind.startsWith("refund") ? refunds[0]!.id : null);
  }
}
