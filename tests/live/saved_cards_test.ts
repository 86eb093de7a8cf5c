/**
 * Saved cards with a live key: the customer, the payments that save and use a card, and its end at
 * the provider.
 */

import assert from "node:assert/strict";
import { addAccount } from "../support/database/provider_flow.ts";
import { atStripe, deliver, eventsOf, shown, visit } from "../support/live/live_actions.ts";
import { type LiveCase, liveCase, stopPolls, workAfter } from "../support/live/live_case.ts";
import type { Fault } from "../support/stripe/faults.ts";

const BACK = { return_url: "https://shop.example/back" };
const DAY_S = 24 * 3600;
/** Longer than the pause before a card is detached. */
const DETACH_S = 16;

const token = (name: string) => ({ card: { token: `pm_card_${name}` } });
const saving = (customer: string, body: Record<string, unknown> = {}) => ({
  ...{ customer: { id: customer, email: "ada@example.com" }, save: "off_session" },
  ...body,
});
const OFF = { card: undefined, amount: 500, off_session: true };

/** Reads an instrument. */
async function read(given: LiveCase, id: string) {
  const { status, body, text } = await given.call("GET", `/instruments/${id}`);
  assert.equal(status, 200, text);
  return body;
}

/** Saves a card. Returns the payment. */
async function save(given: LiveCase, customer: string, body: Record<string, unknown> = {}) {
  const saved = await given.pay(saving(customer, body));
  assert.equal(saved.status, 201, saved.text);
  return saved.body;
}

/** The types of the events of an instrument, the oldest first. */
async function instrumentEvents(given: LiveCase, id: string): Promise<string[]> {
  const { data } = (await given.call("GET", `/events?instrument_id=${id}`)).body;
  return data.map(({ type }: { type: string }) => type)
    .filter((type: string) => type.startsWith("instrument.")).reverse();
}

/** The card of an instrument at the double. */
async function cardOf(given: LiveCase, id: string) {
  const [row] = await given.service.sql`
    select provider ->> 'token' as token from pay.instruments where id = ${id}`;
  const { payment_method } = await given.books();
  return payment_method.find(({ id }) => id === row!.token)!;
}

liveCase("a saved card is charged with and without the payer", async (given, t) => {
  await t.step("saved with a payment: one customer, and a card that shows", async () => {
    const payment = await save(given, "u1");
    assert.equal(payment.status, "completed");
    const { status, method, customer, usage } = await read(given, payment.instrument_id);
    assert.deepEqual([status, method.card.last4, customer.id, usage], [
      ...["active", "4242", "u1", "off_session"],
    ]);
    const off = await given.pay({ instrument: payment.instrument_id, ...OFF });
    assert.deepEqual([off.status, off.body.status, off.body.method.card.last4], [
      ...[201, "completed", "4242"],
    ]);
    const on = await given.pay({ instrument: payment.instrument_id, card: undefined, ...BACK });
    assert.equal(on.body.status, "completed", on.text);
    const books = await given.books();
    const [made] = books.customer;
    const { environment_id } = given.service.live;
    assert.deepEqual(made!.metadata, { environment: environment_id, customer: "u1" });
    const card = await cardOf(given, payment.instrument_id);
    const sent = books.payment_intent.map(({ customer, payment_method, setup_future_usage }) => [
      ...[customer, payment_method, setup_future_usage],
    ]);
    assert.deepEqual(sent, [
      [made!.id, card.id, "off_session"],
      [made!.id, card.id, null],
      [made!.id, card.id, null],
    ]);
  });
  await t.step("every card of a customer is of one customer there", async () => {
    const { instrument_id } = await save(given, "u1", token("mastercard"));
    const ended = await given.call("DELETE", `/instruments/${instrument_id}`);
    assert.equal(ended.status, 200, ended.text);
    // Stripe forgets the idempotency key of the customer after a day.
    await stopPolls(given);
    await workAfter(given, 2 * DAY_S);
    await save(given, "u1", token("amex"));
    await save(given, "u2");
    const { customer } = await given.books();
    assert.deepEqual(customer.map(({ metadata }) => metadata.customer), ["u1", "u2"]);
  });
  await t.step("a customer is made once after an unknown response", async () => {
    const troubles = [
      ["u5", { at: "after", act: "error", keep: true }],
      ["u6", { at: "before", act: "error", keep: true }],
    ] as const;
    // A customer is looked for around the time of the reservation, by the provider's clock.
    await given.service.setClock(null);
    for (const [id, trouble] of troubles) {
      await given.double.plant({ method: "POST", path: "/customers$", ...trouble });
      const lost = await save(given, id);
      assert.equal(lost.status, "processing");
      await workAfter(given, 6);
      assert.equal((await shown(given, lost.id)).status, "completed");
    }
    const { customer } = await given.books();
    assert.deepEqual(customer.map(({ metadata }) => metadata.customer), ["u1", "u2", "u5", "u6"]);
  });
});

