/**
 * Erasures against refunds and new payments of the same customer: each request is answered as
 * usual, no text is broken, and no person comes back.
 */

import assert from "node:assert/strict";
import { openSession } from "../support/database/database.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { untilWaiting } from "../support/database/lock_waits.ts";
import { dumpTables } from "../support/database/table_dump.ts";
import { APPROVED, PAYMENTS, serviceCase } from "../support/service/service_case.ts";
import { sizeOf } from "../support/service/two_instances.ts";

const ROUNDS = sizeOf("ROUNDS", 50);
const CUSTOMERS = "/api-v1-payments/v1/customers";

serviceCase(`${ROUNDS} erasures against refunds and new payments`, async (_, service) => {
  const { call, pay, sql } = service;
  const statuses = new Map<string, number>();
  const note = (what: string, { status, text }: { status: number; text: string }) => {
    assert.ok(status < 500, text);
    statuses.set(`${what} ${status}`, (statuses.get(`${what} ${status}`) ?? 0) + 1);
  };
  for (let round = 0; round < ROUNDS; round++) {
    const customer = { id: `u${round}`, email: `ada.${round}@example.com`, name: "Ada Lovelace" };
    const body = { customer, card: { token: "pm_card_visa" }, save: "off_session" };
    const paid = (await pay(body)).body;
    const refund = (amount: number) =>
      call("POST", `${PAYMENTS}/${paid.id}/refund`, { body: { amount } });
    const use = { instrument: paid.instrument_id, off_session: true };
    const later = new Promise<void>((resolve) => setTimeout(resolve, 5 * (round % 10)));
    const sent = [
      refund(10).then((response) => note("refund", response)),
      refund(20).then((response) => note("refund", response)),
      pay(use).then((response) => note("charge", response)),
      pay({ customer, ...APPROVED.card }).then((response) => note("pay", response)),
      later.then(() => call("DELETE", `${CUSTOMERS}/u${round}`)).then((response) =>
        note("erase", response)
      ),
    ];
    await Promise.all(sent);
    // What was created beside the first erasure is covered by the second.
    const { body: erased, text } = await call("DELETE", `${CUSTOMERS}/u${round}`);
    assert.equal(erased.deleted, true, text);
    assert.equal((await call("GET", `${PAYMENTS}/${paid.id}`)).body.customer.email, null);
  }
  console.log(Object.fromEntries([...statuses].sort()));
  assert.deepEqual([...await sql`select * from pay.invariant_texts`], []);
  assert.doesNotMatch(await dumpTables(service), /ada\.\d|lovelace/i);
  await assertSilent(sql);
});

serviceCase("a refund that was decided before an erasure is decided again", async (_, service) => {
  const { call, pay, sql } = service;
  const customer = { id: "u1", email: "ada.1@example.com", name: "Ada Lovelace" };
  const { id } = (await pay({ customer, ...APPROVED.card })).body;
  await using holder = await openSession(sql);
  await holder`begin`;
  await holder`select from pay.payments where id = ${id} for update`;
  const erased = call("DELETE", `${CUSTOMERS}/u1`);
  await untilWaiting(sql, { calls: "pay.erase_customer" });
  const refunded = call("POST", `${PAYMENTS}/${id}/refund`, { body: { amount: 10 } });
  await untilWaiting(sql, { calls: "pay.commit" });
  await holder`commit`;
  assert.deepEqual([(await erased).status, (await refunded).status], [200, 201]);
  assert.doesNotMatch(await dumpTables(service), /ada\.\d|lovelace/i);
  await assertSilent(sql);
});
