/**
 * Pending refunds (contract §3): with `settlement: "manual"` a refund waits for an advance. Until
 * then it holds its amount. It ends as completed or failed.
 */

import assert from "node:assert/strict";
import type { CallOptions, TestService } from "../support/service/service.ts";
import { changesBetween, recordOf } from "../support/database/payment_records.ts";
import {
  advance,
  APPROVED,
  assertRefused,
  card,
  PAYMENTS,
  REFUNDS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

const AT = "2026-06-07T08:09:10.111Z";
const LATER = "2026-06-08T00:00:00.000Z";

/** Every address of an advance of a refund. */
const ADDRESSES = [
  (id: string) => `${SANDBOX}/refunds/${id}/advance`,
  (id: string) => `${SANDBOX}/v1/refunds/${id}/advance`,
] as const;

function refund(service: TestService, id: string, body?: unknown) {
  return service.call("POST", `${PAYMENTS}/${id}/refund`, { body });
}

function settle(service: TestService, id: string, to: string, options: CallOptions = {}) {
  return service.call("POST", ADDRESSES[0](id), { ...options, body: { to } });
}

/** Makes a completed payment of 1000 by card whose refunds wait. */
async function waiting(service: TestService): Promise<string> {
  const { body } = await service.pay({ ...card({}), settlement: "manual" });
  assert.deepEqual([body.status, body.settlement], ["completed", "manual"]);
  return body.id;
}

async function shown(service: TestService, id: string) {
  const { body } = await service.call("GET", `${PAYMENTS}/${id}`);
  return [body.status, body.amount_refunding, body.amount_refunded];
}

serviceCase("POST /v1/payments/{id}/refund waits with manual settlement", async (t, service) => {
  await service.setClock(Date.parse(AT));
  const id = await waiting(service);
  const before = await recordOf(service, id);
  const made = await refund(service, id, { amount: 400, reason: "other" });
  await t.step("the refund is pending and moves no money", async () => {
    assert.equal(made.status, 201, made.text);
    const { status, payment_status, failure_code, failure_message, created_at, updated_at } =
      made.body;
    assert.deepEqual(
      [status, payment_status, failure_code, failure_message, created_at, updated_at],
      ["pending", "completed", null, null, AT, AT],
    );
    const after = await recordOf(service, id);
    assert.deepEqual(changesBetween(before, after), {
      events: ["refund.created"],
      sequences: [1, 2, 3],
      ledger: [],
    });
    assert.deepEqual(after.events.at(-1)!.payload.data.object, made.body);
  });
  await t.step("the payment shows amount_refunding", async () => {
    assert.deepEqual(await shown(service, id), ["completed", 400, 0]);
  });
  await t.step("GET and the lists show the pending refund", async () => {
    assert.equal((await service.call("GET", `${REFUNDS}/${made.body.id}`)).text, made.text);
    for (const list of [`${PAYMENTS}/${id}/refunds`, `${REFUNDS}?payment_id=${id}`, REFUNDS]) {
      const { body } = await service.call("GET", list);
      assert.deepEqual(body.data, [made.body], list);
    }
  });
  await t.step("one cent above the rest is refused: pending refunds count", async () => {
    const response = await refund(service, id, { amount: 601 });
    assertRefused(response, 400, "invalid_parameter", "amount");
    assert.equal(response.body.error.amount_refundable, 600);
  });
  await t.step("a refund without an amount takes the rest", async () => {
    assert.equal((await refund(service, id)).body.amount, 600);
    assert.deepEqual(await shown(service, id), ["completed", 1000, 0]);
  });
  await t.step("pending refunds that hold the rest leave nothing to refund", async () => {
    const whole = await refund(service, id);
    assertRefused(whole, 409, "invalid_state");
    const { current_status, allowed } = whole.body.error;
    assert.equal(current_status, "completed");
    assert.deepEqual(allowed, []);
    const cent = await refund(service, id, { amount: 1 });
    assertRefused(cent, 400, "invalid_parameter", "amount");
    assert.equal(cent.body.error.amount_refundable, 0);
  });
  for (const to of ["refunded", "chargeback"]) {
    await t.step(`an advance of the payment to ${to} is 409 meanwhile`, async () => {
      assertRefused(await advance(service, id, to), 409, "invalid_state");
    });
  }
});

for (const address of ADDRESSES) {
  const path = address("{id}");
  serviceCase(`POST ${path} completes a refund`, async (t, service) => {
    await service.setClock(Date.parse(AT));
    const id = await waiting(service);
    const first = (await refund(service, id, { amount: 400 })).body;
    const rest = (await refund(service, id)).body;
    await service.setClock(Date.parse(LATER));
    const cases: [string, typeof first, status: string, refunding: number, refunded: number][] = [
      ["a part", first, "partially_refunded", 600, 400],
      ["the rest", rest, "refunded", 0, 1000],
    ];
    for (const [name, pending, status, refunding, refunded] of cases) {
      await t.step(`${name}: the payment is ${status}`, async () => {
        const before = await recordOf(service, id);
        const response = await service.call("POST", address(pending.id), {
          body: { to: "completed" },
        });
        assert.equal(response.status, 200, response.text);
        assert.deepEqual(response.body, {
          ...pending,
          status: "completed",
          payment_status: status,
          updated_at: LATER,
        });
        const after = await recordOf(service, id);
        const { events, ledger } = changesBetween(before, after);
        assert.deepEqual(events, ["refund.completed", `payment.${status}`]);
        assert.deepEqual(ledger, [`refund available>processor ${pending.amount} EUR`]);
        assert.deepEqual(await shown(service, id), [status, refunding, refunded]);
        const stored = await service.call("GET", `${REFUNDS}/${pending.id}`);
        assert.equal(stored.text, response.text);
      });
    }
  });

  serviceCase(`POST ${path} makes a refund fail`, async (t, service) => {
    await service.setClock(Date.parse(AT));
    const id = await waiting(service);
    const pending = (await refund(service, id, { amount: 400 })).body;
    await service.setClock(Date.parse(LATER));
    await t.step("its amount can be refunded again", async () => {
      const before = await recordOf(service, id);
      const response = await service.call("POST", address(pending.id), { body: { to: "failed" } });
      assert.equal(response.status, 200, response.text);
      assert.deepEqual(response.body, {
        ...pending,
        status: "failed",
        failure_code: "processing_failed",
        failure_message: "The refund failed while it was processed",
        updated_at: LATER,
      });
      const { events, ledger } = changesBetween(before, await recordOf(service, id));
      assert.deepEqual([events, ledger], [["refund.failed"], []]);
      assert.deepEqual(await shown(service, id), ["completed", 0, 0]);
      assert.equal((await refund(service, id)).body.amount, 1000);
    });
  });
}

serviceCase("an advance of a refund that has ended", async (t, service) => {
  const id = await waiting(service);
  const make = async (to: string) => {
    const { body } = await refund(service, id, { amount: 10 });
    if (to !== "pending") assert.equal((await settle(service, body.id, to)).status, 200);
    return body.id as string;
  };
  const refunds: [status: string, id: string][] = [
    ["completed", await make("completed")],
    ["failed", await make("failed")],
  ];
  const before = (await recordOf(service, id)).text;
  for (const [status, refund_id] of refunds) {
    for (const to of ["pending", "completed", "failed"]) {
      // A completed refund can fail later.
      if (status === "completed" && to === "failed") continue;
      await t.step(`${status} → ${to}: ${to === status ? "stays" : "409"}`, async () => {
        const response = await settle(service, refund_id, to);
        if (to === status) {
          const stored = await service.call("GET", `${REFUNDS}/${refund_id}`);
          return assert.deepEqual([response.status, response.text], [200, stored.text]);
        }
        assertRefused(response, 409, "invalid_state");
        const { current_status, allowed } = response.body.error;
        assert.deepEqual(
          [current_status, allowed],
          [status, status === "completed" ? ["failed"] : []],
        );
      });
    }
  }
  await t.step("pending → pending: stays", async () => {
    const { body } = await refund(service, id, { amount: 10 });
    const events = (await recordOf(service, id)).events.length;
    assert.deepEqual((await settle(service, body.id, "pending")).body, body);
    assert.equal((await recordOf(service, id)).events.length, events);
    await settle(service, body.id, "failed");
  });
  for (const body of ["{}", '{"to":"done"}', '{"to":null}', '{"to":"COMPLETED"}']) {
    await t.step(`${body} → 400 to`, async () => {
      for (const address of ADDRESSES) {
        const response = await service.call("POST", address(refunds[0]![1]), { body });
        assertRefused(response, 400, "invalid_parameter", "to");
      }
    });
  }
  /** Advances of a pending refund with a return code: [payment, to, refused field or null] */
  const CODES: [Record<string, unknown>, string, string | null][] = [
    [APPROVED.sepa, "failed", null],
    [APPROVED.swift, "failed", null],
    [APPROVED.sepa, "completed", "return_code"],
    [APPROVED.card, "failed", "return_code"],
  ];
  for (const [instrument, to, param] of CODES) {
    await t.step(`AC06 with ${Object.keys(instrument)} to ${to}: ${param ?? 200}`, async () => {
      const { body: paid } = await service.make({ ...instrument, settlement: "manual" });
      if (paid.status === "pending") await advance(service, paid.id, "completed");
      const { body } = await refund(service, paid.id, { amount: 10 });
      const response = await service.call("POST", ADDRESSES[0]!(body.id), {
        body: { to, return_code: "AC06" },
      });
      if (param !== null) return assertRefused(response, 400, "invalid_parameter", param);
      const { failure_code, return_code } = response.body;
      assert.deepEqual([failure_code, return_code], ["bank_return", "AC06"]);
    });
  }
  await t.step("the refused requests changed nothing of the first refunds", async () => {
    assert.ok(before.length > 0);
    assert.deepEqual(await shown(service, id), ["partially_refunded", 0, 10]);
  });
  await t.step("ten advances at once give the refund each end once at most", async () => {
    const { body } = await refund(service, id, { amount: 10 });
    const responses = await Promise.all(
      Array.from(
        { length: 10 },
        (_, i) => settle(service, body.id, i % 2 ? "completed" : "failed"),
      ),
    );
    const statuses = new Set(responses.map(({ status }) => status));
    assert.deepEqual([...statuses].sort(), [200, 409]);
    const { events } = await recordOf(service, id);
    const ends = events.filter(({ type, payload }) =>
      type !== "refund.created" && payload.data.object.id === body.id
    ).map(({ type }) => type);
    // A completed refund can fail later.
    assert.ok(ends.includes("refund.failed"));
    assert.deepEqual(ends, [...new Set(ends)]);
  });
});

serviceCase("pending refunds and the ends of their payment", async (t, service) => {
  let disputed_id = "";
  await t.step("a chargeback leaves the amount of a pending refund", async () => {
    const id = await waiting(service);
    const { body: pending } = await refund(service, id, { amount: 400 });
    const { body: disputed } = await advance(service, id, "chargeback");
    assert.deepEqual([disputed.status, disputed.amount_disputed], ["chargeback", 600]);
    const { body: settled } = await settle(service, pending.id, "completed");
    assert.deepEqual([settled.status, settled.payment_status], ["completed", "chargeback"]);
    assert.deepEqual(await shown(service, id), ["chargeback", 0, 400]);
    disputed_id = id;
  });
  await t.step("the merchant wins: the refunded part stays refunded", async () => {
    const id = disputed_id;
    const before = await recordOf(service, id);
    assertRefused(await advance(service, id, "completed"), 409, "invalid_state");
    const { body: won } = await advance(service, id, "partially_refunded");
    assert.deepEqual([won.status, won.amount_disputed], ["partially_refunded", 0]);
    const { events, ledger } = changesBetween(before, await recordOf(service, id));
    assert.deepEqual(events, ["dispute.won", "payment.partially_refunded"]);
    assert.deepEqual(ledger, ["chargeback_reversal chargebacks>available 600 EUR"]);
  });
  await t.step("the bank returns the whole payment while a refund is pending", async () => {
    const iban = "DE89 3704 0044 0532 0130 00";
    const { body: payment } = await service.pay({ iban, settlement: "manual" });
    assert.equal(payment.status, "pending");
    await advance(service, payment.id, "completed");
    const { body: pending } = await refund(service, payment.id, { amount: 400 });
    const before = await recordOf(service, payment.id);
    const { body: returned } = await advance(service, payment.id, "failed");
    assert.deepEqual([returned.status, returned.return_code], ["failed", "R01"]);
    assert.equal(returned.amount_refunding, 400);
    await settle(service, pending.id, "completed");
    const after = await recordOf(service, payment.id);
    const changes = changesBetween(before, after);
    assert.deepEqual(changes.events, ["payment.failed", "refund.completed"]);
    assert.deepEqual(changes.ledger, [
      "capture_reversal available>processor 1000 EUR",
      "refund available>processor 400 EUR",
    ]);
    const { body: last } = await service.call("GET", `${PAYMENTS}/${payment.id}`);
    const { status, amount_refunded, amount_refunding } = last;
    assert.deepEqual([status, amount_refunded, amount_refunding], ["failed", 400, 0]);
  });
  await t.step("a reset deletes pending refunds", async () => {
    const id = await waiting(service);
    const { body: pending } = await refund(service, id);
    const { body: reset } = await service.call("POST", `${SANDBOX}/reset`);
    assert.ok(reset.deleted.refunds > 0);
    assertRefused(await settle(service, pending.id, "completed"), 404, "not_found");
  });
});

serviceCase("a completed refund that fails later gives its money back", async (t, service) => {
  const STEPS: [name: string, make: () => Promise<string>, after: unknown[], events: string[]][] = [
    ["of the whole", async () => (await service.pay({ outcome: "refunded" })).body.id, [
      "completed",
      0,
      0,
    ], ["refund.failed", "payment.completed"]],
    [
      "of a part beside another",
      async () => {
        const { id } = (await service.pay({ outcome: "success" })).body;
        await refund(service, id, { amount: 100 });
        await refund(service, id, { amount: 300 });
        return id;
      },
      ["partially_refunded", 0, 100],
      ["refund.failed", "payment.partially_refunded"],
    ],
    [
      "of a payment that is charged back",
      async () => {
        const { id } = (await service.pay({ outcome: "success" })).body;
        await refund(service, id, { amount: 100 });
        await advance(service, id, "chargeback");
        return id;
      },
      ["chargeback", 0, 0],
      ["refund.failed"],
    ],
  ];
  for (const [name, make, after, events] of STEPS) {
    await t.step(name, async () => {
      const id = await make();
      const { body: { data: [newest] } } = await service.call("GET", `${PAYMENTS}/${id}/refunds`);
      const before = await recordOf(service, id);
      const response = await settle(service, newest.id, "failed");
      assert.equal(response.status, 200);
      assert.deepEqual(
        [response.body.status, response.body.failure_code, response.body.payment_status],
        ["failed", "processing_failed", after[0]],
      );
      const changes = changesBetween(before, await recordOf(service, id));
      assert.deepEqual(changes.events, events);
      const { amount_minor } = newest;
      assert.deepEqual(changes.ledger, [
        `refund_reversal processor>available ${amount_minor} EUR`,
      ]);
      assert.deepEqual(await shown(service, id), after);
    });
  }
  await t.step("also after the bank has returned the payment, which stays failed", async () => {
    const { id } = (await service.pay({ ...APPROVED.sepa })).body;
    const { body: { id: refund_id } } = await refund(service, id, { amount: 100 });
    await advance(service, id, "failed");
    const before = await recordOf(service, id);
    const { body: failed } = await settle(service, refund_id, "failed");
    assert.deepEqual([failed.status, failed.payment_status], ["failed", "failed"]);
    const changes = changesBetween(before, await recordOf(service, id));
    assert.deepEqual(changes.events, ["refund.failed"]);
    assert.deepEqual(changes.ledger, ["refund_reversal processor>available 100 EUR"]);
  });
});
