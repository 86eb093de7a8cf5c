/**
 * Requests that move a payment: the rows that each writes, where it is refused, and its events
 * (contract §2, §4). tests/domain has every status with every move.
 */

import assert from "node:assert/strict";
import type { TestService } from "../support/service/service.ts";
import { changesBetween, recordOf } from "../support/database/payment_records.ts";
import {
  ADVANCE_ADDRESSES,
  assertRefused,
  paymentIn,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

const MADE_AT = Date.parse("2026-05-01T10:00:00.000Z");
const MOVED = "2026-05-02T11:12:13.141Z";

/** A request that moves a payment from a status, and its effect. */
interface Move {
  name: string;
  address: (id: string) => string;
  body?: Record<string, unknown>;
  from: string;
  http?: number;
  /** By default one of the new status. */
  events?: string[];
  ledger?: string[];
  /** The members that it changes, besides the sequence and the time. */
  members: Record<string, unknown>;
  /** A status in which it is refused, and the statuses that can follow that one. */
  refused: [status: string, allowed: string];
}

const COMPLETED = { status: "completed", completed_at: MOVED, amount_captured: 1000 };
const FROM_COMPLETED = "partially_refunded refunded chargeback";

const MOVES: Move[] = [
  {
    name: "POST /payments/{id}/advance",
    address: ADVANCE_ADDRESSES[0],
    body: { to: "completed" },
    from: "pending",
    ledger: ["capture processor>available 1000 EUR"],
    members: COMPLETED,
    refused: ["cancelled", ""],
  },
  {
    name: "POST /v1/payments/{id}/capture of a part",
    address: (id) => `${PAYMENTS}/${id}/capture`,
    body: { amount: 400 },
    from: "authorized",
    ledger: ["capture processor>available 400 EUR"],
    members: { ...COMPLETED, amount_captured: 400, capture_before: null },
    refused: ["completed", FROM_COMPLETED],
  },
  {
    name: "POST /v1/payments/{id}/refund of the rest",
    address: (id) => `${PAYMENTS}/${id}/refund`,
    from: "partially_refunded",
    http: 201,
    events: ["refund.created", "refund.completed", "payment.refunded"],
    ledger: ["refund available>processor 600 EUR"],
    members: { status: "refunded", amount_refunded: 1000 },
    refused: ["chargeback", "completed"],
  },
  {
    name: "POST /v1/payments/{id}/authenticate failure",
    address: (id) => `${SANDBOX}/v1/payments/${id}/authenticate`,
    body: { result: "failure" },
    from: "requires_action",
    http: 402,
    members: {
      status: "declined",
      next_action: null,
      failure_code: "authentication_failed",
      failure_message: "The payer failed to authenticate",
      advice: "authenticate",
    },
    refused: ["completed", FROM_COMPLETED],
  },
];

serviceCase("a request that moves a payment", async (t, service) => {
  for (const [i, move] of MOVES.entries()) {
    const { name, address, body, from, refused: [wrong, allowed] } = move;
    const idempotency_key = i % 2 === 0 ? undefined : `key_${i}`;
    await t.step(
      `${name} from ${from} → ${move.members.status}`,
      () => assertMoved(service, move, idempotency_key),
    );
    await t.step(`${name} from ${wrong} → 409`, async () => {
      const payment = await paymentIn(service, wrong);
      const before = await recordOf(service, payment.id);
      const response = await service.call("POST", address(payment.id), { body });
      assertRefused(response, 409, "invalid_state");
      const { error } = response.body;
      assert.equal(error.current_status, wrong);
      assert.deepEqual(error.allowed.toSorted(), allowed.split(" ").filter(Boolean).sort());
      assert.equal((await recordOf(service, payment.id)).text, before.text);
    });
  }
});

/** Sends a request that moves a payment, and compares all its rows before and after. */
async function assertMoved(
  service: TestService,
  { address, body, from, http = 200, ledger = [], members, ...move }: Move,
  idempotency_key?: string,
): Promise<void> {
  service.trySetClock(MADE_AT);
  const payment = await paymentIn(service, from);
  const is_set = service.trySetClock(Date.parse(MOVED));
  const before = await recordOf(service, payment.id);
  const options = { body, ...(idempotency_key && { idempotency_key }) };
  const response = await service.call("POST", address(payment.id), options);
  const after = await recordOf(service, payment.id);
  assert.equal(response.status, http, response.text);
  const changes = changesBetween(before, after);
  const events = move.events ?? [`payment.${members.status}`];
  assert.deepEqual([changes.events, changes.ledger], [events, ledger]);
  assert.deepEqual(changes.sequences, changes.sequences.map((_, i) => i + 1));
  const stored = await service.call("GET", `${PAYMENTS}/${payment.id}`);
  const moved = is_set ? MOVED : stored.body.updated_at;
  const expected = {
    ...payment,
    ...JSON.parse(JSON.stringify(members).replaceAll(MOVED, moved)),
    sequence: changes.sequences.length,
    updated_at: moved,
  };
  assert.deepEqual(stored.body, expected);
  assert.equal(after.body, stored.text);
  if (http === 200) assert.equal(response.text, stored.text);
  if (http === 402) assert.deepEqual(response.body.error.payment, expected);
  const written = after.events.slice(before.events.length);
  assert.deepEqual(written.at(-1)!.payload.data.object, expected);
  // Each event names the request that has written it.
  const id = response.headers.get("Request-Id");
  for (const { payload } of written) {
    assert.deepEqual(payload.request, { id, idempotency_key: idempotency_key ?? null });
  }
}
