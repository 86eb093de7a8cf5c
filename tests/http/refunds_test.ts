/**
 * Refunds (contract §3): of the whole amount and of parts, up to the last cent and no more; the
 * refund object, its lists, and its effects on the payment, the events and the ledger.
 */

import assert from "node:assert/strict";
import type { TestService } from "../support/service/service.ts";
import { changesBetween, recordOf } from "../support/database/payment_records.ts";
import {
  advance,
  assertRefused,
  paymentIn,
  PAYMENTS,
  REFUNDS,
  serviceCase,
} from "../support/service/service_case.ts";

const MEMBERS = "id object payment_id payment_status amount amount_minor currency status " +
  "failure_code failure_message return_code reason metadata destination speed payee_check livemode " +
  "created_at updated_at";
const AT = "2026-06-07T08:09:10.111Z";

function refund(service: TestService, id: string, body?: unknown) {
  return service.call("POST", `${PAYMENTS}/${id}/refund`, { body });
}

const WHOLE: [string, body: unknown][] = [
  ["no body", undefined],
  ["an empty object", {}],
  ["the whole amount", { amount: 1000 }],
  ["the whole amount_minor", { amount_minor: 1000 }],
  ["both amounts", { amount: 1000, amount_minor: 1000 }],
];

serviceCase("POST /v1/payments/{id}/refund refunds the whole amount", async (t, service) => {
  for (const [name, body] of WHOLE) {
    await t.step(name, async () => {
      await service.setClock(Date.parse(AT));
      const payment = await paymentIn(service, "completed", { currency: "USD" });
      const before = await recordOf(service, payment.id);
      const response = await refund(service, payment.id, body);
      assert.equal(response.status, 201, response.text);
      assert.equal(Object.keys(response.body).join(" "), MEMBERS);
      assert.match(response.body.id, /^re_[0-9a-hjkmnp-tv-z]{26}$/);
      assert.deepEqual(response.body, {
        id: response.body.id,
        object: "refund",
        payment_id: payment.id,
        payment_status: "refunded",
        amount: 1000,
        amount_minor: 1000,
        currency: "USD",
        status: "completed",
        failure_code: null,
        failure_message: null,
        return_code: null,
        reason: null,
        metadata: {},
        destination: null,
        speed: null,
        payee_check: null,
        livemode: false,
        created_at: AT,
        updated_at: AT,
      });
      assert.ok(response.headers.get("Location")?.endsWith(`${REFUNDS}/${response.body.id}`));
      const after = await recordOf(service, payment.id);
      assert.deepEqual(changesBetween(before, after), {
        events: ["refund.created", "refund.completed", "payment.refunded"],
        sequences: [1, 2, 3, 4, 5],
        ledger: ["refund available>processor 1000 USD"],
      });
      const [created, completed] = after.events.slice(2, 4);
      assert.deepEqual(created!.payload.data.object, {
        ...response.body,
        payment_status: "completed",
        status: "pending",
      });
      assert.deepEqual(completed!.payload.data.object, response.body);
    });
  }
});

serviceCase("POST /v1/payments/{id}/refund refunds parts to the cent", async (t, service) => {
  const payment = await paymentIn(service, "completed");
  const parts: [amount: number | undefined, given: number, left: number, status: string][] = [
    [1, 1, 999, "partially_refunded"],
    [498, 498, 501, "partially_refunded"],
    [500, 500, 1, "partially_refunded"],
    [undefined, 1, 0, "refunded"],
  ];
  for (const [amount, given, left, status] of parts) {
    await t.step(`before ${amount ?? "the rest"}, one cent above the rest is refused`, async () => {
      const before = await recordOf(service, payment.id);
      for (const field of ["amount", "amount_minor"]) {
        const response = await refund(service, payment.id, { [field]: left + given + 1 });
        assertRefused(response, 400, "invalid_parameter", field);
        assert.equal(response.body.error.amount_refundable, left + given);
      }
      assert.equal((await recordOf(service, payment.id)).text, before.text);
    });
    await t.step(`${amount ?? "the rest"} leaves ${left}: ${status}`, async () => {
      const response = await refund(service, payment.id, amount === undefined ? {} : { amount });
      assert.deepEqual([response.status, response.body.amount, response.body.payment_status], [
        201,
        given,
        status,
      ]);
      const { body } = await service.call("GET", `${PAYMENTS}/${payment.id}`);
      assert.deepEqual([body.status, body.amount, body.amount_refunded], [
        status,
        1000,
        1000 - left,
      ]);
      assert.equal(body.completed_at, payment.completed_at);
    });
  }
  await t.step("a fully refunded payment has nothing left to refund: 409", async () => {
    const response = await refund(service, payment.id, { amount: 1 });
    assertRefused(response, 409, "invalid_state");
    const { ledger, events } = await recordOf(service, payment.id);
    assert.deepEqual([ledger.size, events.length], [5, 2 + 4 * 3]);
  });
});

const BODIES: [body: string, refused: string | null][] = [
  ['{"reason":"duplicate"}', null],
  ['{"reason":"fraudulent"}', null],
  ['{"reason":"requested_by_customer"}', null],
  ['{"reason":"other"}', null],
  ['{"metadata":{"ticket":"7"}}', null],
  ['{"reason":"because"}', "reason"],
  ['{"reason":""}', "reason"],
  ['{"reason":null}', "reason"],
  ['{"metadata":{"ticket":7}}', "metadata.ticket"],
  ['{"amount":0}', "amount"],
  ['{"amount":-1}', "amount"],
  ['{"amount":1.0}', "amount"],
  ['{"amount":1e2}', "amount"],
  ['{"amount":1.5}', "amount"],
  ['{"amount":"100"}', "amount"],
  ['{"amount":null}', "amount"],
  ['{"amount_minor":1000000000000}', "amount_minor"],
  ['{"amount":1,"amount_minor":2}', "amount_minor"],
];

