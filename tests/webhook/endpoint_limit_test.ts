/** An environment has at most 16 endpoints (contract §4), also when many are created at once. */

import assert from "node:assert/strict";
import { assertRefused, serviceCase } from "../support/service/service_case.ts";
import { addEndpoint, ENDPOINTS } from "../support/webhook/recording_receiver.ts";

const MAX_ENDPOINTS = 16;
const URL = "https://hooks.example.com/payments";

serviceCase("POST /v1/webhook_endpoints refuses the 17th endpoint", async (t, service) => {
  const ids: string[] = [];
  for (let i = 0; i < MAX_ENDPOINTS; i++) ids.push((await addEndpoint(service, URL)).id);
  await t.step("it is 400, and 400 again with the same idempotency key", async () => {
    for (let i = 0; i < 2; i++) {
      const refused = await service.call("POST", ENDPOINTS, {
        body: { url: URL },
        idempotency_key: "one-too-many",
      });
      assertRefused(refused, 400, "invalid_parameter", "url");
      assert.match(refused.body.error.message, /16/);
    }
    const [kept] = await service.sql`select count(*)::int as keys from pay.idempotency_keys`;
    assert.equal(kept!.keys, 0);
  });
  await t.step("another environment has a limit of its own", async () => {
    await addEndpoint(service, URL, {}, { key: service.other.text });
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

serviceCase("POST /v1/webhook_endpoints 20 times at once leaves 16", async (_, service) => {
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      service.call("POST", ENDPOINTS, {
        body: { url: `${URL}/${i}` },
        ...(i % 2 && { idempotency_key: `create-${i}` }),
      })),
  );
  const statuses = answers.map(({ status }) => status);
  assert.equal(statuses.filter((status) => status === 201).length, MAX_ENDPOINTS, `${statuses}`);
  assert.equal(statuses.filter((status) => status === 400).length, 4, `${statuses}`);
  const rows = await service.sql`select slot from pay.webhook_endpoints order by slot`;
  assert.deepEqual(rows.map(({ slot }) => slot), Array.from({ length: 16 }, (_, i) => i));
});
