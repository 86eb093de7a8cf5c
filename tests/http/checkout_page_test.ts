/**
 * The routes of the payer's page of a checkout (contract §2): the token in a header opens one
 * checkout without an API key, and nothing else. The cases send the requests of the page, and of
 * strangers.
 */

import assert from "node:assert/strict";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import {
  callPage as call,
  challengePath,
  DECLINED,
  IBAN,
  LINK,
  openCheckout as open,
  PAGE,
  PERSON,
  SECURE,
  VISA,
} from "../support/service/payer_page.ts";
import type { TestResponse, TestService } from "../support/service/service.ts";
import {
  advance,
  advanceClock,
  assertRefused,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

const ORIGIN = "https://pay.example.com";
const HOSTED = { checkout_url: `${ORIGIN}/shop` };
const UNKNOWN = `cht_${"0".repeat(48)}`;

type Body = Record<string, unknown>;

const pay = (service: TestService, token: string, body: Body, idempotency_key?: string) =>
  call(service, token, { body, ...(idempotency_key !== undefined && { idempotency_key }) });

/** Returns the view of a page, and the status and the method of its attempt. */
function shown({ status, body }: TestResponse): unknown[] {
  if (status !== 200) {
    return [status, body.error.code, ...body.error.param ? [body.error.param] : []];
  }
  return [body.view, body.attempt?.status, body.attempt?.method];
}

serviceCase("GET /checkout", async (t, service) => {
  const back = {
    return_url: "https://shop.example/back?a=1",
    cancel_url: "https://shop.example/c",
  };
  const text = { reference: "order-7", metadata: { secret_note: "x" }, description: "A book" };
  const body = { ...back, ...text, ...PERSON, locale: "de" };
  const { id, token } = await open(service, body, { idempotency_key: "make" });
  await t.step("has all that a payer may know", async () => {
    const { status, body, headers } = await call(service, token);
    assert.equal(status, 200);
    assert.equal(headers.get("Cache-Control"), "no-store");
    const { expires_at, now, mandate, ...rest } = body;
    assert.equal(Date.parse(expires_at) > Date.parse(now), true);
    assert.match(mandate.collects_on, /^\d{4}-\d\d-\d\d$/);
    assert.deepEqual(mandate, {
      creditor_name: "one",
      creditor_identifier: "DE98ZZZ09999999999",
      collects_on: mandate.collects_on,
    });
    assert.deepEqual(rest, {
      ...{ id, object: "checkout_page", status: "open", view: "form", may_leave: false },
      merchant: { name: "one", color: null, logo: null },
      ...{ amount_minor: 1999, currency: "EUR", other_prices: [] },
      methods: ["card", "sepa_debit", "sepa", "swift"],
      ...{ description: "A book", locale: "de", save: null, ...back },
      ...{ publishable_key: null, connected_account: null },
      ...{ is_link: false, livemode: false, attempt: null },
    });
  });
  await t.step("has the clock of the sandbox, also right after it was set", async () => {
    await advanceClock(service, 3_600);
    const { body } = await call(service, token);
    const ahead = Date.parse(body.now) - Date.now();
    assert.ok(ahead > 3_500_000 && ahead < 3_700_000, body.now);
  });
  await t.step("shows an attempt, and never why it was declined", async () => {
    await pay(service, token, DECLINED);
    const { text, body } = await call(service, token);
    assert.deepEqual(shown(await call(service, token)), ["form", "declined", "card"]);
    assert.equal(
      body.attempt.return_url,
      `https://shop.example/back?a=1&payment_id=${body.attempt.payment_id}&checkout_id=${id}`,
    );
    assert.doesNotMatch(text, /failure|advice|code|metadata|order-7|secret_note|Ada|ada@|u1|key_/);
  });
  await t.step("no log line and no row has the token", async () => {
    const [{ found }] = await service.sql<[{ found: number }]>`
      select count(*)::integer as found from (
        select t::text as row from pay.checkouts t union all
        select t::text from pay.idempotency_keys t union all
        select t::text from pay.requests t union all
        select t::text from pay.events t) r
      where strpos(row, ${token.slice(4)}) > 0`;
    assert.equal(found, 0);
    assert.doesNotMatch(JSON.stringify(service.logs), new RegExp(token.slice(4)));
    assert.ok(service.logs.some(({ key_id }) => key_id === id));
  });
  await assertSilent(service.sql);
}, { ...HOSTED, request_log: true });

/** [attempts of one checkout, each with what the page shows] */
const ATTEMPTS: [Body, unknown[]][][] = [
  [
    [DECLINED, ["form", "declined", "card"]],
    [VISA, ["paid", "completed", "card"]],
    [VISA, [409, "invalid_state"]],
  ],
  [[{ iban: { ...IBAN, holder_name: "Ada" } }, ["paid", "processing", "sepa_debit"]]],
  [
    [{ instrument: `ins_${"0".repeat(26)}` }, [400, "invalid_parameter", "instrument"]],
    [{ ...SECURE, authenticate: "success" }, [400, "invalid_parameter", "authenticate"]],
    [{ card: { number: "4111111111111112", exp_month: 1, exp_year: 2040, cvc: "123" } }, [
      ...[400, "invalid_parameter", "card.number"],
    ]],
    [{ iban: "DE00" }, [400, "invalid_parameter", "iban"]],
    [{ method: "swift", extra: "x".repeat(8_192) }, [413, "payload_too_large"]],
    [{ save: true, ...VISA }, [400, "invalid_parameter", "save"]],
  ],
];

serviceCase("POST /checkout/payments", async (_, service) => {
  for (const attempts of ATTEMPTS) {
    const { token } = await open(service);
    for (const [body, expected] of attempts) {
      const { text, ...page } = await pay(service, token, body);
      assert.deepEqual(shown({ text, ...page }), expected, text);
    }
  }
  await assertSilent(service.sql);
}, HOSTED);

serviceCase("a repeated attempt", async (t, service) => {
  await t.step("makes no second payment, and shows the present state", async () => {
    const { id, token } = await open(service, LINK);
    const first = await pay(service, token, { method: "sepa" }, "tab");
    await advance(service, first.body.attempt.payment_id, "completed");
    const again = await pay(service, token, { method: "sepa" }, "tab");
    assert.deepEqual(shown(again), ["paid", "completed", "sepa"]);
    assert.equal(again.headers.get("Idempotent-Replayed"), "true");
    assert.equal(again.body.attempt.payment_id, first.body.attempt.payment_id);
    const { data } = await service.get(`${PAYMENTS}?checkout_id=${id}`);
    assert.equal(data.length, 1);
    assertRefused(await pay(service, token, VISA, "tab"), "idempotency_conflict");
  });
  await t.step("under the key of another checkout or of the merchant is another one", async () => {
    const { token } = await open(service, LINK);
    await service.pay({}, { idempotency_key: "tab" });
    const other = await pay(service, token, { method: "sepa" }, "tab");
    assert.deepEqual(shown(other), ["transfer", "pending", "sepa"]);
  });
  await assertSilent(service.sql);
}, HOSTED);

serviceCase("a token opens its own checkout and nothing else", async (t, service) => {
  const { token } = await open(service, LINK);
  const { body: { attempt: own } } = await pay(service, token, { method: "sepa" });
  const { token: other } = await open(service, LINK);
  const { body: { attempt: foreign } } = await pay(service, other, VISA);
  const unknown = await call(service, UNKNOWN);
  assertRefused(unknown, "not_found");
  const strangers: [string, string | null][] = [
    ["none", null],
    ["one that is cut off", token.slice(0, -1)],
    ["one in upper case", token.toUpperCase()],
    ["an API key", service.key.text],
    ["one with a further character", `${token}0`],
  ];
  for (const [name, sent] of strangers) {
    await t.step(`${name} is unknown`, async () => {
      for (const body of [undefined, VISA]) {
        const { text, ...page } = await call(service, sent, { body });
        const neutral = (text: string) => text.replace(/req_\w+/, "");
        assert.deepEqual([page.status, neutral(text)], [404, neutral(unknown.text)]);
      }
    });
  }
  await t.step("it is no key", async () => {
    assertRefused(await service.call("GET", PAYMENTS, { key: token }), "unauthorized");
  });
  await t.step("a payer of a link sees the attempt that is theirs", async () => {
    assert.equal((await call(service, token)).body.attempt, null);
    const { body } = await call(service, token, { attempt: own.payment_id });
    assert.equal(body.attempt.payment_id, own.payment_id);
    assert.match(body.attempt.next_action.epc_qr, /^BCD\n/);
    for (const attempt of [foreign.payment_id, `pay_${"0".repeat(26)}`, "pay_'", ""]) {
      assert.equal((await call(service, token, { attempt })).body.attempt, null);
    }
  });
  await t.step("none after the end of its sandbox", async () => {
    const made = await service.post(`${SANDBOX}/sandboxes`, { expires_in: 60 });
    const { token } = await open(service, {}, { key: made.test_key });
    assert.equal((await call(service, token)).status, 200);
    await service.setClock(Date.now() + 61_000);
    assertRefused(await call(service, token), "not_found");
    await service.setClock(null);
  });
  await t.step("none after a reset", async () => {
    await service.post(`${SANDBOX}/reset`);
    for (const body of [undefined, VISA]) {
      assertRefused(await call(service, token, { body }), "not_found");
    }
  });
  await assertSilent(service.sql);
}, HOSTED);

serviceCase("a page of another origin is refused", async (t, service) => {
  const { token } = await open(service);
  const send = (Origin: string) => call(service, token, { headers: { Origin } });
  await t.step("that of CHECKOUT_URL may call, and send the headers", async () => {
    const { status, headers } = await send(ORIGIN);
    assert.deepEqual([status, headers.get("Access-Control-Allow-Origin")], [200, ORIGIN]);
    const asked = await service.call("OPTIONS", `${PAGE}/payments`, {
      ...{ key: null, unchecked: true },
      headers: { Origin: ORIGIN, "Access-Control-Request-Method": "POST" },
    });
    assert.equal(asked.status, 204);
    assert.match(asked.headers.get("Access-Control-Allow-Headers")!, /Checkout-Token/);
  });
  for (const origin of ["https://console.example.com", "https://evil.example", "null"]) {
    await t.step(origin, async () => {
      assertRefused(await send(origin), "origin_not_allowed");
    });
  }
}, HOSTED);

serviceCase("a network sends 100 attempts and 100 reads in 10 seconds", async (_, service) => {
  await service.setClock(Date.now());
  for (const body of [{}, undefined]) {
    for (let n = 1; n <= 101; n++) {
      const { status } = await call(service, "cht_", { body });
      assert.equal(status, n <= 100 ? 404 : 429, `request ${n}`);
    }
  }
}, { ...HOSTED, rate_limit: 100 });

serviceCase("attempts in a seeded sandbox", async (t, service) => {
  const made = await service.post(`${SANDBOX}/sandboxes`, { seed: "page" });
  const key = made.test_key as string;
  /** The same requests of a merchant and of a payer. Returns the events without the times. */
  const run = async () => {
    const { token } = await open(service, {}, { key });
    const before = await call(service, token);
    assert.equal(before.body.attempt, null);
    await pay(service, token, { method: "sepa" });
    const [one, other] = [await pay(service, token, SECURE), await pay(service, token, SECURE)];
    assert.notEqual(challengePath(one.body.attempt), challengePath(other.body.attempt));
    const { text } = await service.call("GET", "/api-v1-payments/v1/events", { key });
    return { token, text };
  };
  const first = await run();
  await t.step("a reset ends its token until the same requests make it again", async () => {
    await service.call("POST", `${SANDBOX}/reset`, { key });
    assertRefused(await call(service, first.token), "not_found");
  });
  await t.step("the same run has the same token, payments and events", async () => {
    assert.deepEqual(await run(), first);
  });
}, HOSTED);
