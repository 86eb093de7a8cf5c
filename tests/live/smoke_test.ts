import assert from "node:assert/strict";
import { card, serviceCase } from "../support/service/service_case.ts";

serviceCase("smoke", async (_t, service) => {
  const late = await service.pay(card("4000 0000 0000 0119"), { unchecked: true });
  console.log(late.status, late.body?.status, late.text.slice(0, 300));
  const held = await service.pay({ capture: "manual", card: { token: "pm_card_visa" } }, { unchecked: true });
  console.log(held.status, held.body?.status);
  console.log(await service.sql`select id, op, state, next_attempt_at, leased_until, account_id from pay.provider_calls`);
  await new Promise((r) => setTimeout(r, 2500));
  await service.deps.provider_worker.nudge();
  const got = await service.call("GET", `/api-v1-payments/v1/payments/${late.body.id}`, { unchecked: true });
  console.log(got.body.status);
  console.log(await service.sql`select id, op, state, last_reply from pay.provider_calls`);
  console.log(await service.sql`select reference, outcome, booked_minor from pay.provider_facts`);
  const live = await service.pay({ card: { token: "pm_x" } }, { key: service.live.text, unchecked: true });
  console.log(live.status, live.text);
  console.log(await service.sql`select * from pay.check_books() where findings > 0`);
  console.log(service.logs.filter((l) => JSON.stringify(l).includes("rror")));
  assert.equal(got.body.status, "completed");
});
