/**
 * Disputes over HTTP (contract §3): evidence, and refusals after the end. tests/model has every
 * move of a dispute, also in time, with its events and its money.
 */

import assert from "node:assert/strict";
import type { TestService } from "../support/service/service.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { recordOf } from "../support/database/payment_records.ts";
import { advance, assertRefused, card, serviceCase } from "../support/service/service_case.ts";

const DISPUTES = "/api-v1-payments/v1/disputes";
const AT = "2026-06-07T08:09:10.111Z";
const MADE_AT = Date.parse(AT);
const WEEK_MS = 7 * 24 * 3_600_000;

/** Makes a payment that is disputed at once. Returns it with its dispute. */
async function disputed(service: TestService) {
  const { body: payment } = await service.pay(card("4000 0000 0000 0259"));
  const body = await service.get(`${DISPUTES}?payment_id=${payment.id}`);
  return { payment, dispute: body.data[0] };
}

const send = (service: TestService, id: string, body: Record<string, unknown>) =>
  service.call("POST", `${DISPUTES}/${id}/evidence`, { body });
const accept = (service: TestService, id: string) =>
  service.call("POST", `${DISPUTES}/${id}/accept`);

const WINNING = { text: "winning_evidence" };

serviceCase("a dispute ends once", async (t, service) => {
  const ends = {
    won: (id: string) => send(service, id, WINNING),
    lost: (id: string) => accept(service, id),
  };
  for (const [status, end] of Object.entries(ends)) {
    await t.step(status, async () => {
      const { payment, dispute } = await disputed(service);
      await end(dispute.id);
      const after = await recordOf(service, payment.id);
      const moves = [
        send(service, dispute.id, { ...WINNING, submit: false }),
        accept(service, dispute.id),
        ...(status === "lost" ? [advance(service, payment.id, "completed")] : []),
      ];
      for (const response of await Promise.all(moves)) {
        assertRefused(response, "invalid_state");
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
    assertRefused(again, "invalid_state");
    assert.deepEqual(again.body.error.allowed, ["won", "lost"]);
    assert.equal((await recordOf(service, payment.id)).text, before.text);
  });
  await t.step("evidence after its date is refused", async () => {
    const { payment, dispute } = await disputed(service);
    await service.setClock(MADE_AT + WEEK_MS + 1);
    const before = await recordOf(service, payment.id);
    const late = await send(service, dispute.id, WINNING);
    assertRefused(late, "invalid_state");
    assert.match(late.body.error.message, /it was due by 2026-06-14T08:09:10\.111Z$/);
    assert.equal((await recordOf(service, payment.id)).text, before.text);
    await service.setClock(MADE_AT);
  });
  await t.step("the longest evidence is stored whole", async () => {
    const { dispute } = await disputed(service);
    const text = "é".repeat(20_000);
    const { body } = await send(service, dispute.id, { text });
    assert.equal(body.evidence.text, text);
    const longer = await send(service, dispute.id, { text: text + "é" });
    assertRefused(longer, "invalid_parameter", "text");
  });
  await assertSilent(service.sql);
});
