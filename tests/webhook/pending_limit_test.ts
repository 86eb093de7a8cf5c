/**
 * The bound on the pending deliveries of a sandbox (contract §5): a request that would add one is
 * refused and changes nothing, and each way out works.
 */

import assert from "node:assert/strict";
import { APPROVED_CARD, type TestService } from "../support/service/service.ts";
import { APPROVED, assertRefused, PAYMENTS, SANDBOX } from "../support/service/service_case.ts";
import {
  addEndpoint,
  DELIVERIES,
  ENDPOINTS,
  settle,
} from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";

const MOST = 20_000;

/** Fills the endpoint up to a number of pending deliveries, which are due later. */
async function fill(service: TestService, endpoint_id: string, to: number): Promise<void> {
  await service.sql`
    insert into pay.webhook_deliveries (environment_id, id, event_id, event_type, endpoint_id,
      subject_id, sequence, status, next_attempt_at, created_at)
    select t.environment_id, 'whd_' || left(md5(random()::text || n), 26), 'evt_' || lpad(n::text, 26, '0'),
      'payment.created', t.id, 'pay_' || lpad(n::text, 26, '0'), 1, 'pending',
      now() + interval '1 hour', now()
    from pay.webhook_endpoints t,
      generate_series(1, ${to} - (select count(*)::int from pay.webhook_deliveries o
        where o.status = 'pending' and o.endpoint_id = ${endpoint_id})) n
    where t.id = ${endpoint_id}`;
}

const pay = (service: TestService, options = {}) => service.pay({ card: APPROVED_CARD }, options);

webhookCase("a sandbox with too many pending deliveries", async (t, service, receiver) => {
  receiver.judge = () => 500;
  const { id } = await addEndpoint(service, receiver.url("/"), { events: ["payment.*"] });
  const { body: paid } = await pay(service);
  await settle(service);
  const { data: [delivery] } = await service.get(DELIVERIES);
  await service.sql`update pay.webhook_deliveries
    set status = 'failed', next_attempt_at = null where id = ${delivery.id}`;
  const rows = async () =>
    (await service.sql`
      select (select count(*)::int from pay.payments) as payments,
        (select count(*)::int from pay.refunds) as refunds,
        (select count(*)::int from pay.idempotency_keys) as keys,
        (select count(*)::int from pay.webhook_deliveries where status = 'pending') as pending`)[0];
  await fill(service, id, MOST - 1);
  const kept = await pay(service, { idempotency_key: "kept" });
  assert.equal(kept.status, 201, "one below the limit");

  const requests: [name: string, method: string, path: string, body: unknown][] = [
    ["a payment", "POST", PAYMENTS, { amount: 1, currency: "EUR", card: APPROVED_CARD }],
    ["a refund", "POST", `${PAYMENTS}/${paid.id}/refund`, {}],
    ["an advance", "POST", `${SANDBOX}/payments/${paid.id}/advance`, { to: "chargeback" }],
    ["a redelivery", "POST", `${DELIVERIES}/${delivery.id}/redeliver`, {}],
    ["a recovery", "POST", `${ENDPOINTS}/${id}/recover`, { since: paid.created_at }],
  ];
  for (const [name, method, path, body] of requests) {
    await t.step(`${name} is 429 and changes nothing`, async () => {
      const before = await rows();
      const refused = await service.call(method, path, { body, idempotency_key: path });
      assertRefused(refused, "rate_limited");
      assert.match(refused.body.error.message, /20000 pending deliveries.*reset the sandbox/);
      assert.equal(refused.headers.get("Retry-After"), "1");
      assert.deepEqual(await rows(), before);
    });
  }
  await t.step("requests that add no delivery succeed, and other sandboxes go on", async () => {
    const again = await pay(service, { idempotency_key: "kept" });
    assert.deepEqual([again.status, again.text], [201, kept.text]);
    // The endpoint has no events of transfers.
    const body = { amount: 1, currency: "EUR", destination: APPROVED.sepa };
    await service.post("/api-v1-payments/v1/transfers", body);
    assert.equal((await pay(service, { key: service.other.text })).status, 201);
  });

  const WAYS_OUT: [name: string, go: () => Promise<unknown>][] = [
    [
      "a disabled endpoint",
      () => service.call("PUT", `${ENDPOINTS}/${id}`, { body: { status: "disabled" } }),
    ],
    [
      "a reset, after which the endpoint gets new events in spite of the backlog",
      () => service.call("POST", `${SANDBOX}/reset`),
    ],
  ];
  for (const [name, go] of WAYS_OUT) {
    await t.step(`${name} leads out`, async () => {
      await service.sql`update pay.webhook_endpoints set status = 'enabled' where id = ${id}`;
      await fill(service, id, MOST);
      assertRefused(await pay(service), "rate_limited");
      await go();
      assert.equal((await pay(service)).status, 201);
    });
  }
  receiver.arrivals.length = 0;
  for (let poll = 0; receiver.arrivals.length === 0; poll++) {
    assert.ok(poll < 100, "no delivery in 100 polls of the dispatcher");
    await settle(service);
  }
});
