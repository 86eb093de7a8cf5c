/** A sandbox has at most 64 endpoints, a live environment 16 (contract §4), however many are created
 * at once. Each gets its delivery of an event. */

import assert from "node:assert/strict";
import { idPattern } from "../../shared/core/ids.ts";
import { assertRefused, serviceCase } from "../support/service/service_case.ts";
import { addEndpoint, ENDPOINTS } from "../support/webhook/recording_receiver.ts";

const MAX_ENDPOINTS = 64;
const MAX_LIVE_ENDPOINTS = 16;
const URL = "https://hooks.example.com/payments";

serviceCase("POST /v1/webhook_endpoints refuses the 65th endpoint", async (t, service) => {
  const ids: string[] = [];
  for (let i = 0; i < MAX_ENDPOINTS; i++) ids.push((await addEndpoint(service, URL)).id);
  await t.step("it is 400, and 400 again with the same idempotency key", async () => {
    for (let i = 0; i < 2; i++) {
      const refused = await service.call("POST", ENDPOINTS, {
        body: { url: URL },
        idempotency_key: "one-too-many",
      });
      assertRefused(refused, 400, "invalid_parameter", "url");
      assert.match(refused.body.error.message, /64/);
    }
    const [kept] = await service.sql`select count(*)::int as keys from pay.idempotency_keys`;
    assert.equal(kept!.keys, 0);
  });
  await t.step("another environment has a limit of its own", async () => {
    await addEndpoint(service, URL, {}, { key: service.other.text });
  });
  await t.step("a live environment refuses the 17th", async () => {
    const key = service.live.text;
    for (let i = 0; i < MAX_LIVE_ENDPOINTS; i++) await addEndpoint(service, URL, {}, { key });
    const refused = await service.call("POST", ENDPOINTS, { key, body: { url: URL } });
    assertRefused(refused, 400, "invalid_parameter", "url");
    assert.match(refused.body.error.message, /16/);
  });
  await t.step("an event has a delivery with an id of its own for each", async () => {
    const stem_of_first = /^whd_[0-9a-hjkmnp-tv-z]{24}/;
    await service.pay({ amount: 1000 });
    const rows = await service.sql<{ id: string; event_id: string }[]>`
      select id, event_id from pay.webhook_deliveries where event_type = 'payment.created'`;
    assert.equal(new Set(rows.map(({ id }) => id)).size, MAX_ENDPOINTS);
    assert.equal(new Set(rows.map(({ event_id }) => event_id)).size, 1);
    for (const { id } of rows) assert.match(id, idPattern("whd_"));
    assert.equal(new Set(rows.map(({ id }) => stem_of_first.exec(id)![0])).size, 1);
  });
  await t.step("deleting one makes room, and the refused key can be used", async () => {
    assert.equal((await service.call("DELETE", `${ENDPOINTS}/${ids[7]}`)).status, 200);
    const made = await service.call("POST", ENDPOINTS, {
      body: { url: URL },
      idempotency_key: "one-too-many",
    });
    assert.equal(made.status, 201, made.text);
  });
});

serviceCase("the disposable sandboxes of an account have 2 000 endpoints", async (t, service) => {
  const { sql } = service;
  const create = async () => {
    const made = await service.call("POST", "/api-v1-sandbox/v1/sandboxes", { body: {} });
    assert.equal(made.status, 201, made.text);
    return made.body;
  };
  const [first, second] = [await create(), await create()];
  await sql`alter table pay.webhook_endpoints drop constraint webhook_endpoints_slot_key`;
  await sql`
    insert into pay.webhook_endpoints (environment_id, id, slot, url, events, status, secrets,
      revision, created_at, body)
    select ${first.id}, 'whe_' || n, 63, ${URL}, '{*}', 'enabled', '[]', 1, now(), '{}'
    from generate_series(1, 1998) n`;
  const key = second.test_key;
  await t.step("two more are taken, and the next are refused", async () => {
    const responses = await Promise.all(
      Array.from({ length: 4 }, () => service.call("POST", ENDPOINTS, { key, body: { url: URL } })),
    );
    const statuses = responses.map(({ status }) => status);
    assert.deepEqual(statuses.toSorted(), [201, 201, 400, 400]);
    const refused = responses.find(({ status }) => status === 400)!;
    assertRefused(refused, 400, "invalid_parameter", "url");
    assert.match(refused.body.error.message, /2000 webhook endpoints/);
  });
  await t.step("the sandbox that made them has its own limit", async () => {
    await addEndpoint(service, URL);
  });
  await t.step("the end of a sandbox makes room", async () => {
    await service.call("DELETE", `/api-v1-sandbox/v1/sandboxes/${first.id}`);
    const made = await service.call("POST", ENDPOINTS, { key, body: { url: URL } });
    assert.equal(made.status, 201, made.text);
  });
});

serviceCase("POST /v1/webhook_endpoints 70 times at once leaves 64", async (_, service) => {
  const responses = await Promise.all(
    Array.from({ length: 70 }, (_, i) =>
      service.call("POST", ENDPOINTS, {
        body: { url: `${URL}/${i}` },
        ...(i % 2 && { idempotency_key: `create-${i}` }),
      })),
  );
  const statuses = responses.map(({ status }) => status);
  assert.equal(statuses.filter((status) => status === 201).length, MAX_ENDPOINTS, `${statuses}`);
  assert.equal(statuses.filter((status) => status === 400).length, 6, `${statuses}`);
  const rows = await service.sql`select slot from pay.webhook_endpoints order by slot`;
  assert.deepEqual(
    rows.map(({ slot }) => slot),
    Array.from({ length: MAX_ENDPOINTS }, (_, i) => i),
  );
});
