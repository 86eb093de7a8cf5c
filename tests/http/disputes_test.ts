/**
 * Disputes (contract §3): how they begin, the evidence that decides them, and their end, with the
 * events and the ledger. tests/model has every move of a dispute, also in time.
 */

import assert from "node:assert/strict";
import type { CallOptions, TestService } from "../support/service/service.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { changesBetween, recordOf } from "../support/database/payment_records.ts";
import {
  advance,
  ADVANCE_ADDRESSES,
  assertRefused,
  card,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

const DISPUTES = "/api-v1-payments/v1/disputes";
const MADE_AT = Date.parse("2026-06-07T08:09:10.111Z");
const AT = "2026-06-07T08:09:10.111Z";
const DUE_BY = "2026-06-14T08:09:10.111Z";
const WEEK_MS = 7 * 24 * 3_600_000;
const DISPUTED_CARD = card("4000 0000 0000 0259");
const BEGUN = ["dispute.created", "payment.chargeback"];

/** The disputes of a payment, newest first. */
async function disputesOf(service: TestService, payment_id: string) {
  const { body } = await service.call("GET", `${DISPUTES}?payment_id=${payment_id}`);
  return body.data;
}

/** Makes a payment that is disputed at once. Returns it with its dispute. */
async function disputed(service: TestService, body: Record<string, unknown> = DISPUTED_CARD) {
  const response = await service.pay(body);
  assert.deepEqual([response.status, response.body.status], [201, "chargeback"]);
  const [dispute] = await disputesOf(service, response.body.id);
  return { payment: response.body, dispute };
}

function send(
  service: TestService,
  id: string,
  body: Record<string, unknown>,
  options: CallOptions = {},
) {
  return service.call("POST", `${DISPUTES}/${id}/evidence`, { ...options, body });
}

function accept(service: TestService, id: string, options: CallOptions = {}) {
  return service.call("POST", `${DISPUTES}/${id}/accept`, options);
}

async function statusOf(service: TestService, id: string) {
  const { body } = await service.call("GET", `${PAYMENTS}/${id}`);
  return [body.status, body.amount_disputed];
}

/** Each way into a dispute: a create, further requests, its reason and amount. */
const BEGINNINGS: [
  name: string,
  create: Record<string, unknown>,
  requests: [address: (id: string) => string, body: Record<string, unknown>][],
  reason: string,
  amount: number,
][] = [
  ["the test card", DISPUTED_CARD, [], "fraudulent", 1000],
  [
    "a capture of a part",
    { ...DISPUTED_CARD, capture: "manual" },
    [
      [(id) => `${PAYMENTS}/${id}/capture`, { amount: 400 }],
    ],
    "fraudulent",
    400,
  ],
  ["the outcome chargeback", { outcome: "chargeback" }, [], "general", 1000],
  [
    "an advance after a partial refund",
    { outcome: "success" },
    [
      [(id) => `${PAYMENTS}/${id}/refund`, { amount: 300 }],
      [ADVANCE_ADDRESSES[0], { to: "chargeback", reason: "product_not_received" }],
    ],
    "product_not_received",
    700,
  ],
];

serviceCase("a dispute begins with its payment's chargeback", async (t, service) => {
  await service.setClock(MADE_AT);
  for (const [name, create, requests, reason, amount_minor] of BEGINNINGS) {
    await t.step(name, async () => {
      const { body: { id: payment_id } } = await service.pay(create);
      for (const [address, body] of requests) {
        const { status, text } = await service.call("POST", address(payment_id), { body });
        assert.ok(status < 300, text);
      }
      assert.deepEqual(await statusOf(service, payment_id), ["chargeback", amount_minor]);
      const [dispute, ...others] = await disputesOf(service, payment_id);
      assert.deepEqual(others, []);
      assert.match(dispute.id, /^dp_[0-9a-z]{26}$/);
      assert.deepEqual(dispute, {
        id: dispute.id,
        object: "dispute",
        payment_id,
        amount_minor,
        currency: "EUR",
        reason,
        status: "needs_response",
        evidence: null,
        evidence_due_by: DUE_BY,
        created_at: AT,
        closed_at: null,
      });
      const shown = await service.call("GET", `${DISPUTES}/${dispute.id}`);
      assert.deepEqual(shown.body, dispute);
      const { events, ledger } = await recordOf(service, payment_id);
      assert.deepEqual(events.slice(-2).map(({ type }) => type), BEGUN);
      assert.deepEqual(events.at(-2)!.payload.data.object, dispute);
      assert.deepEqual(events.map(({ sequence }) => sequence), events.map((_, i) => i + 1));
      const moved = `chargeback available>chargebacks ${amount_minor} EUR`;
      assert.ok([...ledger.values()].includes(moved));
    });
  }
  await assertSilent(service.sql);
});

const WINNING = { text: "winning_evidence" };

/** Each end: the payment and its books. */
const ENDS = [
  {
    status: "won",
    end: (service: TestService, id: string) => send(service, id, WINNING),
    payment: ["completed", 0],
    events: ["dispute.won", "payment.completed"],
    ledger: ["chargeback_reversal chargebacks>available 1000 EUR"],
  },
  {
    status: "lost",
    end: (service: TestService, id: string) => accept(service, id),
    payment: ["chargeback", 1000],
    events: ["dispute.lost"],
    ledger: [],
  },
];

serviceCase("a dispute ends once", async (t, service) => {
  await service.setClock(MADE_AT);
  for (const { status, end, payment: standing, events, ledger } of ENDS) {
    await t.step(status, async () => {
      const { payment, dispute } = await disputed(service);
      const before = await recordOf(service, payment.id);
      await end(service, dispute.id);
      const { body } = await service.call("GET", `${DISPUTES}/${dispute.id}`);
      assert.deepEqual([body.status, body.closed_at], [status, AT]);
      assert.deepEqual(await statusOf(service, payment.id), standing);
      const after = await recordOf(service, payment.id);
      const changes = changesBetween(before, after);
      assert.deepEqual([changes.events, changes.ledger], [events, ledger]);
      const newest = after.events.findLast(({ type }) => type.startsWith("dispute."))!;
      assert.deepEqual(newest.payload.data.object, body);
      const moves = [
        send(service, dispute.id, { ...WINNING, submit: false }),
        accept(service, dispute.id),
        ...(status === "lost" ? [advance(service, payment.id, "completed")] : []),
      ];
      for (const response of await Promise.all(moves)) {
        assertRefused(response, 409, "invalid_state");
        const { current_status, allowed, message } = response.body.error;
        assert.deepEqual([current_status, allowed], [status, []]);
        assert.match(message, new RegExp(`the dispute is ${status}$`));
      }
      assert.equal((await recordOf(service, payment.id)).text, after.text);
    });
  }
  await assertSilent(service.sql);
});

serviceCase("POST /v1/disputes/{id}/evidence saves, submits and refuses", async (t, service) => {
  await service.setClock(MADE_AT);
  await t.step("saved evidence is replaced and leaves the status", async () => {
    const { dispute } = await disputed(service);
    for (const text of ["A receipt", "winning_evidence"]) {
      const { status, body } = await send(service, dispute.id, { text, submit: false });
      assert.equal(status, 200);
      assert.deepEqual(body, { ...dispute, evidence: { text, submitted_at: null } });
    }
  });
  await t.step("submitted evidence is under review, and is not replaced", async () => {
    const { payment, dispute } = await disputed(service);
    const { body } = await send(service, dispute.id, { text: "A receipt" });
    const evidence = { text: "A receipt", submitted_at: AT };
    assert.deepEqual(body, { ...dispute, status: "under_review", evidence });
    const before = await recordOf(service, payment.id);
    const again = await send(service, dispute.id, WINNING);
    assertRefused(again, 409, "invalid_state");
    assert.deepEqual(again.body.error.allowed, ["won", "lost"]);
    assert.equal((await recordOf(service, payment.id)).text, before.text);
  });
  await t.step("evidence after its date is refused", async () => {
    const { payment, dispute } = await disputed(service);
    await service.setClock(MADE_AT + WEEK_MS + 1);
    const before = await recordOf(service, payment.id);
    const late = await send(service, dispute.id, WINNING);
    assertRefused(late, 409, "invalid_state");
    assert.match(late.body.error.message, /it was due by 2026-06-14T08:09:10\.111Z$/);
    assert.equal((await recordOf(service, payment.id)).text, before.text);
    await service.setClock(MADE_AT);
  });
  await t.step("races: one of many decides", async () => {
    const { payment, dispute } = await disputed(service);
    const responses = await Promise.all(
      Array.from(
        { length: 8 },
        (_, i) => i % 2 ? accept(service, dispute.id) : send(service, dispute.id, WINNING),
      ),
    );
    assert.equal(responses.filter(({ status }) => status === 200).length, 1);
    assert.equal(responses.filter(({ status }) => status === 409).length, 7);
    const { events } = await recordOf(service, payment.id);
    const ends = events.filter(({ type }) => type === "dispute.won" || type === "dispute.lost");
    assert.equal(ends.length, 1);
  });
  await t.step("the longest evidence is stored whole", async () => {
    const { dispute } = await disputed(service);
    const text = "é".repeat(20_000);
    const { body } = await send(service, dispute.id, { text });
    assert.equal(body.evidence.text, text);
  });
  await assertSilent(service.sql);
});

serviceCase("a dispute without evidence is lost after 7 days", async (_, service) => {
  await service.setClock(MADE_AT);
  const { payment } = await disputed(service);
  const before = await recordOf(service, payment.id);
  await service.setClock(MADE_AT + WEEK_MS);
  await service.deps.provider_worker.notify();
  const after = await recordOf(service, payment.id);
  const { events, ledger } = changesBetween(before, after);
  assert.deepEqual([events, ledger], [["dispute.lost"], []]);
  assert.deepEqual(after.events.at(-1)!.payload.request, { id: null, idempotency_key: null });
  assert.deepEqual(await statusOf(service, payment.id), ["chargeback", 1000]);
  await assertSilent(service.sql);
});

serviceCase("GET /v1/disputes filters", async (t, service) => {
  const made: string[] = [];
  for (let i = 0; i < 5; i++) made.unshift((await disputed(service)).dispute.id);
  await send(service, made[0]!, WINNING);
  await send(service, made[2]!, WINNING);
  const idsOf = async (query: string) => {
    const { status, body } = await service.call("GET", `${DISPUTES}?${query}`);
    assert.equal(status, 200);
    assert.equal(body.url, "/v1/disputes");
    return body.data.map(({ id }: { id: string }) => id);
  };
  await t.step("by status", async () => {
    assert.deepEqual(await idsOf("status=won"), [made[0], made[2]]);
    assert.deepEqual(await idsOf("status=lost"), []);
    assert.deepEqual(await idsOf("status=needs_response"), [made[1], made[3], made[4]]);
  });
  await t.step("by payment and status", async () => {
    const { body } = await service.call("GET", `${DISPUTES}/${made[0]}`);
    const { payment_id } = body;
    assert.deepEqual(await idsOf(`payment_id=${payment_id}`), [made[0]]);
    assert.deepEqual(await idsOf(`payment_id=${payment_id}&status=lost`), []);
  });
  await t.step("refuses an unknown status and cursor", async () => {
    const unknown = await service.call("GET", `${DISPUTES}?status=open`);
    assertRefused(unknown, 400, "invalid_parameter", "status");
    const cursor = await service.call("GET", `${DISPUTES}?starting_after=dp_${"0".repeat(26)}`);
    assertRefused(cursor, 400, "invalid_parameter", "starting_after");
  });
  await t.step("a reset removes them", async () => {
    await service.call("POST", `${SANDBOX}/reset`);
    assert.deepEqual(await idsOf(""), []);
    assertRefused(await service.call("GET", `${DISPUTES}/${made[0]}`), 404, "not_found");
  });
});
