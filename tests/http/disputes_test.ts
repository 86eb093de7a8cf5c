/**
 * Disputes (contract §3): how they begin, the evidence that decides them, and their end. Each
 * change is compared with the events and the ledger.
 */

import assert from "node:assert/strict";
import type { CallOptions, TestService } from "../support/service/service.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { changesBetween, recordOf } from "../support/database/payment_records.ts";
import {
  advance,
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

/** Each way into a dispute: its reason, amount and ledger. */
const BEGINNINGS: [
  name: string,
  begin: (service: TestService) => Promise<string>,
  reason: string,
  amount: number,
][] = [
  [
    "the test card",
    async (service) => {
      return (await service.pay(DISPUTED_CARD)).body.id;
    },
    "fraudulent",
    1000,
  ],
  [
    "a capture of a part of the test card",
    async (service) => {
      const { body } = await service.pay({ ...DISPUTED_CARD, capture: "manual" });
      assert.equal(body.status, "authorized");
      const captured = await service.call("POST", `${PAYMENTS}/${body.id}/capture`, {
        body: { amount: 400 },
      });
      assert.deepEqual([captured.body.status, captured.body.amount_disputed], ["chargeback", 400]);
      return body.id;
    },
    "fraudulent",
    400,
  ],
  [
    "the outcome chargeback",
    async (service) => {
      return (await service.pay({ outcome: "chargeback" })).body.id;
    },
    "general",
    1000,
  ],
  [
    "an advance after a partial refund",
    async (service) => {
      const { body } = await service.pay({ outcome: "success" });
      await service.call("POST", `${PAYMENTS}/${body.id}/refund`, { body: { amount: 300 } });
      const reason = "product_not_received";
      await service.call("POST", `${SANDBOX}/payments/${body.id}/advance`, {
        body: { to: "chargeback", reason },
      });
      return body.id;
    },
    "product_not_received",
    700,
  ],
];

serviceCase("a dispute begins with its payment's chargeback", async (t, service) => {
  await service.setClock(MADE_AT);
  for (const [name, begin, reason, amount_minor] of BEGINNINGS) {
    await t.step(name, async () => {
      const payment_id = await begin(service);
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

/** The payment and its books after each end of a dispute. */
const RESULTS = {
  won: {
    payment: ["completed", 0],
    events: ["dispute.won", "payment.completed"],
    ledger: ["chargeback_reversal chargebacks>available 1000 EUR"],
  },
  lost: { payment: ["chargeback", 1000], events: ["dispute.lost"], ledger: [] },
};
type Ids = { id: string; payment_id: string };
const RECEIPT = { text: "A signed receipt" };
const WINNING = { text: "winning_evidence" };

/** Each end: its requests, the dispute after it, and whether an event tells of evidence first. */
const ENDS: [
  name: string,
  end: (service: TestService, ids: Ids) => Promise<unknown>,
  status: "won" | "lost",
  is_updated?: boolean,
][] = [
  ["winning evidence", (service, { id }) => send(service, id, WINNING), "won"],
  [
    "losing evidence",
    (service, { id }) => send(service, id, { text: "losing_evidence", submit: true }),
    "lost",
  ],
  ["an acceptance", (service, { id }) => accept(service, id), "lost"],
  [
    "an advance of evidence under review",
    async (service, { id, payment_id }) => {
      await send(service, id, RECEIPT);
      await advance(service, payment_id, "completed");
    },
    "won",
    true,
  ],
];

serviceCase("a dispute ends once", async (t, service) => {
  await service.setClock(MADE_AT);
  for (const [i, [name, end, status, is_updated]] of ENDS.entries()) {
    const { payment: standing, events, ledger } = RESULTS[status];
    await t.step(`by ${name}: ${status}`, async () => {
      const { payment, dispute } = await disputed(service);
      const before = await recordOf(service, payment.id);
      await end(service, { id: dispute.id, payment_id: payment.id });
      const { body } = await service.call("GET", `${DISPUTES}/${dispute.id}`);
      assert.deepEqual([body.status, body.closed_at], [status, AT]);
      assert.deepEqual(await statusOf(service, payment.id), standing);
      const after = await recordOf(service, payment.id);
      const changes = changesBetween(before, after);
      const first = is_updated ? ["dispute.updated"] : [];
      assert.deepEqual([changes.events, changes.ledger], [[...first, ...events], ledger]);
      assert.deepEqual(changes.sequences, after.events.map((_, i) => i + 1));
      const newest = after.events.findLast(({ type }) => type.startsWith("dispute."))!;
      assert.deepEqual(newest.payload.data.object, body);
      // The first two are won and lost. Nothing more can happen to either.
      if (i > 1) return;
      const moves = [
        send(service, dispute.id, WINNING),
        send(service, dispute.id, { ...WINNING, submit: false }),
        accept(service, dispute.id),
        ...(status === "lost" ? [advance(service, dispute.payment_id, "completed")] : []),
      ];
      for (const response of await Promise.all(moves)) {
        assertRefused(response, 409, "invalid_state");
        const { current_status, allowed, message } = response.body.error;
        assert.deepEqual([current_status, allowed], [status, []]);
        assert.match(message, new RegExp(`the dispute is ${status}$`));
      }
      assert.equal((await recordOf(service, dispute.payment_id)).text, after.text);
    });
  }
  await t.step("a payment that was disputed and won can be disputed again", async () => {
    const { payment, dispute } = await disputed(service);
    await send(service, dispute.id, WINNING);
    await advance(service, payment.id, "chargeback");
    const both = await disputesOf(service, payment.id);
    // Within one millisecond the ids of two requests have no order.
    const first = both.find(({ id }: { id: string }) => id === dispute.id);
    const second = both.find(({ id }: { id: string }) => id !== dispute.id);
    assert.deepEqual([both.length, second.status, first], [2, "needs_response", {
      ...dispute,
      status: "won",
      evidence: { text: "winning_evidence", submitted_at: AT },
      closed_at: AT,
    }]);
    await advance(service, payment.id, "completed");
    const ended = await service.call("GET", `${DISPUTES}/${second.id}`);
    assert.equal(ended.body.status, "won");
  });
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
  await t.step("evidence after its date is refused, until then it is taken", async () => {
    const { payment, dispute } = await disputed(service);
    const { dispute: other } = await disputed(service);
    await service.setClock(MADE_AT + WEEK_MS);
    assert.equal((await send(service, other.id, WINNING)).body.status, "won");
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
  const { dispute } = await disputed(service);
  const BAD: [body: unknown, param: string][] = [
    [{}, "text"],
    [{ text: "4242 4242 4242 4242" }, "text"],
  ];
  for (const [body, param] of BAD) {
    await t.step(`refuses ${JSON.stringify(body).slice(0, 40)}`, async () => {
      const response = await send(service, dispute.id, body as Record<string, unknown>);
      assertRefused(response, 400, "invalid_parameter", param);
    });
  }
  await t.step("the longest evidence is stored whole", async () => {
    const text = "é".repeat(20_000);
    const { body } = await send(service, dispute.id, { text });
    assert.equal(body.evidence.text, text);
  });
  await assertSilent(service.sql);
});

serviceCase("a dispute without evidence is lost after 7 days", async (t, service) => {
  const CASES: [
    name: string,
    move: (ids: Ids) => Promise<unknown>,
    statuses: [before: string, after: string],
  ][] = [
    ["nothing", () => Promise.resolve(), ["needs_response", "lost"]],
    ["evidence", ({ id }) => send(service, id, { text: "A receipt" }), [
      "under_review",
      "under_review",
    ]],
    ["an advance and another dispute", async ({ payment_id }) => {
      await advance(service, payment_id, "completed");
      await service.setClock(MADE_AT + 1000);
      await advance(service, payment_id, "chargeback");
    }, ["won", "won"]],
  ];
  for (const [name, move, statuses] of CASES) {
    await t.step(`after ${name}: ${statuses}`, async () => {
      await service.setClock(MADE_AT);
      const { payment, dispute } = await disputed(service);
      await move({ id: dispute.id, payment_id: payment.id });
      const seen: string[] = [];
      for (const ms of [WEEK_MS - 1, WEEK_MS]) {
        await service.setClock(MADE_AT + ms);
        await service.deps.provider_worker.notify();
        seen.push((await service.call("GET", `${DISPUTES}/${dispute.id}`)).body.status);
      }
      assert.deepEqual(seen, statuses);
      const calls = await service.sql`
        select last_reply from pay.provider_operations
        where subject_id = ${payment.id} and state = 'settled'`;
      const [, end] = statuses;
      const expected = [end === "lost" ? "dispute_lost" : `not sent: it is ${end}`];
      assert.deepEqual(calls.map(({ last_reply }) => last_reply), expected);
    });
  }
  await t.step("with one event that belongs to no request", async () => {
    await service.setClock(MADE_AT);
    const { payment } = await disputed(service);
    const before = await recordOf(service, payment.id);
    await service.setClock(MADE_AT + WEEK_MS);
    await service.deps.provider_worker.notify();
    const after = await recordOf(service, payment.id);
    assert.deepEqual(changesBetween(before, after).events, ["dispute.lost"]);
    assert.deepEqual(changesBetween(before, after).ledger, []);
    assert.deepEqual(after.events.at(-1)!.payload.request, { id: null, idempotency_key: null });
    assert.deepEqual(await statusOf(service, payment.id), ["chargeback", 1000]);
  });
  await assertSilent(service.sql);
});

serviceCase("GET /v1/disputes pages and filters", async (t, service) => {
  const made: string[] = [];
  for (let i = 0; i < 5; i++) made.unshift((await disputed(service)).dispute.id);
  await send(service, made[0]!, WINNING);
  await send(service, made[2]!, WINNING);
  const idsOf = async (query: string) => {
    const { status, body } = await service.call("GET", `${DISPUTES}?${query}`);
    assert.equal(status, 200);
    assert.equal(body.url, "/v1/disputes");
    return { ids: body.data.map(({ id }: { id: string }) => id), body };
  };
  await t.step("by page", async () => {
    const first = await idsOf("limit=2");
    assert.deepEqual(first.ids, made.slice(0, 2));
    const second = await idsOf(`limit=2&starting_after=${first.body.next_cursor}`);
    assert.deepEqual(second.ids, made.slice(2, 4));
  });
  await t.step("by status", async () => {
    assert.deepEqual((await idsOf("status=won")).ids, [made[0], made[2]]);
    assert.deepEqual((await idsOf("status=lost")).ids, []);
    assert.deepEqual((await idsOf("status=needs_response")).ids, [made[1], made[3], made[4]]);
  });
  await t.step("by payment and status", async () => {
    const { body } = await service.call("GET", `${DISPUTES}/${made[0]}`);
    const { payment_id } = body;
    assert.deepEqual((await idsOf(`payment_id=${payment_id}`)).ids, [made[0]]);
    assert.deepEqual((await idsOf(`payment_id=${payment_id}&status=lost`)).ids, []);
  });
  await t.step("refuses an unknown status and cursor", async () => {
    const unknown = await service.call("GET", `${DISPUTES}?status=open`);
    assertRefused(unknown, 400, "invalid_parameter", "status");
    const cursor = await service.call("GET", `${DISPUTES}?starting_after=dp_${"0".repeat(26)}`);
    assertRefused(cursor, 400, "invalid_parameter", "starting_after");
  });
  await t.step("a reset removes them", async () => {
    await service.call("POST", `${SANDBOX}/reset`);
    assert.deepEqual((await idsOf("")).ids, []);
    assertRefused(await service.call("GET", `${DISPUTES}/${made[0]}`), 404, "not_found");
  });
});
