/**
 * Checkouts in a sandbox (contract §2): what creates them, the attempts that pay them, and their
 * ends. The cases send the requests of merchants and payers, and read what comes of them.
 */

import assert from "node:assert/strict";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import {
  callPage,
  CHECKOUTS,
  DECLINED,
  EUR,
  IBAN,
  LINK,
  openCheckout as open,
  PERSON as U,
  SECURE,
  tokenOf,
  USDC,
  VISA,
} from "../support/service/payer_page.ts";
import type { TestResponse, TestService } from "../support/service/service.ts";
import {
  advance,
  advanceClock,
  assertRefused,
  assertReplay,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

const HOSTED = { checkout_url: "https://pay.example.com" };
const HOUR_S = 3_600;
const DAY_S = 24 * HOUR_S;
const URL_OF_PAGE = /^https:\/\/pay\.example\.com\/#cht_[0-9a-f]{48}$/;
const ZERO = { amount: 0, currency: "EUR", save: "off_session", ...U };

type Body = Record<string, unknown>;

const read = async (service: TestService, id: string) => await service.get(`${CHECKOUTS}/${id}`);

const pay = (service: TestService, id: string, body: Body, idempotency_key?: string) =>
  service.call("POST", `${SANDBOX}/checkouts/${id}/pay`, {
    body,
    ...(idempotency_key !== undefined && { idempotency_key }),
  });

/** Returns the statuses of a checkout and of its last payment, and the number of its payments. */
function shown({ status, body, text }: TestResponse): unknown[] {
  if (status !== 200) {
    return [status, body.error.code, ...body.error.param ? [body.error.param] : []];
  }
  assert.equal(body.payment.checkout_id, body.id, text);
  return [body.status, body.payment.status, body.payments_count];
}

/** Returns what the page shows the payer of an attempt: its view, and the amount of its QR code. */
async function viewed(service: TestService, token: string, attempt: string): Promise<string> {
  const { body } = await callPage(service, token, { attempt });
  const { epc_qr, uri = epc_qr } = body.attempt?.next_action ?? {};
  const [amount] = /(?<=\nEUR|uint256=)[\d.]+/.exec(uri ?? "") ?? [];
  const leave = body.may_leave ? ["may leave"] : [];
  return [body.view, ...leave, ...amount ? [amount] : []].join(", ");
}

/** A step after the create: a payment, or what happens to the checkout or its last payment. */
type Step =
  | Body
  | "cancel"
  | `clock ${number}`
  | `advance ${string}`;
type Row = [step: Step, response?: unknown[] | null, page?: string];
const CONFLICT = [409, "invalid_state"];

/** [what happens; the checkout; steps with their response, and what the page then shows; status] */
const CASES: [name: string, body: Body, steps: Row[], status: string][] = [
  ["a decline, and another card", { return_url: "https://shop.example/back" }, [
    [DECLINED, ["open", "declined", 0], "form"],
    [VISA, ["completed", "completed", 1], "paid"],
    [VISA, CONFLICT],
  ], "completed"],
  ["3-D Secure that succeeds", {}, [
    [{ ...SECURE, authenticate: "success" }, ["completed", "completed", 1]],
  ], "completed"],
  ["3-D Secure that fails", {}, [
    [{ ...SECURE, authenticate: "failure" }, ["open", "declined", 0]],
  ], "open"],
  ["a closed tab of 3-D Secure blocks nobody", {}, [
    [SECURE, ["open", "requires_action", 0], "action, may leave"],
    [VISA, ["completed", "completed", 1]],
  ], "completed"],
  ["a transfer in two parts", { methods: ["sepa"] }, [
    [{ method: "sepa" }, ["open", "pending", 0], "transfer, may leave, 19.99"],
    ["advance pending 999", null, "transfer, 10.00"],
    ["advance completed", null, "paid"],
    [{ method: "sepa" }, CONFLICT],
  ], "completed"],
  ["a transfer that arrives after the end", { methods: ["sepa"] }, [
    [{}, ["open", "pending", 0]],
    [`clock ${DAY_S}`],
    [{}, CONFLICT],
    ["advance completed"],
  ], "completed"],
  ["a transfer in between another method", {}, [
    [{ method: "swift" }, ["open", "pending", 0]],
    [{ method: "sepa" }, ["open", "pending", 0]],
  ], "open"],
  ["a stablecoin in two parts", USDC, [
    [{ currency: "USDC" }, ["open", "pending", 0], "transfer, may leave, 21000000"],
    ["advance processing 1000000", null, "transfer, 20000000"],
    ["advance processing 20000000", null, "processing, 0"],
    [VISA, CONFLICT],
    ["advance completed", null, "paid"],
  ], "completed"],
  ["a collection counts while it is on its way", U, [
    [{ method: "sepa_debit", ...IBAN }, ["completed", "processing", 1], "paid"],
  ], "completed"],
  ["a collection that comes back", U, [
    [IBAN, ["completed", "processing", 1]],
    ["advance failed"],
  ], "completed"],
  ["an authorization", { capture: "manual" }, [
    [VISA, ["completed", "authorized", 1]],
    ["advance completed"],
  ], "completed"],
  ["a dispute at once", {}, [
    [tokenOf("createDispute"), ["completed", "chargeback", 1]],
  ], "completed"],
  ["a link of three payers", LINK, [
    [VISA, ["open", "completed", 1], "paid"],
    [{ method: "sepa" }, ["open", "pending", 1], "transfer, may leave, 19.99"],
    [VISA, ["open", "completed", 2]],
    [VISA, ["open", "completed", 3]],
    ["cancel"],
    [VISA, CONFLICT],
  ], "cancelled"],
  ["a cancel ends a transfer that waits", { methods: ["sepa"] }, [
    [{}, ["open", "pending", 0]],
    ["cancel", null, "cancelled"],
    ["advance cancelled"],
  ], "cancelled"],
  ["the end of its time", {}, [
    [`clock ${DAY_S}`, null, "expired"],
    [VISA, CONFLICT],
  ], "expired"],
  ["a link that expires 30 days after its last payment", { ...LINK, expires_at: null }, [
    [`clock ${29 * DAY_S}`],
    [VISA, ["open", "completed", 1]],
    [`clock ${29 * DAY_S}`],
    [VISA, ["open", "completed", 2]],
    [`clock ${30 * DAY_S}`],
    [VISA, CONFLICT],
  ], "expired"],
  ["10 declines within an hour", {}, [
    ...Array<Row>(10).fill([DECLINED, ["open", "declined", 0]]),
    [VISA, [429, "rate_limited"]],
    [`clock ${HOUR_S}`],
    [VISA, ["completed", "completed", 1]],
  ], "completed"],
  ["30 declines of a link within an hour", LINK, [
    ...Array<Row>(30).fill([DECLINED, ["open", "declined", 0]]),
    [VISA, [429, "rate_limited"]],
  ], "open"],
  ["20 attempts", {}, [
    ...Array<Row>(9).fill([DECLINED, ["open", "declined", 0], "form"]),
    ...Array<Row>(10).fill([SECURE, ["open", "requires_action", 0], "action, may leave"]),
    [DECLINED, ["open", "declined", 0], "exhausted"],
    [VISA, CONFLICT],
  ], "open"],
  ["an amount of 0 by card", ZERO, [
    [VISA, [400, "invalid_parameter", "save"]],
    [{ ...VISA, save: true }, ["completed", "completed", 1]],
  ], "completed"],
  ["an amount of 0 by account", ZERO, [
    [{ ...IBAN, save: true }, ["completed", "completed", 1]],
  ], "completed"],
  ["what a payer cannot send", { ...USDC, methods: ["card", "stablecoin"] }, [
    [{}, ["open", "pending", 0]],
    [{ ...VISA, ...IBAN }, [400, "invalid_parameter", "iban"]],
    [IBAN, [400, "invalid_parameter", "iban"]],
    [{ method: "card" }, [400, "invalid_parameter", "card"]],
    [{ method: "sepa" }, [400, "invalid_parameter", "method"]],
    [{ ...VISA, method: "stablecoin" }, [400, "invalid_parameter", "method"]],
    [{ ...VISA, currency: "USDC" }, [400, "invalid_parameter", "currency"]],
    [{ ...VISA, currency: "USD" }, [400, "invalid_parameter", "currency"]],
    [{ ...VISA, save: true }, [400, "invalid_parameter", "save"]],
    [{ ...VISA, save: false }, [400, "invalid_parameter", "save"]],
    [{ instrument: `ins_${"0".repeat(26)}` }, [400, "invalid_parameter", "instrument"]],
    [{ card: { number: "4111" } }, [400, "invalid_parameter", "card.number"]],
  ], "open"],
];

async function act(service: TestService, id: string, payment_id: string, step: string) {
  const [act, argument, part] = step.split(" ");
  if (act === "clock") return await advanceClock(service, Number(argument));
  if (act === "cancel") return await service.post(`${CHECKOUTS}/${id}/cancel`);
  const body = { to: argument, ...(part && { amount_received: Number(part) }) };
  await service.post(`${SANDBOX}/payments/${payment_id}/advance`, body);
}

serviceCase("the ways of a checkout", async (t, service) => {
  for (const [name, body, steps, status] of CASES) {
    await t.step(name, async () => {
      const { id, url, token, ...made } = await open(service, body);
      assert.match(url, URL_OF_PAGE);
      assert.deepEqual([made.status, made.payments_count, made.payment_id], ["open", 0, null]);
      let payment_id = "";
      for (const [i, [step, expected, page]] of steps.entries()) {
        const place = `${name}, step ${i + 1}`;
        if (typeof step === "string") {
          await act(service, id, payment_id, step);
        } else {
          const paid = await pay(service, id, step);
          assert.deepEqual(shown(paid), expected, `${place}: ${paid.text}`);
          if (paid.status === 200) payment_id = paid.body.payment.id;
          if (paid.status === 429) assert.ok(Number(paid.headers.get("Retry-After")) > 3_500);
        }
        if (page) assert.equal(await viewed(service, token, payment_id), page, place);
      }
      const ended = await service.get(`${CHECKOUTS}/${id}`);
      assert.equal(ended.status, status);
      assert.equal(ended.url, url);
    });
  }
  await assertSilent(service.sql);
}, HOSTED);

serviceCase("a payment of a checkout", async (t, service) => {
  const text = { description: "A book", reference: "order-7", metadata: { order: "7" } };
  const back = { return_url: "https://shop.example/back" };
  const { id } = await open(service, { ...text, ...U, ...back, save: "off_session" });
  await pay(service, id, DECLINED);
  const { body: paid } = await pay(service, id, { ...VISA, save: true });
  await t.step("has the members of its checkout", () => {
    const { payment } = paid;
    for (const [name, value] of Object.entries({ ...text, ...U, ...back, amount: 1999 })) {
      assert.deepEqual(payment[name], value, name);
    }
    assert.deepEqual([paid.payment_id, paid.updated_at], [payment.id, payment.updated_at]);
  });
  await t.step("its events and the list by checkout_id show it", async () => {
    const events = await service.get("/api-v1-payments/v1/events?type=payment.completed");
    assert.equal(events.data[0].data.object.checkout_id, id);
    const { data } = await service.get(`${PAYMENTS}?checkout_id=${id}`);
    assert.deepEqual(data.map(({ status }: Body) => status), ["completed", "declined"]);
  });
  await t.step("saves an instrument, which later payments and checkouts use", async () => {
    const { instrument_id } = paid.payment;
    const used = await service.pay({ amount: 500, instrument: instrument_id, off_session: true });
    assert.equal(used.body.status, "completed", used.text);
    const { id: next } = await open(service, U);
    const again = await pay(service, next, { instrument: instrument_id });
    assert.deepEqual(shown(again), ["completed", "completed", 1], again.text);
  });
  await t.step("without a customer and without a page", async () => {
    const { payment } = (await pay(service, (await open(service)).id, VISA)).body;
    assert.deepEqual([payment.customer, payment.return_url], [null, null]);
  });
  await assertSilent(service.sql);
});

const FUTURE = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString();
/** [what is wrong; the body; the field]. openapi_fuzz_test.ts has wrong values of each. */
const REFUSED: [name: string, body: Body, param: string][] = [
  ["no amount", { amount: undefined }, "amount"],
  ["0 without save", { amount: 0 }, "amount"],
  ["0 in a currency that saves nothing", { ...ZERO, currency: "USDC" }, "currency"],
  ["0 with other prices", { ...ZERO, ...USDC }, "other_prices"],
  ["save without a customer", { save: "off_session" }, "customer.id"],
  ["a customer without an address", { customer: { id: "u1" } }, "customer.email"],
  ["two prices in one currency", {
    other_prices: [{ amount_minor: 1, currency: "EUR" }],
  }, "other_prices[0].currency"],
  ["a method that takes no price", { methods: ["card", "stablecoin"] }, "methods[1]"],
  ["a method twice", { methods: ["card", "card"] }, "methods[1]"],
  ["an end in the past", { expires_at: FUTURE(-60) }, "expires_at"],
  ["an end after 31 days", { expires_at: FUTURE(31 * DAY_S) }, "expires_at"],
  ["no end of a checkout that is no link", { expires_at: null }, "expires_at"],
  ["a script as a return_url", { return_url: "javascript:alert(1)" }, "return_url"],
  ["another scheme as a cancel_url", { cancel_url: "data:text/html,1" }, "cancel_url"],
  ["a language by name", { locale: "german" }, "locale"],
  ["a longer name", { customer: { name: "a".repeat(201) } }, "customer.name"],
];

serviceCase("creates and reads of checkouts", async (t, service) => {
  for (const [name, body, param] of REFUSED) {
    await t.step(name, async () => {
      const refused = await service.call("POST", CHECKOUTS, { body: { ...EUR, ...body } });
      assertRefused(refused, "invalid_parameter", param);
    });
  }
  await t.step("all members, and the same in each read", async () => {
    const body = {
      ...{ ...EUR, ...U, ...USDC, ...LINK, save: "on_session", locale: "de" },
      ...{ description: "A book", reference: "order-7", metadata: { order: "7" } },
      ...{ return_url: "https://shop.example/back", cancel_url: "https://shop.example/cart" },
      expires_at: FUTURE(10 * DAY_S),
    };
    const made = await service.call("POST", CHECKOUTS, { body });
    const { id } = made.body;
    for (const [name, value] of Object.entries(body)) {
      assert.deepEqual(made.body[name], value, name);
    }
    assert.deepEqual(made.body.methods, ["card", "sepa_debit", "sepa", "swift", "stablecoin"]);
    assert.equal(made.headers.get("Location")!.endsWith(`${CHECKOUTS}/${id}`), true);
    assert.equal((await service.call("GET", `${CHECKOUTS}/${id}`)).text, made.text);
    await open(service);
    for (const filter of ["status=open", "reference=order-7", "customer_id=u1"]) {
      const { data } = await service.get(`${CHECKOUTS}?${filter}`);
      assert.deepEqual(data.at(-1), made.body, filter);
    }
    const { data } = await service.get(`${CHECKOUTS}?status=expired`);
    assert.deepEqual(data, []);
  });
  await t.step("a day and the methods by default", async () => {
    const { created_at, expires_at, methods } = await open(service, { currency: "USD" });
    assert.equal(Date.parse(expires_at) - Date.parse(created_at), DAY_S * 1000);
    assert.deepEqual(methods, ["card", "swift"]);
  });
  await t.step("1 000 open ones", async () => {
    await service.sql`
      insert into pay.checkouts (environment_id, id, salt, token_hash, max_payments, expires_at,
        created_at, updated_at, body)
      select environment_id, 'chk_' || n, salt, token_hash, 1, expires_at, created_at, updated_at, body
      from (select * from pay.checkouts limit 1) one, generate_series(1, 1000) n`;
    const refused = await service.call("POST", CHECKOUTS, { body: EUR });
    assertRefused(refused, "rate_limited");
    assert.ok(refused.headers.has("Retry-After"));
  });
}, HOSTED);

serviceCase("checkouts under an idempotency key", async (t, service) => {
  const create = () => service.call("POST", CHECKOUTS, { body: EUR, idempotency_key: "make" });
  const first = await create();
  await t.step("a create, whose stored response has no URL", async () => {
    assertReplay(await create(), first);
    const key = await service.get("/api-v1-payments/v1/idempotency_keys/make");
    assert.equal(key.body.url, "***");
  });
  await t.step("a refusal while an attempt is under way is not", async () => {
    const { id } = await open(service, USDC);
    const { payment } = (await pay(service, id, { currency: "USDC" })).body;
    await advance(service, payment.id, "processing");
    assertRefused(await pay(service, id, VISA, "again"), "invalid_state");
    await advance(service, payment.id, "pending");
    assert.deepEqual(shown(await pay(service, id, VISA, "again")), ["completed", "completed", 1]);
  });
  await t.step("two attempts at once: one payment", async () => {
    const { id } = await open(service);
    const answers = await Promise.all(["a", "b", "c"].map((key) => pay(service, id, VISA, key)));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409, 409]);
    assert.equal((await read(service, id)).payments_count, 1);
  });
  await t.step("payers of a link at once: all pay", async () => {
    const { id } = await open(service, LINK);
    const answers = await Promise.all(["d", "e", "f"].map((key) => pay(service, id, VISA, key)));
    assert.deepEqual(answers.map(({ body }) => body.payments_count).sort(), [1, 2, 3]);
  });
  await assertSilent(service.sql);
}, HOSTED);