serviceCase("POST /v1/payments/{id}/refund takes a reason and metadata", async (t, service) => {
  for (const [body, refused] of BODIES) {
    await t.step(`${body} → ${refused ?? "accepted"}`, async () => {
      const payment = await paymentIn(service, "completed");
      const before = await recordOf(service, payment.id);
      const response = await refund(service, payment.id, body);
      if (refused) {
        assertRefused(response, 400, "invalid_parameter", refused);
        return assert.equal((await recordOf(service, payment.id)).text, before.text);
      }
      assert.deepEqual({ ...response.body, ...JSON.parse(body) }, response.body);
    });
  }
});

serviceCase("GET /v1/refunds, one and in lists", async (t, service) => {
  const payment = await paymentIn(service, "completed");
  const other = await paymentIn(service, "refunded");
  const made: string[] = [];
  for (const amount of [100, 200, 300]) {
    made.unshift((await refund(service, payment.id, { amount, reason: "other" })).text);
  }
  const all = (path: string) => service.call("GET", path);
  await t.step("GET /v1/refunds/{id} returns the bytes of the refund's creation", async () => {
    for (const text of made) {
      assert.equal((await all(`${REFUNDS}/${JSON.parse(text).id}`)).text, text);
    }
  });
  await t.step("payment_status of a refund stays after the payment has changed", async () => {
    await advance(service, payment.id, "chargeback");
    assert.equal((await all(`${REFUNDS}/${JSON.parse(made[0]!).id}`)).text, made[0]);
  });
  await t.step("GET /v1/payments/{id}/refunds lists newest first", async () => {
    const url = `/v1/payments/${payment.id}/refunds`;
    assert.equal(
      (await all(`${PAYMENTS}/${payment.id}/refunds`)).text,
      `{"object":"list","url":"${url}","data":[${made}],"has_more":false,"next_cursor":null}`,
    );
  });
  await t.step("GET /v1/refunds?payment_id= has the same list", async () => {
    const { text } = await all(`${REFUNDS}?payment_id=${payment.id}`);
    assert.equal(
      text,
      `{"object":"list","url":"/v1/refunds","data":[${made}],"has_more":false,"next_cursor":null}`,
    );
  });
  await t.step("GET /v1/refunds lists the refunds of every payment", async () => {
    const { body } = await all(REFUNDS);
    assert.deepEqual(body.data.map((r: { payment_id: string }) => r.payment_id), [
      payment.id,
      payment.id,
      payment.id,
      other.id,
    ]);
  });
  for (const path of [REFUNDS, `${PAYMENTS}/${payment.id}/refunds`]) {
    await t.step(`${path.replace(payment.id, "{id}")} pages by cursor`, async () => {
      const first = await all(`${path}?limit=2`);
      assert.deepEqual([first.body.data.length, first.body.has_more], [2, true]);
      assert.equal(first.body.next_cursor, first.body.data[1].id);
      const next = await all(`${path}?limit=2&starting_after=${first.body.next_cursor}`);
      assert.deepEqual(next.body.data[0], JSON.parse(made[2]!));
      assert.equal(next.body.next_cursor, null);
      const unknown = `re_${"0".repeat(26)}`;
      const refused = await all(`${path}?starting_after=${unknown}`);
      assertRefused(refused, 400, "invalid_parameter", "starting_after");
    });
  }
  const ends: [path: string, status: number, result: string][] = [
    [`${REFUNDS}?payment_id=pay_${"0".repeat(26)}`, 200, "empty"],
    [`${REFUNDS}?payment_id=${made.length}`, 400, "payment_id"],
    [`${REFUNDS}?payment_id=re_${"0".repeat(26)}`, 400, "payment_id"],
    [`${PAYMENTS}/pay_${"0".repeat(26)}/refunds`, 404, "not_found"],
    [`${REFUNDS}/re_${"0".repeat(26)}`, 404, "not_found"],
    [`${REFUNDS}/${payment.id}`, 404, "not_found"],
  ];
  for (const [path, status, result] of ends) {
    await t.step(`${path} → ${status} ${result}`, async () => {
      const response = await all(path);
      if (status === 404) return assertRefused(response, 404, "not_found");
      if (status === 400) return assertRefused(response, 400, "invalid_parameter", result);
      assert.deepEqual([response.status, response.body.data], [200, []]);
    });
  }
  await t.step("GET /v1/refunds?status= lists the refunds in one status", async () => {
    const waiting = await paymentIn(service, "completed", { settlement: "manual" });
    const { body: pending } = await refund(service, waiting.id, { amount: 5 });
    const counts = { pending: 1, completed: 4, failed: 0 };
    for (const [status, count] of Object.entries(counts)) {
      const { body } = await all(`${REFUNDS}?status=${status}`);
      assert.equal(body.data.length, count, status);
    }
    const one = `${REFUNDS}?status=pending&payment_id=`;
    assert.deepEqual((await all(`${one}${waiting.id}`)).body.data, [pending]);
    assert.deepEqual((await all(`${one}${payment.id}`)).body.data, []);
    assertRefused(await all(`${REFUNDS}?status=paid`), 400, "invalid_parameter", "status");
  });
  await t.step("another environment has none of these refunds", async () => {
    const options = { key: service.other.text };
    assert.deepEqual((await service.call("GET", REFUNDS, options)).body.data, []);
    const one = await service.call("GET", `${REFUNDS}/${JSON.parse(made[0]!).id}`, options);
    assertRefused(one, 404, "not_found");
    const nested = await service.call("GET", `${PAYMENTS}/${payment.id}/refunds`, options);
    assertRefused(nested, 404, "not_found");
  });
});