/** [the card; saved; charged without the payer; with the payer and a return_url] */
const CARDS: [token: string, saved: string, off_session: string, on_session: string][] = [
  ["authenticationRequiredOnSetup", "requires_action", "completed", "completed"],
  ["authenticationRequired", "requires_action", "authentication_required", "requires_action"],
];

liveCase("a card that is saved without a charge", async (given, t) => {
  await stopPolls(given);
  for (const [name, saved, off_session, on_session] of CARDS) {
    await t.step(`${name}: ${saved}, then ${off_session}, ${on_session}`, async () => {
      const payment = await save(given, "u1", { amount: 0, ...token(name), ...BACK });
      const { id, instrument_id } = payment;
      assert.equal(payment.status, saved);
      if (saved === "requires_action") {
        assert.equal((await read(given, instrument_id)).status, "pending");
        const early = await given.pay({ instrument: instrument_id, ...OFF });
        assert.equal(early.body.error.current_status, "pending");
        await visit(payment.next_action.url);
        if (name === "authenticationRequired") await workAfter(given, 3700);
        else await deliver(given, await eventsOf(given));
      }
      const { status, amount_captured, method } = await shown(given, id);
      assert.deepEqual([status, amount_captured, method.card.brand], ["completed", 0, "visa"]);
      const { status: now, method: kept } = await read(given, instrument_id);
      assert.deepEqual([now, kept], ["active", method]);
      const outcomeOf = ({ status, body }: Awaited<ReturnType<LiveCase["pay"]>>) =>
        status === 201 ? body.status : body.error.code;
      const off = await given.pay({ instrument: instrument_id, ...OFF });
      assert.equal(outcomeOf(off), off_session, off.text);
      if (off_session === "authentication_required") {
        assert.deepEqual([off.status, off.body.error.advice], [402, "authenticate"]);
      }
      const on = await given.pay({ instrument: instrument_id, card: undefined, ...BACK });
      assert.equal(outcomeOf(on), on_session, on.text);
      assert.equal((await read(given, instrument_id)).status, "active");
    });
  }
  await t.step("the authentication fails: it ends at the provider", async () => {
    const alone = { amount: 0, ...token("authenticationRequired"), ...BACK };
    const { id, instrument_id, next_action } = await save(given, "u1", alone);
    await visit(next_action.url, "failure");
    await deliver(given, await eventsOf(given));
    const { status, failure_code } = await shown(given, id);
    const instrument = await read(given, instrument_id);
    const { setup_intent } = await given.books();
    const setup = setup_intent.find(({ metadata }) => metadata.payment === id)!;
    assert.deepEqual([status, failure_code, instrument.status, setup.status], [
      ...["declined", "authentication_failed", "failed", "canceled"],
    ]);
  });
  assert.equal((await given.books()).customer.length, 1);
});

/** Faults of the removal of a card. */
const TROUBLES: Pick<Fault, "at" | "act" | "keep">[] = [
  { at: "before", act: "error", keep: true },
  { at: "after", act: "kill" },
];

