/**
 * The erasure of a customer (contract §2): no e-mail address and no name is left anywhere, and
 * everything else stays as it was.
 */

import assert from "node:assert/strict";
import { until } from "../support/common/until.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { purgeAll } from "../support/database/purge.ts";
import { dumpTables } from "../support/database/table_dump.ts";
import { readPages } from "../support/http/list_pages.ts";
import type { TestService } from "../support/service/service.ts";
import {
  APPROVED,
  assertRefused,
  assertReplay,
  card,
  LEDGER,
  PAYMENTS,
  SANDBOX,
  serviceCase,
  within,
} from "../support/service/service_case.ts";
import { addInbox, readInbox } from "../support/webhook/inbox_reader.ts";
import {
  addEndpoint,
  DELIVERIES,
  EVENTS,
  openRecorder,
  TRIGGER,
} from "../support/webhook/recording_receiver.ts";

const V1 = "/api-v1-payments/v1";
const CUSTOMERS = `${V1}/customers`;
const EMAIL = "ada.l@example.com";
/** The person of the payments, which no text may contain afterwards. */
const PERSON = /ada\.l|lovelace|second@/i;
const ADA = { id: "u/1", email: EMAIL, name: "Ada Lovelace" };
const BOB = { id: "u2", email: "bob@example.com", name: "Bob" };
const PATH = `${CUSTOMERS}/u%2F1`;
const VISA = { card: { token: "pm_card_visa" } };

const LOGGED = { request_log: true };

type Body = Record<string, unknown>;

/** Asserts that a request has succeeded. Returns its body. */
async function made(sent: ReturnType<ReturnType<typeof within>["post"]>) {
  const { status, body, text } = await sent;
  assert.ok(status < 300, text);
  return body;
}

/** Asserts that no row of any table has the person. */
async function assertNoPerson(service: TestService): Promise<void> {
  const rows = (await dumpTables(service)).split("\n").filter((row) => PERSON.test(row));
  assert.equal(rows.length, 0, rows[0]);
}

/** Reads all pages of a list. Returns their items. */
async function all(sandbox: ReturnType<typeof within>, path: string): Promise<{ id: string }[]> {
  return (await readPages(sandbox, `${path}?limit=100`)).flatMap(({ data }) => data);
}

