/**
 * Instruments in a sandbox (contract §2): payments that save them, later payments with and without
 * the payer, their end, and races. tests/model has the status of each after every payment.
 */

import assert from "node:assert/strict";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import type { CallOptions, TestResponse, TestService } from "../support/service/service.ts";
import {
  advanceClock,
  APPROVED,
  assertRefused,
  assertReplay,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

const DAY_S = 86_400;
const INSTRUMENTS = "/api-v1-payments/v1/instruments";
const U = { customer: { id: "u1", email: "ada@example.com" } };
const BACK = { return_url: "https://shop.example/back" };
const SAVE = { save: "off_session" } as const;
const IBANS = { good: "DE89 3704 0044 0532 0130 00", other: "DE02 1203 0000 0000 2020 51" };
const SIGNED = { mandate: { signed_at: "2026-01-31" } };
const MANDATE = { mandate: { id: "M-1", signed_at: "2026-01-31" } };
const signed = (sequence: string) => ({ mandate: { ...SIGNED.mandate, sequence } });

type Body = Record<string, unknown>;
const token = (name: string) => ({ card: { token: `pm_card_${name}` } });

/** Saves an instrument by a payment. Returns the payment. */
async function save(service: TestService, body: Body, amount = 1000) {
  const { status, body: payment, text } = await service.make({
    ...{ amount_minor: amount, ...U, ...SAVE },
    ...body,
  });
  assert.equal(status, 201, text);
  return payment;
}

const use = (
  service: TestService,
  instrument: string,
  body: Body = {},
  options: CallOptions = {},
) => service.pay({ amount: 500, instrument, off_session: true, ...body }, options);

const read = (service: TestService, id: string) => service.get(`${INSTRUMENTS}/${id}`);

async function endedEvents(service: TestService, id: string) {
  const path = `/api-v1-payments/v1/events?instrument_id=${id}&type=instrument.ended`;
  return (await service.get(path)).data;
}

const CARD = { ...token("visa"), ...U, ...SAVE };
const SEPA = { ...U, ...SAVE, iban: IBANS.good };
/** [what is wrong; the body; the field] */
const REFUSED: [name: string, body: Body, param: string][] = [
  ["0 without save", { amount: 0, ...token("visa") }, "amount"],
  ["0 with manual capture", { amount: 0, ...CARD, ...BACK, capture: "manual" }, "amount"],
  ["0 by card without a return_url", { amount: 0, ...CARD }, "return_url"],
  ["0 that is refunded", { amount: 0, ...CARD, ...BACK, outcome: "refunded" }, "outcome"],
  ["save without a customer", { ...token("visa"), ...SAVE }, "customer.id"],
  ["save without an id", { ...token("visa"), ...SAVE, payer: { email: "a@b.de" } }, "payer.id"],
  ["save without an instrument", { ...U, ...SAVE }, "save"],
  ["save of a wallet", { ...U, ...SAVE, ...APPROVED.stablecoin }, "save"],
  ["save of SWIFT", { ...U, ...SAVE, ...APPROVED.swift, currency: "USD" }, "save"],
  ["save of an IBAN without a mandate", SEPA, "mandate"],
  ["save of a last collection", { ...SEPA, ...signed("final") }, "mandate.sequence"],
  ["a mandate without an id", { iban: IBANS.good, ...signed("recurring") }, "mandate.id"],
  ["a mandate without a sequence", { iban: IBANS.good, ...MANDATE }, "mandate.sequence"],
  ["off_session without an instrument", { ...token("visa"), off_session: true }, "off_session"],
  ["an unknown instrument", { instrument: `ins_${"0".repeat(26)}` }, "instrument"],
];

serviceCase("what cannot be saved or used", async (t, service) => {
  for (const [name, body, param] of REFUSED) {
    await t.step(
      name,
      async () => assertRefused(await service.pay(body), "invalid_parameter", param),
    );
  }
  const { instrument_id: id } = await save(service, token("visa"));
  const { instrument_id: present } = await save(service, { ...token("visa"), save: "on_session" });
  /** [what is wrong; the instrument; the body; the field] */
  const uses: [name: string, instrument: string, body: Body, param: string][] = [
    ["off_session of on_session", present, {}, "off_session"],
    ["with a return_url", id, BACK, "off_session"],
    ["with a card", id, token("visa"), "card"],
    ["with an incomplete card", id, { card: { number: "4242" } }, "card"],
    ["with an incomplete mandate", id, { mandate: { sequence: "first" } }, "mandate"],
    ["with another kind", id, { method_kind: "sepa" }, "method_kind"],
    ["with another capability", id, { capability: "sepa_payment" }, "capability"],
    ["of another customer", id, { customer: { id: "u2", email: "a@b.example" } }, "customer.id"],
    ["of another payer", id, { payer: { id: "u2", email: "a@b.example" } }, "payer.id"],
    ["saved again", id, { save: "off_session" }, "save"],
    ["in a currency that cards do not take", id, { currency: "USDC" }, "currency"],
    ["of another customer by the id alone", id, { customer: { id: "u2" } }, "customer.id"],
  ];
  for (const [name, instrument, body, param] of uses) {
    await t.step(
      `a use ${name}`,
      async () => assertRefused(await use(service, instrument, body), "invalid_parameter", param),
    );
  }
  await t.step("a use that agrees", async () => {
    const body = { method_kind: "card", customer: { id: "u1", email: "new@example.com" } };
    const response = await use(service, id, body);
    assert.equal(response.status, 201, response.text);
    assert.equal(response.body.customer.email, "new@example.com");
    assert.equal((await read(service, id)).customer.email, "ada@example.com");
    for (const more of [{}, { customer: { id: "u1" } }]) {
      const on_session = await use(service, present, { off_session: false, ...more });
      assert.equal(on_session.status, 201, on_session.text);
      assert.deepEqual(on_session.body.customer, U.customer);
    }
  });
  await t.step("a use without the scope", async () => {
    const { environment_id } = service.key;
    const { text: key } = await service.issueKey(environment_id, { scopes: ["payments:write"] });
    const refused = await use(service, id, {}, { key });
    assert.equal(refused.status, 403);
    assert.equal(refused.body.error.required_scope, "instruments:use");
    assert.equal((await service.pay(token("visa"), { key })).status, 201);
  });
});

serviceCase("the end of an instrument, and lists", async (t, service) => {
  await service.post("/api-v1-payments/v1/webhook_endpoints", { delivery: "inbox" });
  const { instrument_id: id } = await save(service, token("visa"));
  const { instrument_id: second } = await save(service, token("amex"));
  const end = (name: string, options: CallOptions = {}) =>
    service.call("DELETE", `${INSTRUMENTS}/${name}`, options);
  await t.step("an active one", async () => {
    const ended = await end(id);
    assert.deepEqual([ended.status, ended.body.ended_reason], [200, "deleted"], ended.text);
    assert.equal((await end(id)).text, ended.text);
    const [event, ...others] = await endedEvents(service, id);
    assert.deepEqual(others, []);
    assert.equal(event.type, "instrument.ended");
    assert.deepEqual(event.data.object, ended.body);
    const used = await use(service, id, {}, { idempotency_key: "late" });
    assert.equal(used.status, 409);
    assert.match(used.body.error.message, /deleted/);
    assertReplay(await use(service, id, {}, { idempotency_key: "late" }), used);
  });
  await t.step("one that has failed: 409, which is stored", async () => {
    const { body: { error } } = await service.pay({
      ...token("visa"),
      ...U,
      ...SAVE,
      outcome: "declined",
    });
    const options = { idempotency_key: "failed" };
    const refused = await end(error.payment.instrument_id, options);
    assert.equal(refused.body.error.current_status, "failed");
    assertReplay(await end(error.payment.instrument_id, options), refused);
  });
  await t.step("an idle one, also before a job writes it", async () => {
    const { instrument_id } = await save(service, { iban: IBANS.good, ...SIGNED });
    await service.sql`update pay.instruments
      set idle_at = date_trunc('second', now()) where id = ${instrument_id}`;
    const shown = await read(service, instrument_id);
    assert.deepEqual([shown.status, shown.ended_reason, shown.sequence], ["ended", "idle", 2]);
    const active = await service.get(`${INSTRUMENTS}?customer_id=u1&status=active`);
    assert.deepEqual(active.data.map((item: Body) => item["id"]), [second]);
    assert.deepEqual((await use(service, instrument_id)).body.error.current_status, "ended");
    assert.deepEqual((await end(instrument_id)).body, shown);
    const [event] = await endedEvents(service, instrument_id);
    assert.deepEqual([event.data.object, event.created_at], [shown, shown.ended_at]);
  });
  await assertSilent(service.sql);
});

/** [how the payment that saves a mandate ends before it is taken; the instrument then] */
const UNSAVED: [body: Body, status: string][] = [
  [{ to: "cancelled" }, "failed"],
  [{ to: "failed", return_code: "AM04" }, "failed"],
  [{ to: "failed", return_code: "MD01" }, "ended"],
];

serviceCase("a saved mandate", async (t, service) => {
  const collected = { iban: IBANS.good, ...SIGNED };
  await t.step("the service makes an id, and later payments are collected under it", async () => {
    const payment = await save(service, { ...collected, save: "off_session" });
    assert.equal(payment.status, "processing");
    assert.match(payment.method.mandate.id, /^M[A-Z0-9]{20}$/);
    const instrument = await read(service, payment.instrument_id);
    assert.equal(instrument.status, "active");
    assert.deepEqual(instrument.mandate, {
      id: payment.method.mandate.id,
      signed_at: "2026-01-31",
    });
    const { body } = await use(service, payment.instrument_id, { amount: 1500 });
    assert.equal(body.status, "processing");
    assert.deepEqual(body.method, payment.method);
    await advanceClock(service, 20 * DAY_S);
    const path = `/api-v1-payments/v1/payments/${body.id}`;
    assert.equal((await service.get(path)).status, "completed");
  });
  for (const [number, [body, status]] of UNSAVED.entries()) {
    await t.step(`${Object.values(body)} before it is taken: ${status}, of its IBAN`, async () => {
      const mandate = { id: `unsaved ${number}`, signed_at: "2026-01-31" };
      const waiting = { iban: IBANS.good, mandate, settlement: "manual" };
      const { id, instrument_id } = await save(service, waiting);
      assert.equal((await read(service, instrument_id)).status, "pending");
      await service.call("POST", `${SANDBOX}/payments/${id}/advance`, { body });
      assert.equal((await read(service, instrument_id)).status, status);
      const again = (iban: string) => service.make({ ...U, ...SAVE, iban, mandate });
      assertRefused(await again(IBANS.other), "invalid_parameter", "mandate.id");
      assert.equal((await again(IBANS.good)).status, status === "ended" ? 400 : 201);
    });
  }
  await t.step("a mandate whose IBAN comes with each payment", async () => {
    const one_off = { id: "once", signed_at: "2026-01-31", sequence: "one_off" };
    const { body } = await service.pay({ iban: IBANS.good, mandate: one_off });
    assert.equal(body.instrument_id, null);
    const { instrument_id } = await save(service, collected);
    const in_dollars = await use(service, instrument_id, { currency: "USD" });
    assertRefused(in_dollars, "invalid_parameter", "currency");
    const { data } = await service.get(`${INSTRUMENTS}?status=ended&limit=1`);
    assert.equal(data[0].mandate.id, "once");
    assert.equal(data[0].is_kept, false);
    assert.equal(data[0].ended_reason, "used_up");
    const mandate = { ...MANDATE.mandate, sequence: "recurring" };
    assert.equal((await service.pay({ iban: IBANS.good, mandate })).status, 201);
    const other = await service.pay({ iban: IBANS.other, mandate });
    assertRefused(other, "invalid_parameter", "mandate.id");
    assert.equal((await service.pay({ iban: IBANS.good, mandate })).status, 201);
    const saving = await service.pay({ ...SEPA, ...MANDATE });
    assertRefused(saving, "invalid_parameter", "mandate.id");
    const { data: [known] } = await service.get(`${INSTRUMENTS}?status=active&limit=1`);
    assertRefused(await use(service, known.id), "invalid_parameter", "instrument");
    assertRefused(await use(service, data[0].id), "invalid_state");
  });
  await assertSilent(service.sql);
});

serviceCase("the end of an instrument against ten charges", async (_, service) => {
  for (let round = 0; round < 50; round++) {
    const { instrument_id: id } = await save(service, {
      ...token("visa"),
      customer: { id: `r${round}`, email: "a@b.example" },
    });
    let is_ended = false;
    const charge = async () => {
      const began_after = is_ended;
      const { status, text } = await use(service, id);
      assert.ok(status === 409 || status === 201 && !began_after, text);
    };
    const charges = Array.from({ length: 5 }, charge);
    const end = service.call("DELETE", `${INSTRUMENTS}/${id}`).then(({ status }) => {
      assert.equal(status, 200);
      is_ended = true;
    });
    await Promise.all([...charges, end, ...Array.from({ length: 5 }, charge)]);
    await charge();
  }
  await assertSilent(service.sql);
});

serviceCase("saves and uses of one customer at once", async (t, service) => {
  const at_once = (count: number, send: (i: number) => Promise<TestResponse>) =>
    Promise.all(Array.from({ length: count }, (_, i) => send(i)));
  await t.step("60 saves: 50 remain, also with one that is pending", async () => {
    const pending = await save(service, { ...token("authenticationRequired"), ...BACK });
    const told = await at_once(60, () => service.pay(CARD));
    assert.equal(told.filter(({ status }) => status === 201).length, 49);
    for (const refused of told.filter(({ status }) => status !== 201)) {
      assertRefused(refused, "invalid_parameter", "save");
    }
    await service.call("POST", `/api-v1-payments/v1/payments/${pending.id}/cancel`);
    assert.equal((await service.pay(CARD)).status, 201);
    const path = `${INSTRUMENTS}?customer_id=u1&status=active&limit=100`;
    assert.equal((await service.get(path)).data.length, 50);
  });
  await t.step("a clock that passes 36 months beside a use: collected or refused", async () => {
    for (let round = 0; round < 3; round++) {
      const { now } = await service.get(`${SANDBOX}/clock`);
      const { instrument_id: id } = await save(service, {
        ...{ iban: IBANS.good, mandate: { signed_at: now.slice(0, 10) } },
        customer: { id: `late ${round}`, email: "a@b.example" },
      });
      await advanceClock(service, 3 * 365 * DAY_S);
      const [used] = await Promise.all([use(service, id), advanceClock(service, 2 * DAY_S)]);
      const { status, ended_reason } = await read(service, id);
      if (used.status === 201) assert.equal(status, "active", used.text);
      else assert.deepEqual([used.status, status, ended_reason], [409, "ended", "idle"]);
    }
  });
  await assertSilent(service.sql);
});
