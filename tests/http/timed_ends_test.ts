/**
 * Sandbox payments that end by themselves (contract §2): a payment whose payer does not authenticate
 * after 24 hours, and an authorization that nobody captures after 7 days.
 */

import assert from "node:assert/strict";
import type { TestService } from "../support/service/service.ts";
import { recordOf } from "../support/database/payment_records.ts";
import { advance, PAYMENTS, SANDBOX, serviceCase } from "../support/service/service_case.ts";

const MADE_AT = Date.parse("2026-06-07T08:09:10.111Z");
const DAY_MS = 24 * 3_600_000;
const THREE_D_SECURE = { card: { token: "pm_card_authenticationRequired" } };
const LATE = { card: { token: "pm_card_late" } };

const authenticate = (service: TestService, id: string, result = "success") =>
  service.call("POST", `${SANDBOX}/payments/${id}/authenticate`, { body: { result } });

/** Each row: the create, its next move, and the status before and after 24 hours and 7 days. */
const CASES: [
  name: string,
  body: Record<string, unknown>,
  move: (service: TestService, id: string) => Promise<unknown>,
  statuses: [before_day: string, day: string, before_week: string, week: string],
][] = [
  ["a payer who does nothing", THREE_D_SECURE, () => Promise.resolve(), [
    "requires_action",
    "failed",
    "failed",
    "failed",
  ]],
  ["a payment that was advanced to requires_action", { outcome: "pending" }, (service, id) => {
    return advance(service, id, "requires_action");
  }, ["requires_action", "failed", "failed", "failed"]],
  ["a payer who authenticates", THREE_D_SECURE, authenticate, [
    "completed",
    "completed",
    "completed",
    "completed",
  ]],
  ["a cancel", THREE_D_SECURE, (service, id) => {
    return service.call("POST", `${PAYMENTS}/${id}/cancel`);
  }, ["cancelled", "cancelled", "cancelled", "cancelled"]],
  [
    "a manual capture after an authentication",
    { ...THREE_D_SECURE, capture: "manual" },
    authenticate,
    [
      "authorized",
      "authorized",
      "authorized",
      "cancelled",
    ],
  ],
  ["a manual capture whose response is late", { ...LATE, capture: "manual" }, (service) => {
    return service.setClock(MADE_AT + 2_000);
  }, ["authorized", "authorized", "authorized", "cancelled"]],
];

serviceCase("a sandbox payment ends by itself", async (t, service) => {
  for (const [name, body, move, statuses] of CASES) {
    await t.step(`after ${name}: ${statuses}`, async () => {
      await service.setClock(MADE_AT);
      const { body: { id } } = await service.pay(body);
      await move(service, id);
      await service.deps.provider_worker.notify();
      const seen: string[] = [];
      for (const ms of [DAY_MS - 1, DAY_MS, 7 * DAY_MS - 1, 7 * DAY_MS + 2_000]) {
        await service.setClock(MADE_AT + ms);
        await service.deps.provider_worker.notify();
        seen.push((await service.call("GET", `${PAYMENTS}/${id}`)).body.status);
      }
      assert.deepEqual(seen, statuses);
    });
  }
  await t.step("with one event and no movement, and the payer comes too late", async () => {
    await service.setClock(MADE_AT);
    const { body: { id } } = await service.pay(THREE_D_SECURE);
    await service.setClock(MADE_AT + DAY_MS);
    await service.deps.provider_worker.notify();
    const { body } = await service.call("GET", `${PAYMENTS}/${id}`);
    assert.equal(body.failure_code, "expired");
    assert.equal(body.failure_message, "The payer did not pay in time");
    assert.equal(body.next_action, null);
    const { events, ledger } = await recordOf(service, id);
    assert.deepEqual(events.map(({ type }) => type), [
      "payment.created",
      "payment.requires_action",
      "payment.failed",
    ]);
    assert.equal(ledger.size, 0);
    assert.equal((await authenticate(service, id)).body.error.code, "invalid_state");
  });
});