serviceCase("DELETE /v1/customers/{id}", async (t, service) => {
  // A busy machine would leave more to retention.
  await limit(service, "erasing_time", "4 s");
  const seeded = await service.post(`${SANDBOX}/sandboxes`, { seed: "erasure" });
  const sandbox = within(service, seeded.test_key);
  const { call, post, pay } = sandbox;
  // A receiver that repeats what it gets.
  const receiver = openRecorder(({ text }) => new Response(text));
  const options = { key: seeded.test_key };
  await addEndpoint(service, receiver.url("/"), {}, options);
  const inbox = await addInbox(service, {}, options);
  const keys = ["paid", "refunded", "declined", "same", "saved", "charged", "ended", "again"];

  const paid = await made(pay({ customer: ADA, ...APPROVED.card }, "paid"));
  await made(post(`${PAYMENTS}/${paid.id}/refund`, { amount: 100 }, "refunded"));
  assert.equal((await pay({ payer: ADA, ...card("4000 0000 0000 0002") }, "declined")).status, 402);
  const same = { to: "partially_refunded" };
  await made(post(`${SANDBOX}/payments/${paid.id}/advance`, same, "same"));
  const saved = await made(pay({ customer: ADA, ...VISA, save: "off_session" }, "saved"));
  const use = { instrument: saved.instrument_id, off_session: true };
  const second = { customer: { id: ADA.id, email: "second@example.com" } };
  await made(pay({ ...use, ...second }, "charged"));
  const old = await made(pay({ customer: ADA, ...VISA, save: "off_session" }));
  for (const idempotency_key of ["ended", "again"]) {
    await call("DELETE", `${V1}/instruments/${old.instrument_id}`, { idempotency_key });
  }
  // Refused requests: one with the customer, and one whose instrument is the customer's.
  assertRefused(await pay({ customer: ADA, amount: -1 }), "invalid_parameter", "amount");
  for (const part of ["email", "name"]) {
    const customer = { ...ADA, [part]: { first: "Ada" } };
    assertRefused(await pay({ customer }), "invalid_parameter", `customer.${part}`);
  }
  assertRefused(
    await pay({
      ...use,
      customer: { email: "second@example.com" },
      return_url: "https://a.example",
    }),
    "invalid_parameter",
    "off_session",
  );
  const triggered = { event: "payment.completed", payment_id: paid.id, endpoint_id: inbox.id };
  await made(post(TRIGGER, triggered));
  const pending = await made(
    pay({ customer: ADA, iban: APPROVED.sepa.iban, settlement: "manual" }),
  );
  const others = await made(pay({ customer: BOB, ...APPROVED.card }, "other"));
  await readInbox(service, inbox.id, "", options);
  await until("some attempts are logged", async () => await service.count("attempt_log") > 5);
  await all(sandbox, PAYMENTS);
  await all(sandbox, EVENTS);
  for (const { id } of await all(sandbox, DELIVERIES)) await call("GET", `${DELIVERIES}/${id}`);
  await call("GET", `${PAYMENTS}?customer=${EMAIL}`);
  await call("GET", `${PAYMENTS}?search=lovelace`);
  // The transcript has these answers too.
  for (const { id } of await all(sandbox, `${SANDBOX}/requests`)) {
    await call("GET", `${SANDBOX}/requests/${id}`);
  }

  await t.step("409 while a payment is open, which is not stored", async () => {
    const erase = () => call("DELETE", PATH, { idempotency_key: "erase" });
    const refused = await erase();
    assertRefused(refused, "invalid_state");
    assert.ok(refused.body.error.message.includes(pending.id), refused.text);
    await made(post(`${PAYMENTS}/${pending.id}/cancel`));
  });
  const ledger = await call("GET", LEDGER);
  const shown = (await all(sandbox, PAYMENTS)) as unknown as Body[];
  const stored = new Map<string, Body>();
  for (const key of keys) {
    stored.set(key, (await call("GET", `${V1}/idempotency_keys/${key}`)).body);
  }
  assert.match(await dumpTables(service), PERSON);

  await t.step("200 with the numbers", async () => {
    const erased = await call("DELETE", PATH, { idempotency_key: "erase" });
    assert.deepEqual(erased.body, {
      ...{ object: "customer", id: ADA.id, deleted: true },
      ...{ payments: 6, instruments: 2, has_more: false },
    });
    assertReplay(await call("DELETE", PATH, { idempotency_key: "erase" }), erased);
  });
  await t.step("a search finds the payments, and no more by the person", async () => {
    const found = async (search: string) =>
      (await call("GET", `${PAYMENTS}?search=${search}`)).body.data.length;
    assert.deepEqual([await found("lovelace"), await found(EMAIL)], [0, 0]);
    assert.ok(await found("paid") > 0);
    const hashes = service.sql`select from pay.search_words w where w.words && (
      pay_internal.word_hashes(w.environment_id, ${["lovelace", "ada", `=${EMAIL}`]}))`;
    assert.equal((await hashes).length, 0);
  });
  await t.step("no table has the person", async () => {
    await assertNoPerson(service);
    assert.match(await dumpTables(service), /bob@example\.com/);
  });
  await t.step("no answer has the person, and each is JSON", async () => {
    for (const list of ["payments", "events", "webhook_deliveries", "instruments", "refunds"]) {
      for (const { id } of await all(sandbox, `${V1}/${list}`)) {
        assert.doesNotMatch((await call("GET", `${V1}/${list}/${id}`)).text, PERSON);
      }
    }
    for (const { id } of await all(sandbox, `${SANDBOX}/requests`)) {
      assert.doesNotMatch((await call("GET", `${SANDBOX}/requests/${id}`)).text, PERSON);
    }
    const { text } = await call("GET", `${SANDBOX}/transcript`);
    for (const line of text.trimEnd().split("\n")) {
      JSON.parse(line);
      assert.doesNotMatch(line, PERSON);
    }
    const page = await readInbox(service, inbox.id, "limit=100", options);
    assert.ok(page.body.data.length > 10);
    for (const { body } of page.body.data) {
      JSON.parse(body);
      assert.doesNotMatch(body, PERSON);
    }
  });
  await t.step("replays have the same status and ids", async () => {
    for (const [key, before] of stored) {
      const after = (await call("GET", `${V1}/idempotency_keys/${key}`)).body;
      assert.doesNotMatch(JSON.stringify(after), PERSON, key);
      assert.deepEqual(after, erasedIn(before), key);
    }
    const again = await pay({ customer: ADA, ...APPROVED.card }, "paid");
    assert.deepEqual([again.status, again.body], [201, erasedIn(paid)]);
  });
  await t.step("amounts, ids, times, methods and the ledger stay", async () => {
    assert.deepEqual(await all(sandbox, PAYMENTS), shown.map(erasedIn));
    assert.equal((await call("GET", LEDGER)).text, ledger.text);
    assert.equal((await call("GET", `${PAYMENTS}/${others.id}`)).body.customer.email, BOB.email);
    const { body: instrument } = await call("GET", `${V1}/instruments/${saved.instrument_id}`);
    assert.deepEqual([instrument.status, instrument.ended_reason], ["ended", "erased"]);
    assertRefused(await pay(use), "invalid_state");
  });
  await t.step("an erased payment can be refunded, and triggered", async () => {
    await made(post(`${PAYMENTS}/${paid.id}/refund`, { amount: 200 }));
    await made(post(TRIGGER, triggered));
    const { body } = await call("GET", `${EVENTS}?payment_id=${paid.id}`);
    assert.equal(body.data[0].data.object.customer?.email ?? null, null);
  });
  await t.step("zeros for a second time and for an unknown person", async () => {
    for (const path of [PATH, `${CUSTOMERS}/nobody`, `${CUSTOMERS}?email=no%40example.com`]) {
      const { payments, instruments, has_more } = await made(call("DELETE", path));
      assert.deepEqual([payments, instruments, has_more], [0, 0, false], path);
    }
  });
  await assertSilent(service.sql);
  await receiver.close();
}, LOGGED);