liveCase("an end detaches the card, once", async (given, t) => {
  await stopPolls(given);
  const open = () =>
    given.service.sql`
    select state from pay.provider_operations where op = 'detach' and state <> 'settled'`;
  for (const trouble of TROUBLES) {
    const { at, act, keep } = trouble;
    await t.step(`also after ${act}${keep ? " (kept)" : ""} ${at} the work`, async () => {
      const { instrument_id: id } = await save(given, "u1");
      await given.double.plant({ method: "POST", path: "/detach$", ...trouble });
      const ended = await given.call("DELETE", `/instruments/${id}`);
      assert.deepEqual([ended.status, ended.body.ended_reason], [200, "deleted"], ended.text);
      assert.equal((await given.pay({ instrument: id, ...OFF })).status, 409);
      assert.notEqual((await cardOf(given, id)).customer, null, "nothing is sent by the request");
      await workAfter(given, DETACH_S);
      if (act === "kill") await given.double.restart();
      await workAfter(given, 31);
      assert.deepEqual([...await open()], []);
      assert.equal((await cardOf(given, id)).customer, null);
      const detached = await eventsOf(given, "payment_method.detached");
      const token = (await cardOf(given, id)).id;
      assert.equal(detached.filter(({ data }) => data.object.id === token).length, 1);
      await deliver(given, detached);
      assert.equal((await read(given, id)).ended_reason, "deleted");
      assert.deepEqual(await instrumentEvents(given, id), ["instrument.ended"]);
    });
  }
  await t.step("also by an erasure of its customer", async () => {
    const { id: paid, instrument_id: id } = await save(given, "erased");
    const { body, text } = await given.call("DELETE", "/customers/erased");
    assert.deepEqual([body.payments, body.instruments, body.has_more], [1, 1, false], text);
    await workAfter(given, DETACH_S);
    assert.equal((await cardOf(given, id)).customer, null);
    assert.deepEqual((await given.call("GET", `/payments/${paid}`)).body.customer, {
      ...{ id: "erased", email: null, name: null },
    });
  });
  await t.step("a removal that the account refuses waits for it", async () => {
    const { instrument_id: id } = await save(given, "u1");
    await given.call("DELETE", `/instruments/${id}`);
    const { PROVIDER_STRIPE: secret } = given.variables;
    delete given.variables.PROVIDER_STRIPE;
    await workAfter(given, DETACH_S);
    assert.deepEqual((await open()).map(({ state }) => state), ["pending"]);
    given.variables.PROVIDER_STRIPE = secret!;
    await workAfter(given, 31);
    assert.equal((await cardOf(given, id)).customer, null);
  });
  await t.step("one card that two instruments are stays until both have ended", async () => {
    const { instrument_id: first } = await save(given, "u1");
    const { id: token } = await cardOf(given, first);
    const { instrument_id: second } = await save(given, "u1", { card: { token } });
    for (const id of [first, second]) {
      assert.notEqual((await cardOf(given, id)).customer, null);
      await given.call("DELETE", `/instruments/${id}`);
      await workAfter(given, DETACH_S);
    }
    assert.equal((await cardOf(given, second)).customer, null);
  });
});

liveCase("what happens to a saved card at the provider", async (given, t) => {
  await t.step("renewed, then removed", async () => {
    await stopPolls(given);
    const { instrument_id: id } = await save(given, "u1");
    const { id: payment_method } = await cardOf(given, id);
    const learn = async (type: string) => await deliver(given, await eventsOf(given, type));
    for (const exp_year of [2039, 2044]) {
      await given.double.act("renew", { payment_method, exp_year });
      await learn("payment_method.automatically_updated");
      assert.equal((await read(given, id)).method.card.exp_year, exp_year);
    }
    await atStripe(given, `/v1/payment_methods/${payment_method}/detach`, {});
    // The service does not know it yet.
    const refused = await given.pay({ instrument: id, ...OFF });
    assert.deepEqual([refused.status, refused.body.error.param], [400, "instrument"]);
    await learn("payment_method.detached");
    const { status, ended_reason } = await read(given, id);
    assert.deepEqual([status, ended_reason], ["ended", "removed_at_provider"]);
    assert.deepEqual(await instrumentEvents(given, id), [
      ...["instrument.updated", "instrument.updated", "instrument.ended"],
    ]);
    const [row] = await given.service.sql`
        select count(*)::int as sent from pay.provider_operations where op = 'detach'`;
    assert.equal(row!.sent, 0);
  });
  await t.step("an older expiry that comes late changes nothing", async () => {
    const { instrument_id: id } = await save(given, "u1");
    const { id: payment_method } = await cardOf(given, id);
    for (const exp_year of [2039, 2044]) {
      await given.double.act("renew", { payment_method, exp_year });
    }
    const renewals = await eventsOf(given, "payment_method.automatically_updated");
    for (const renewal of renewals.slice(-2).reverse()) await deliver(given, [renewal]);
    assert.equal((await read(given, id)).method.card.exp_year, 2044);
    assert.deepEqual(await instrumentEvents(given, id), ["instrument.updated"]);
  });
  await t.step("a card and a setup of another program are no work for the operator", async () => {
    const { customer } = await given.books();
    const form = { customer: customer[0]!.id, payment_method: "pm_card_visa", confirm: "true" };
    await atStripe(given, "/v1/setup_intents", { ...form, return_url: BACK.return_url });
    const { payment_method } = await given.books();
    await atStripe(given, `/v1/payment_methods/${payment_method.at(-1)!.id}/detach`, {});
    await deliver(given, await eventsOf(given));
  });
});

liveCase("a saved card is charged by its own account only", async (given) => {
  const { instrument_id } = await save(given, "u1");
  const { double, service: { sql, live } } = given;
  await sql`select pay.disable_provider_account(${given.account_id})`;
  await addAccount(sql, live.environment_id, { settings: { base_url: double.base_url } });
  const { status, body } = await given.pay({ instrument: instrument_id, ...OFF });
  assert.deepEqual([status, body.error.code], [503, "provider_not_configured"]);
  await given.call("DELETE", `/instruments/${instrument_id}`);
  await workAfter(given, DETACH_S);
  assert.equal((await cardOf(given, instrument_id)).customer, null, "by the disabled account");
}, { is_open: true });