serviceCase("the end of what is kept of a checkout", async (t, service) => {
  const erase = () => service.call("DELETE", "/api-v1-payments/v1/customers/u1");
  const { id } = await open(service, U);
  await t.step("an open one refuses the erasure of its customer", async () => {
    assertRefused(await erase(), "invalid_state");
  });
  await t.step("an ended one loses the person", async () => {
    const paid = await pay(service, id, VISA, "paid");
    assert.equal((await erase()).status, 200);
    const { customer } = await read(service, id);
    assert.deepEqual(customer, { id: "u1", email: null, name: null });
    const again = await pay(service, id, VISA, "paid");
    assert.deepEqual(again.body.customer, customer);
    assert.deepEqual(again.body.payment.customer, customer);
    assert.equal(paid.body.customer.email, U.customer.email);
  });
  await t.step("also of a person without an id", async () => {
    const { id } = await open(service, { customer: { email: "b@example.com" } });
    await service.call("POST", `${CHECKOUTS}/${id}/cancel`);
    const path = "/api-v1-payments/v1/customers?email=b%40example.com";
    assert.equal((await service.call("DELETE", path)).status, 200);
    assert.equal((await read(service, id)).customer.email, null);
  });
  await t.step("retention deletes it 30 days after its end, and a reset all", async () => {
    const { id: kept } = await open(service, { ...LINK, expires_at: null });
    await advanceClock(service, 29 * DAY_S);
    await service.sql`select pay.purge()`;
    assert.equal((await read(service, id)).id, id);
    await pay(service, kept, VISA);
    await advanceClock(service, 2 * DAY_S);
    await service.sql`select pay.purge()`;
    assert.equal((await service.call("GET", `${CHECKOUTS}/${id}`)).status, 404);
    assert.equal((await read(service, kept)).status, "open");
    const { deleted } = await service.post(`${SANDBOX}/reset`);
    assert.equal(deleted.checkouts, 1);
    assert.equal((await service.call("GET", `${CHECKOUTS}/${kept}`)).status, 404);
  });
  await assertSilent(service.sql);
});