/** A value with its persons as an erasure leaves them. */
function erasedIn<T>(value: T): T {
  return JSON.parse(JSON.stringify(value), (name, member) => {
    const is_ada = member?.id === ADA.id && member.email !== undefined;
    return is_ada && ["customer", "payer"].includes(name)
      ? { id: ADA.id, email: null, name: null }
      : member;
  });
}

serviceCase("DELETE /v1/customers?email=", async (t, service) => {
  const { call, pay } = within(service, service.key.text);
  const by_email = `${CUSTOMERS}?email=${encodeURIComponent(EMAIL)}`;
  const { id: _, ...without_id } = ADA;
  const mandate = { mandate: { id: "M-1", signed_at: "2026-01-31", sequence: "recurring" } };
  const { id } = await made(pay({ customer: without_id, ...APPROVED.card }));
  const collected = await made(
    pay({ customer: without_id, ...APPROVED.sepa, ...mandate, outcome: "success" }),
  );
  const kept = await made(pay({ customer: ADA, ...APPROVED.card }));
  await t.step("erases payments without an id only", async () => {
    const erased = await made(call("DELETE", by_email, { idempotency_key: "e" }));
    assert.deepEqual([erased.id, erased.payments, erased.instruments], [null, 2, 1]);
    for (const erased_id of [id, collected.id]) {
      const { body } = await call("GET", `${PAYMENTS}/${erased_id}`);
      assert.deepEqual(body.customer, { email: null, name: null });
    }
    assert.deepEqual((await call("GET", `${PAYMENTS}/${kept.id}`)).body.customer, ADA);
  });
  await t.step("409 while a payment without an id is open", async () => {
    const open = await made(pay({ customer: without_id }));
    const refused = await call("DELETE", by_email);
    assertRefused(refused, "invalid_state");
    assert.ok(refused.body.error.message.includes(open.id));
  });
  await t.step("400 for an id that no customer has", async () => {
    for (const id of ["u".repeat(65), "%E0%A4%A", "u%2", "u%00"]) {
      const refused = await call("DELETE", `${CUSTOMERS}/${id}`);
      assertRefused(refused, "invalid_parameter", "customer");
    }
    for (const id of [".", ".."]) {
      const refused = await pay({ customer: { ...ADA, id } });
      assertRefused(refused, "invalid_parameter", "customer.id");
    }
  });
  await assertSilent(service.sql);
});

