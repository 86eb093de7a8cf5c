/**
 * What the clock brings next (contract §7): the number and the first time of each kind of thing
 * that waits, and an advance does as many.
 */

import assert from "node:assert/strict";
import type { TestService } from "../support/service/service.ts";
import { SANDBOX, serviceCase } from "../support/service/service_case.ts";

const NOW = Date.parse("2026-03-02T12:00:00.000Z");
const DAY_S = 86_400;
const at = (seconds: number) => new Date(NOW + seconds * 1000).toISOString();
const due = async (service: TestService, query = "") =>
  await service.get(`${SANDBOX}/clock/due${query}`);
const set = (service: TestService, body: unknown) =>
  service.call("POST", `${SANDBOX}/clock`, { body });

const CARD = { card: { token: "pm_card_visa" } };
const DISPUTED = { card: { token: "pm_card_createDispute" } };
const THREE_D_SECURE = { card: { token: "pm_card_authenticationRequired" } };
const MANDATE = {
  card: undefined,
  currency: "EUR",
  iban: "DE89370400440532013000",
  mandate: { id: "M-1", signed_at: "2026-03-01", sequence: "recurring" },
};
const DEPOSIT = { card: undefined, method_kind: "sepa", currency: "EUR" };

/** Each row: what is created, and the kind, the seconds to the first and the number of it. */
const WAITING: [name: string, body: Record<string, unknown>, [kind: string, seconds: number][]][] =
  [
    ["authentication", THREE_D_SECURE, [["authentication_end", DAY_S]]],
    ["late result", { card: { token: "pm_card_late" } }, [["payment_result", 2]]],
    ["authorization", { ...CARD, capture: "manual" }, [["authorization_end", 7 * DAY_S]]],
    ["a deposit", DEPOSIT, [["payment_end", 14 * DAY_S]]],
    ["a completed payment", CARD, []],
  ];

serviceCase("GET /clock/due names what waits", async (t, service) => {
  await service.setClock(NOW);
  await set(service, { mode: "frozen" });
  assert.deepEqual(await due(service), {
    object: "due",
    now: at(0),
    until: null,
    data: [],
    has_more: false,
  });
  for (const [name, body, kinds] of WAITING) {
    await t.step(name, async () => {
      await service.call("POST", `${SANDBOX}/reset`);
      await set(service, { mode: "frozen" });
      const paid = [await service.pay(body), await service.pay(body)];
      const ids = paid.map(({ body: { id } }) => id).sort();
      assert.deepEqual(
        (await due(service)).data,
        kinds.map(([kind, s]) => ({ kind, count: 2, first_at: at(s), first_id: ids[0] })),
      );
    });
  }

  await t.step("what has been done otherwise waits no more", async () => {
    await service.call("POST", `${SANDBOX}/reset`);
    await set(service, { mode: "frozen" });
    const authorized = await service.pay({ ...CARD, capture: "manual" });
    const path = `/api-v1-payments/v1/payments/${authorized.body.id}`;
    await service.call("POST", `${path}/capture`, { body: {} });
    const challenged = await service.pay(THREE_D_SECURE);
    await service.post(`${SANDBOX}/payments/${challenged.body.id}/authenticate`);
    const disputed = await service.pay(DISPUTED);
    const disputes = await service.get("/api-v1-payments/v1/disputes");
    assert.equal((await due(service)).data[0].first_id, disputed.body.id);
    await service.post(`/api-v1-payments/v1/disputes/${disputes.data[0].id}/accept`);
    assert.deepEqual((await due(service)).data, []);
  });
});

serviceCase("an advance does what was due", async (t, service) => {
  await service.setClock(NOW);
  await set(service, { mode: "frozen" });
  const endpoint = await service.post("/api-v1-payments/v1/webhook_endpoints", {
    delivery: "inbox",
  });
  assert.ok(endpoint.id, JSON.stringify(endpoint));
  for (let day = 0; day < 3; day++) {
    for (
      const body of [DISPUTED, THREE_D_SECURE, MANDATE, DEPOSIT]
    ) {
      const paid = await service.pay(body);
      assert.equal(paid.status, 201, paid.text);
    }
    await set(service, { advance: 3_600 });
  }

  await t.step("the first of a kind is the oldest, at any size", async () => {
    const { data } = await due(service);
    const kinds = Object.fromEntries(
      // deno-lint-ignore no-explicit-any
      data.map(({ kind, count, first_at }: any) => [kind, [count, first_at]]),
    );
    assert.deepEqual(kinds["authentication_end"][1], at(DAY_S));
    assert.equal(kinds["dispute_loss"][0], 3);
    assert.equal(kinds["payment_result"][0], 3);
    assert.equal(kinds["instrument_end"][0], 1);
  });

  await t.step("until a time", async () => {
    const { until, data } = await due(service, `?until=${at(DAY_S)}`);
    assert.deepEqual([until, data.length, data[0].kind, data[0].count], [
      at(DAY_S),
      1,
      "authentication_end",
      1,
    ]);
    const to = at(DAY_S + 3_600);
    const [{ count }] = (await due(service, `?until=${to}`)).data;
    assert.equal(count, 2);
    assert.equal((await set(service, { to })).body.did.expired_payments, count);
  });

  await t.step("all of it", async () => {
    const all = (await due(service)).data;
    const counted = (kind: string) =>
      all.find((item: { kind: string }) => item.kind === kind)?.count ?? 0;
    const lost = counted("dispute_loss");
    const { body } = await set(service, { advance: 20 * DAY_S });
    assert.equal(body.did.disputes_closed, lost);
    assert.ok(body.did.expired_payments >= 1);
    assert.deepEqual((await due(service)).data.map(({ kind }: { kind: string }) => kind), [
      "instrument_end",
    ]);
  });
});

serviceCase("10 000 of a table are counted", async (_t, service) => {
  await service.setClock(NOW);
  await set(service, { mode: "frozen" });
  await service.pay(THREE_D_SECURE);
  await service.sql`insert into pay.provider_operations
    select (jsonb_populate_record(o, jsonb_build_object('id', 'pc_' || n))).*
    from pay.provider_operations o, generate_series(1, 9998) n`;
  const read = async () => {
    const { data: [{ count }], has_more } = await due(service);
    return [count, has_more];
  };
  assert.deepEqual(await read(), [9_999, false]);
  await service.sql`insert into pay.provider_operations
    select (jsonb_populate_record(o, '{"id":"pc_a"}')).* from pay.provider_operations o
    where o.id = 'pc_1'`;
  assert.deepEqual(await read(), [10_000, true]);
});
