/**
 * Instruments in a sandbox (contract §2): payments that save them, later payments with and without
 * the payer, and their end.
 */

import assert from "node:assert/strict";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import type { CallOptions, TestResponse, TestService } from "../support/service/service.ts";
import {
  advance,
  assertRefused,
  LEDGER,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

const INSTRUMENTS = "/api-v1-payments/v1/instruments";
const U = { customer: { id: "u1", email: "ada@example.com" } };
const BACK = { return_url: "https://shop.example/back" };
const SAVE = { save: "off_session" } as const;
const IBANS = {
  good: "DE89 3704 0044 0532 0130 00",
  other: "DE02 1203 0000 0000 2020 51",
  MD01: "DE78 3704 0044 0532 0131 01",
  AC04: "DE94 3704 0044 0532 0131 04",
  AM04: "DE92 3704 0044 0532 0131 40",
  MS03: "DE71 3704 0044 0532 0131 30",
};
const SIGNED = { mandate: { signed_at: "2026-01-31" } };

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

async function read(service: TestService, id: string) {
  const { status, body, text } = await service.call("GET", `${INSTRUMENTS}/${id}`);
  assert.equal(status, 200, text);
  return body;
}

async function endedEvents(service: TestService, id: string) {
  const path = `/api-v1-payments/v1/events?instrument_id=${id}`;
  return (await service.call("GET", path)).body.data;
}

/** Advances the clock of the sandbox by days, in steps that it takes. Returns the number of calls. */
async function pass(service: TestService, days: number): Promise<number> {
  let calls = 0;
  for (let left = days; left > 0; left -= 366) {
    let body: Body = { advance: Math.min(left, 366) * 86_400 };
    for (;; calls++) {
      const clock = await service.call("POST", `${SANDBOX}/clock`, { body });
      assert.equal(clock.status, 200, clock.text);
      if (!clock.body.has_more) break;
      body = { to: clock.body.target };
    }
  }
  return calls;
}

/** [the card that is saved with a return_url; the payment; on-session; off-session] */
const CARDS: [token: string, saved: string, on_session: string, off_session: string][] = [
  ["visa", "completed", "completed", "completed"],
  ["mastercard", "completed", "completed", "completed"],
  ["amex", "completed", "completed", "completed"],
  ["authenticationRequiredOnSetup", "requires_action", "requires_action", "completed"],
  ["authenticationRequired", "requires_action", "requires_action", "authentication_required"],
  ["chargeCustomerFail", "completed", "payment_declined", "payment_declined"],
  ["late", "processing", "processing", "processing"],
  ["createDispute", "chargeback", "chargeback", "chargeback"],
];

const outcomeOf = ({ status, body }: TestResponse) =>
  status === 201 ? body.status : body.error.code;

serviceCase("a saved card", async (t, service) => {
  for (const [name, saved, on_session, off_session] of CARDS) {
    for (const amount of [1000, 0]) {
      await t.step(`${name}, saved with ${amount}`, async () => {
        const payment = await save(service, { ...token(name), ...BACK }, amount);
        const without_money = amount === 0 && saved === "chargeback";
        assert.equal(payment.status, without_money ? "completed" : saved);
        const { instrument_id: id } = payment;
        if (saved === "requires_action") {
          assert.equal((await read(service, id)).status, "pending");
          assert.equal((await use(service, id)).body.error.current_status, "pending");
          await service.call("POST", `${SANDBOX}/payments/${payment.id}/authenticate`);
        }
        if (saved === "processing") await advance(service, payment.id, "completed");
        const instrument = await read(service, id);
        assert.equal(instrument.status, "active");
        assert.equal(instrument.usage, "off_session");
        assert.equal(instrument.payment_id, payment.id);
        assert.deepEqual(instrument.customer, { ...U.customer, name: null });
        const off = await use(service, id);
        assert.equal(outcomeOf(off), off_session, off.text);
        const on = await use(service, id, { off_session: false, ...BACK });
        assert.equal(outcomeOf(on), on_session, on.text);
        assert.equal((await read(service, id)).status, "active", "no use changes the status");
      });
    }
  }
  await t.step("no entry of the ledger and no refund of a payment of 0", async () => {
    const { id } = await save(service, { ...token("visa"), ...BACK }, 0);
    assert.deepEqual((await service.call("GET", `${LEDGER}?payment_id=${id}`)).body.data, []);
    const path = `/api-v1-payments/v1/payments/${id}/refund`;
    for (const body of [{}, { amount: 1 }]) {
      assert.equal((await service.call("POST", path, { body })).status, 409);
    }
    for (const to of ["refunded", "partially_refunded", "chargeback", "failed"]) {
      assert.equal((await advance(service, id, to)).status, 409, to);
    }
  });
  await t.step("the same key again: the same bytes, and one capture", async () => {
    const { instrument_id } = await save(service, token("visa"));
    const first = await use(service, instrument_id, {}, { idempotency_key: "charge" });
    const again = await use(service, instrument_id, {}, { idempotency_key: "charge" });
    assert.equal(first.status, 201);
    assert.equal(again.text, first.text);
    assert.equal(first.body.customer.id, "u1");
    const { data } = (await service.call("GET", `${LEDGER}?payment_id=${first.body.id}`)).body;
    assert.deepEqual(data.map((entry: Body) => entry["amount_minor"]), [500, 500].map(Number));
  });
  await t.step("a payment that is declined or fails to save: failed", async () => {
    for (
      const body of [token("chargeDeclinedInsufficientFunds"), {
        ...token("visa"),
        outcome: "declined",
      }]
    ) {
      const { body: { error } } = await service.pay({ ...U, ...SAVE, ...body });
      const { instrument_id } = error.payment;
      assert.equal((await read(service, instrument_id)).status, "failed");
      assert.equal((await use(service, instrument_id)).body.error.current_status, "failed");
    }
    const { id, instrument_id } = await save(service, {
      ...token("authenticationRequired"),
      ...BACK,
    }, 0);
    await service.call("POST", `${SANDBOX}/payments/${id}/authenticate`, {
      body: { result: "failure" },
    });
    assert.equal((await read(service, instrument_id)).status, "failed");
  });
  await assertSilent(service.sql);
});

/** [what is wrong; the body; the field] */
const REFUSED: [name: string, body: Body, param: string][] = [
  ["0 without save", { amount: 0, ...token("visa") }, "amount"],
  ["0 with manual capture", {
    amount: 0,
    ...token("visa"),
    ...U,
    ...SAVE,
    ...BACK,
    capture: "manual",
  }, "amount"],
  ["0 by card without a return_url", { amount: 0, ...token("visa"), ...U, ...SAVE }, "return_url"],
  ["0 that is refunded", {
    amount: 0,
    ...token("visa"),
    ...U,
    ...SAVE,
    ...BACK,
    outcome: "refunded",
  }, "outcome"],
  ["save without a customer", { ...token("visa"), ...SAVE }, "customer.id"],
  [
    "save without the id of a payer",
    { ...token("visa"), ...SAVE, payer: { email: "a@b.example" } },
    "payer.id",
  ],
  ["save without an instrument", { ...U, ...SAVE }, "save"],
  [
    "save of a wallet",
    { ...U, ...SAVE, wallet: "0x000000000000000000000000000000000000dEaD" },
    "save",
  ],
  ["save of an IBAN by SWIFT", {
    ...U,
    ...SAVE,
    iban: "GB82 WEST 1234 5698 7654 32",
    currency: "USD",
  }, "save"],
  ["save of an IBAN without a mandate", { ...U, ...SAVE, iban: IBANS.good }, "mandate"],
  ["save of a last collection", {
    ...U,
    ...SAVE,
    iban: IBANS.good,
    mandate: { signed_at: "2026-01-31", sequence: "final" },
  }, "mandate.sequence"],
  ["a mandate without an id", {
    iban: IBANS.good,
    mandate: { signed_at: "2026-01-31", sequence: "recurring" },
  }, "mandate.id"],
  ["a mandate without a sequence", {
    iban: IBANS.good,
    mandate: { signed_at: "2026-01-31", id: "M-1" },
  }, "mandate.sequence"],
  ["off_session without an instrument", { ...token("visa"), off_session: true }, "off_session"],
  ["an unknown instrument", { instrument: `ins_${"0".repeat(26)}` }, "instrument"],
];

serviceCase("what cannot be saved or used", async (t, service) => {
  for (const [name, body, param] of REFUSED) {
    await t.step(
      name,
      async () => assertRefused(await service.pay(body), 400, "invalid_parameter", param),
    );
  }
  const { instrument_id: id } = await save(service, token("visa"));
  const { instrument_id: present } = await save(service, { ...token("visa"), save: "on_session" });
  /** [what is wrong; the instrument; the body; the field] */
  const uses: [name: string, instrument: string, body: Body, param: string][] = [
    ["off_session of on_session", present, {}, "off_session"],
    ["with a return_url", id, BACK, "off_session"],
    ["with a card", id, token("visa"), "card"],
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
      async () =>
        assertRefused(await use(service, instrument, body), 400, "invalid_parameter", param),
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
  await t.step("a use in another sandbox", async () => {
    assertRefused(
      await use(service, id, {}, { key: service.other.text }),
      400,
      "invalid_parameter",
      "instrument",
    );
  });
  await t.step("a use without the scope", async () => {
    const { environment_id } = service.key;
    const { text: key } = await service.issueKey(environment_id, { scopes: ["payments:write"] });
    const refused = await use(service, id, {}, { key });
    assert.equal(refused.status, 403);
    assert.equal(refused.body.error.required_scope, "instruments:use");
    assert.equal((await service.pay(token("visa"), { key })).status, 201);
  });
  await t.step("the 51st of a customer, also of one that is pending", async () => {
    const body = { ...token("visa"), customer: { id: "many", email: "a@b.example" }, ...SAVE };
    const pending = await save(service, { ...body, ...token("authenticationRequired"), ...BACK });
    for (let i = 1; i < 50; i++) await save(service, body);
    assertRefused(await service.pay(body), 400, "invalid_parameter", "save");
    await service.call("POST", `/api-v1-payments/v1/payments/${pending.id}/cancel`);
    assert.equal((await service.pay(body)).status, 201);
  });
});

serviceCase("the end of an instrument, and lists", async (t, service) => {
  await service.call("POST", "/api-v1-payments/v1/webhook_endpoints", {
    body: { delivery: "inbox" },
  });
  const { instrument_id: id } = await save(service, token("visa"));
  const { instrument_id: second } = await save(service, token("amex"));
  const end = (name: string, options: CallOptions = {}) =>
    service.call("DELETE", `${INSTRUMENTS}/${name}`, options);
  await t.step("an active one", async () => {
    const ended = await end(id, { idempotency_key: "end" });
    assert.equal(ended.status, 200, ended.text);
    assert.equal(ended.body.status, "ended");
    assert.equal(ended.body.ended_reason, "deleted");
    assert.equal((await end(id)).text, ended.text);
    assert.equal((await end(id, { idempotency_key: "end" })).text, ended.text);
    const [event, ...others] = await endedEvents(service, id);
    assert.deepEqual(others, []);
    assert.equal(event.type, "instrument.ended");
    assert.deepEqual(event.data.object, ended.body);
    const used = await use(service, id, {}, { idempotency_key: "late" });
    assert.equal(used.status, 409);
    assert.match(used.body.error.message, /deleted/);
    const again = await use(service, id, {}, { idempotency_key: "late" });
    assert.deepEqual([again.text, again.headers.get("Idempotent-Replayed")], [used.text, "true"]);
  });
  await t.step("one whose payment has no result: 409, which is not stored", async () => {
    const pending = await save(service, { ...token("authenticationRequired"), ...BACK }, 0);
    const options = { idempotency_key: "early" };
    assert.equal((await end(pending.instrument_id, options)).body.error.current_status, "pending");
    await service.call("POST", `${SANDBOX}/payments/${pending.id}/authenticate`);
    assert.equal((await end(pending.instrument_id, options)).body.status, "ended");
  });
  await t.step("an unknown one", async () => {
    assert.equal((await end(`ins_${"0".repeat(26)}`)).status, 404);
    assert.equal((await end(id, { key: service.other.text })).status, 404);
  });
  await t.step("lists by customer, status and kind, newest first", async () => {
    const list = async (query: string) =>
      (await service.call("GET", `${INSTRUMENTS}?${query}`)).body.data.map((
        { id }: { id: string },
      ) => id);
    assert.deepEqual(await list("customer_id=u1&status=active"), [second]);
    assert.equal((await list("customer_id=u1")).at(-1), id);
    assert.equal((await list("customer_id=u1&limit=1")).length, 1);
    assert.deepEqual(await list("customer_id=u2"), []);
    assert.deepEqual(await list("method_kind=sepa"), []);
    const payments = await service.call("GET", `/api-v1-payments/v1/payments?instrument_id=${id}`);
    assert.equal(payments.body.data.length, 1);
  });
  await assertSilent(service.sql);
});

/** [what the bank does; the IBAN; status and reason after it, of the payment and of the instrument] */
const RETURNS: [
  iban: keyof typeof IBANS,
  days: number,
  payment: string,
  code: string | null,
  instrument: string,
  reason: string | null,
][] = [
  ["good", 20, "completed", null, "active", null],
  ["MD01", 20, "failed", "MD01", "ended", "revoked"],
  ["AC04", 20, "failed", "AC04", "ended", "account_closed"],
  ["AM04", 20, "failed", "AM04", "active", null],
  ["MS03", 20, "completed", null, "active", null],
  ["MS03", 60, "failed", "MS03", "active", null],
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
    await pass(service, 20);
    const path = `/api-v1-payments/v1/payments/${body.id}`;
    assert.equal((await service.call("GET", path)).body.status, "completed");
  });
  await t.step("with 0 at once", async () => {
    const payment = await save(service, { ...collected, iban: IBANS.MD01 }, 0);
    assert.equal(payment.status, "completed");
    assert.equal(payment.method.due_on, null);
    assert.equal((await read(service, payment.instrument_id)).last_used_at, null);
  });
  for (const [iban, days, status, code, instrument, reason] of RETURNS) {
    await t.step(`${iban} after ${days} days`, async () => {
      const { id, instrument_id } = await save(service, { iban: IBANS[iban], ...SIGNED });
      await pass(service, days);
      const { body } = await service.call("GET", `/api-v1-payments/v1/payments/${id}`);
      assert.deepEqual([body.status, body.return_code], [status, code]);
      const shown = await read(service, instrument_id);
      assert.deepEqual([shown.status, shown.ended_reason], [instrument, reason]);
      assert.equal((await endedEvents(service, instrument_id)).length, reason === null ? 0 : 1);
    });
  }
  await t.step("a mandate whose IBAN comes with each payment", async () => {
    const one_off = { id: "once", signed_at: "2026-01-31", sequence: "one_off" };
    const { body } = await service.pay({ iban: IBANS.good, mandate: one_off });
    assert.equal(body.instrument_id, null);
    assertRefused(
      await use(service, (await save(service, collected)).instrument_id, { currency: "USD" }),
      ...[400, "invalid_parameter", "currency"] as const,
    );
    const { body: { data } } = await service.call("GET", `${INSTRUMENTS}?status=ended&limit=1`);
    assert.equal(data[0].mandate.id, "once");
    assert.equal(data[0].is_kept, false);
    assert.equal(data[0].ended_reason, "used_up");
    const mandate = { id: "M-1", signed_at: "2026-01-31", sequence: "recurring" };
    assert.equal((await service.pay({ iban: IBANS.good, mandate })).status, 201);
    assertRefused(
      await service.pay({ iban: IBANS.other, mandate }),
      400,
      "invalid_parameter",
      "mandate.id",
    );
    assert.equal((await service.pay({ iban: IBANS.good, mandate })).status, 201);
    const kept = {
      ...U,
      ...SAVE,
      iban: IBANS.good,
      mandate: { id: "M-1", signed_at: "2026-01-31" },
    };
    assertRefused(await service.pay(kept), 400, "invalid_parameter", "mandate.id");
    const { body: { data: [known] } } = await service.call(
      "GET",
      `${INSTRUMENTS}?status=active&limit=1`,
    );
    assertRefused(await use(service, known.id), 400, "invalid_parameter", "instrument");
  });
  await t.step("36 months without a collection end it, with its event then", async () => {
    const { instrument_id, created_at } = await save(service, collected);
    await pass(service, 3 * 366);
    const { status, ended_reason, ended_at } = await read(service, instrument_id);
    assert.deepEqual([status, ended_reason], ["ended", "idle"]);
    const due = new Date(created_at);
    due.setUTCFullYear(due.getUTCFullYear() + 3);
    assert.equal(ended_at, due.toISOString());
    const [event] = await endedEvents(service, instrument_id);
    assert.equal(event.created_at, ended_at);
  });
  await t.step("a year of twelve collections", async () => {
    const { instrument_id } = await save(service, {
      ...{ iban: IBANS.good, mandate: { signed_at: "2029-01-31" } },
    });
    const began = performance.now();
    for (let month = 0; month < 12; month++) {
      assert.equal((await use(service, instrument_id)).status, 201);
      await pass(service, 30);
    }
    assert.ok(performance.now() - began < 5_000, `${performance.now() - began} ms`);
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
  await t.step("60 saves: 50 remain", async () => {
    const told = await at_once(60, () => service.pay({ ...token("visa"), ...U, ...SAVE }));
    assert.equal(told.filter(({ status }) => status === 201).length, 50);
    for (const refused of told.filter(({ status }) => status !== 201)) {
      assertRefused(refused, 400, "invalid_parameter", "save");
    }
    const path = `${INSTRUMENTS}?customer_id=u1&status=active&limit=100`;
    assert.equal((await service.call("GET", path)).body.data.length, 50);
  });
  await t.step("two saves under one mandate, 20 times: one has it", async () => {
    for (let round = 0; round < 20; round++) {
      const mandate = { id: `M-${round}`, signed_at: "2026-01-31" };
      const told = await at_once(2, (i) =>
        service.pay({
          ...{ ...SAVE, mandate, iban: i === 0 ? IBANS.good : IBANS.other },
          customer: { id: `of ${round} ${i}`, email: "a@b.example" },
        }));
      assert.deepEqual(told.map(({ status }) => status).sort(), [201, 400]);
      const refused = told.find(({ status }) => status === 400)!;
      assertRefused(refused, 400, "invalid_parameter", "mandate.id");
    }
  });
  await t.step("a clock that passes 36 months beside a use: collected or refused", async () => {
    for (let round = 0; round < 3; round++) {
      const { body: { now } } = await service.call("GET", `${SANDBOX}/clock`);
      const { instrument_id: id } = await save(service, {
        ...{ iban: IBANS.good, mandate: { signed_at: now.slice(0, 10) } },
        customer: { id: `late ${round}`, email: "a@b.example" },
      });
      await pass(service, 3 * 365);
      const [used] = await Promise.all([use(service, id), pass(service, 2)]);
      const { status, ended_reason } = await read(service, id);
      if (used.status === 201) assert.equal(status, "active", used.text);
      else assert.deepEqual([used.status, status, ended_reason], [409, "ended", "idle"]);
    }
  });
  await assertSilent(service.sql);
});