/** Copies the only payment of a customer with its events. Copies have no money in the ledger. */
async function copyPayment({ sql }: TestService, copies: number): Promise<void> {
  const id = (name: string) =>
    `left(t.${name}, 18) || lpad(to_hex(n), 8, '0') || right(t.${name}, 4)`;
  await sql.unsafe(`
    insert into pay.payments
    select t.* from (
      select jsonb_populate_record(t, jsonb_build_object(
        'id', ${id("id")}, 'body', replace(t.body, t.id, ${id("id")}))) as t
      from pay.payments t, generate_series(1, ${copies}) n where t.customer_id = '${ADA.id}'
    ) c, lateral (select (c.t).*) t`);
  await sql.unsafe(`
    insert into pay.events
    select t.* from (
      select jsonb_populate_record(t, jsonb_build_object(
        'id', ${id("id")}, 'subject_id', ${id("subject_id")})) as t
      from pay.events t, generate_series(1, ${copies}) n
    ) c, lateral (select (c.t).*) t`);
}

/** Sets one of the limits of erasures. */
const limit = ({ sql }: TestService, name: string, value: number | "0 s" | "4 s") => {
  const type = typeof value === "number" ? "integer" : "interval";
  return sql.unsafe(`create or replace function pay_internal.${name}() returns ${type}
    language sql immutable parallel safe as $$ select ${type} '${value}' $$`);
};

const brokenTexts = ({ sql }: TestService) => sql`select * from pay.invariant_texts`;

/** Runs retention until an erasure is done. Each call leaves whole texts. Returns their number. */
async function continueErasure(service: TestService): Promise<number> {
  const { sql } = service;
  for (let calls = 0;; calls++) {
    const [left] = await sql`select is_done from pay.erasures order by is_done limit 1`;
    assert.deepEqual([...await brokenTexts(service)], []);
    if (left!.is_done) return calls;
    await sql`select pay.purge()`;
  }
}

serviceCase(
  "an erasure in portions, the first by the request and the rest by retention",
  async (t, service) => {
    const { call, pay, post } = within(service, service.key.text);
    await made(pay({ customer: ADA, ...APPROVED.card }));
    await copyPayment(service, 120);
    await limit(service, "erased_at_once", 100);
    await limit(service, "erasing_time", "4 s");
    await t.step("by the id", async () => {
      const erased = await made(call("DELETE", PATH));
      assert.deepEqual([erased.payments, erased.has_more], [100, true]);
      await continueErasure(service);
      await assertNoPerson(service);
      const again = await made(call("DELETE", PATH));
      assert.deepEqual([again.payments, again.has_more], [0, false]);
    });
    await t.step("by the address, from many payments", async () => {
      await limit(service, "erasure_rows", 70);
      const { id: _, ...without_id } = ADA;
      await made(pay({ customer: without_id, ...APPROVED.card }));
      const erased = await made(call("DELETE", `${CUSTOMERS}?email=${EMAIL}`));
      assert.deepEqual([erased.payments, erased.has_more], [0, true]);
      assert.match(await dumpTables(service), PERSON);
      assert.equal(await continueErasure(service), 1);
      await assertNoPerson(service);
    });
    await t.step("of one payment with more texts and lines than a call has time for", async () => {
      await limit(service, "erasing_time", "0 s");
      const { id } = await made(pay({ customer: { ...ADA, id: "u3" }, ...APPROVED.card }, "many"));
      await pay({ customer: { ...ADA, id: "u3" }, amount: -1 });
      for (let n = 0; n < 20; n++) await made(post(`${PAYMENTS}/${id}/refund`, { amount: 1 }));
      const lines = () => service.count(`requests where request_body like '%${EMAIL}%'`);
      await until("both are logged", async () => await lines() === 2);
      const erased = await made(call("DELETE", `${CUSTOMERS}/u3`));
      assert.deepEqual([erased.payments, erased.has_more, await lines()], [1, true, 1]);
      await made(post(`${PAYMENTS}/${id}/refund`, { amount: 1 }));
      assert.ok(await continueErasure(service) >= 3);
      await assertNoPerson(service);
      const replay = await pay({ customer: { ...ADA, id: "u3" }, ...APPROVED.card }, "many");
      assert.deepEqual([replay.body.id, replay.body.sequence], [id, 2]);
    });
    await t.step("retention forgets it after 10 minutes", async () => {
      await service.sql`update pay.erasures set erased_at = now() - interval '11 minutes'`;
      await purgeAll(service.sql);
      assert.equal(await service.count("erasures"), 0);
    });
  },
  LOGGED,
);
