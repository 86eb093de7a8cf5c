/**
 * The operator settles operations and provider events: each result takes the path of a provider
 * event, once.
 */

import assert from "node:assert/strict";
import { idGenerator } from "../../shared/core/ids.ts";
import {
  atStripe,
  deliver,
  dieDuringOperation,
  eventsOf,
  eventTypes,
  referenceOf,
  shown,
} from "../support/live/live_actions.ts";
import {
  breaches,
  type LiveCase,
  liveCase,
  resumePolls,
  settle,
  stopPolls,
  workAfter,
} from "../support/live/live_case.ts";
import { providerCommands } from "../support/live/provider_commands.ts";
import { DOCS_URL } from "../support/service/service.ts";

/** Runs a command with `--json`. Returns its output. */
async function run(given: LiveCase, ...args: string[]) {
  const commands = providerCommands(given.service.sql, given.variables);
  return JSON.parse(await commands.run(...args, "--json"));
}

function refused(given: LiveCase, message: RegExp, ...args: string[]): Promise<void> {
  return assert.rejects(run(given, ...args), { name: "CommandError", message });
}

/** Gives the only operation without a result to the operator. Returns its id. */
async function giveUp({ service: { sql } }: LiveCase): Promise<string> {
  const [operation, ...more] = await sql`
    update pay.provider_operations set state = 'operator', next_attempt_at = null, leased_until = null,
      last_reply = 'absent' where state = 'pending' returning id`;
  assert.equal(more.length, 0);
  return operation!.id;
}

/**
 * Makes a payment whose operation the operator has. `at`: before or after the work of the provider.
 */
async function stuck(given: LiveCase, at: "before" | "after", body: object = {}) {
  await given.double.plant({ method: "POST", at, act: "error" });
  const response = await given.pay({ ...body }, { idempotency_key: crypto.randomUUID() });
  assert.equal(response.body.status, "processing");
  return { id: response.body.id as string, operation: await giveUp(given) };
}

/** Makes a payment at the provider without this service. Returns its id there. */
async function foreign(given: LiveCase, amount = "1000"): Promise<string> {
  const before = new Set((await given.books()).payment_intent.map(({ id }) => id));
  await atStripe(given, "/v1/payment_intents", {
    amount,
    currency: "eur",
    payment_method: "pm_card_visa",
    confirm: "true",
    capture_method: "automatic",
    return_url: "https://other.example/",
  });
  return (await given.books()).payment_intent.find(({ id }) => !before.has(id))!.id;
}

/** Delivers all events twice, and polls, which brings the fees. */
async function learn(given: LiveCase): Promise<void> {
  for (let i = 0; i < 2; i++) await deliver(given, await eventsOf(given));
  await resumePolls(given);
  await settle(given);
  await stopPolls(given);
}

/** The balance of each account of the ledger that belongs to the account at the provider. */
async function ofAccount({ service: { sql }, account_id }: LiveCase) {
  const [row] = await sql`
    select coalesce(-sum(processor), 0)::int as processor,
      coalesce(sum(unapplied), 0)::int as unapplied
    from pay_internal.subject_accounts where subject_id = ${account_id}`;
  return [row!.processor, row!.unapplied];
}

liveCase("operations without a result are listed and settled", async (given, t) => {
  await stopPolls(given);
  await t.step("calls lists an operation with its age and the last reply", async () => {
    assert.deepEqual(await run(given, "calls"), []);
    const { id, operation } = await stuck(given, "after");
    const [listed, ...more] = await run(given, "calls");
    assert.equal(more.length, 0);
    assert.deepEqual(
      [listed.id, listed.subject_id, listed.state, listed.attempts, listed.amount_minor],
      [operation, id, "operator", 1, 1000],
    );
    assert.deepEqual([listed.last_reply, listed.subject_status], ["absent", "processing"]);
  });
  await t.step("retry records the result that is at the provider, once", async () => {
    const [{ id: operation, subject_id }] = await run(given, "calls");
    await refused(given, /stripe says succeeded .*Use "retry/, "settle", operation, "--failed");
    const done = { settled: operation, result: "succeeded", subject_id, status: "completed" };
    assert.deepEqual(await run(given, "retry", operation), done);
    await refused(given, /is settled already$/, "retry", operation);
    const types = await eventTypes(given, subject_id);
    assert.deepEqual(types, ["payment.created", "payment.processing", "payment.completed"]);
  });
  await t.step("retry changes nothing while nothing is there", async () => {
    const { id, operation } = await stuck(given, "before");
    await refused(given, /stripe has nothing of this operation$/, "retry", operation);
    assert.equal((await shown(given, id)).status, "processing");
    const done = { settled: operation, result: "failed", subject_id: id, status: "failed" };
    assert.deepEqual(await run(given, "settle", operation, "--failed"), done);
    const payment = await shown(given, id);
    assert.equal(payment.failure_code, "processing_failed");
    await refused(given, /is settled already$/, "settle", operation, "--failed");
  });
  await t.step("settle --failed --unsynced needs no response of the provider", async () => {
    const { id, operation } = await stuck(given, "before");
    await given.double.plant({ method: "GET", at: "before", act: "error" });
    await refused(given, /gives no response/, "settle", operation, "--failed");
    await run(given, "settle", operation, "--failed", "--unsynced");
    assert.equal((await shown(given, id)).status, "failed");
  });
  await t.step("the error of a request that died has the address of its explanation", async () => {
    given.variables["DOCS_URL"] = `${DOCS_URL}/`;
    const declined = { card: { token: "pm_card_chargeDeclined" } };
    await dieDuringOperation(given, "died", declined);
    await run(given, "retry", await giveUp(given));
    const { status, body } = await given.pay(declined, { idempotency_key: "died" });
    assert.equal(status, 402);
    assert.equal(body.error.doc_url, `${DOCS_URL}/errors.html#payment_declined`);
  });
  await t.step("settle --failed is refused while the service still asks", async () => {
    await given.double.plant({ method: "POST", at: "before", act: "error" });
    const { body: { id } } = await given.pay();
    // Nobody has to do anything yet.
    assert.deepEqual(await run(given, "calls"), []);
    const [{ id: operation }] = await run(given, "calls", "--all");
    await refused(given, /the service still asks for its result/, "settle", operation, "--failed");
    await workAfter(given, 31);
    assert.equal((await shown(given, id)).status, "completed");
  });
  await t.step("a refund and a capture that did nothing leave the money", async () => {
    const { body: { id } } = await given.pay();
    await given.double.plant({ method: "POST", path: "refunds", at: "before", act: "error" });
    const { body: refund } = await given.call("POST", `/payments/${id}/refund`, { body: {} });
    await run(given, "settle", await giveUp(given), "--failed");
    assert.equal((await given.call("GET", `/refunds/${refund.id}`)).body.status, "failed");
    assert.equal((await shown(given, id)).amount_refunding, 0);
    const { body: held } = await given.pay({ capture: "manual" });
    await given.double.plant({ method: "POST", path: "capture", at: "before", act: "error" });
    await given.call("POST", `/payments/${held.id}/capture`, { body: {} });
    await run(given, "settle", await giveUp(given), "--failed");
    assert.equal((await shown(given, held.id)).status, "authorized");
    const captured = await given.call("POST", `/payments/${held.id}/capture`, { body: {} });
    assert.equal(captured.body.status, "completed");
  });
  assert.deepEqual(await run(given, "calls"), []);
});

liveCase("settle --succeeded takes only the payment of the operation", async (given, t) => {
  await stopPolls(given);
  const { id, operation } = await stuck(given, "before");
  const settled = (reference: string) => ["settle", operation, "--succeeded", reference];
  const other = (await given.pay()).body.id;
  const REFUSALS: [name: string, reference: () => Promise<string>, message: RegExp][] = [
    ["an object that does not exist", () => Promise.resolve("pi_none"), /stripe has no pi_none$/],
    ["another amount", () => foreign(given, "999"), /is 9\.99 EUR instead of 10\.00 EUR$/],
    ["the payment of another operation", () => referenceOf(given, other), /belongs to pay_/],
  ];
  for (const [name, reference, message] of REFUSALS) {
    await t.step(`${name} is refused and changes nothing`, async () => {
      await refused(given, message, ...settled(await reference()));
      assert.equal((await shown(given, id)).status, "processing");
    });
  }
  await t.step("its own payment completes it, and its fee and refund follow", async () => {
    const reference = await foreign(given);
    await learn(given);
    const [before] = await ofAccount(given);
    const done = { settled: operation, result: "succeeded", subject_id: id, status: "completed" };
    assert.deepEqual(await run(given, ...settled(reference)), done);
    await settle(given);
    assert.equal((await ofAccount(given))[0], before! - 960);
    await refused(given, /is settled already$/, ...settled(reference));
    const [event] = await given.service.sql`
      select last_reply from pay.provider_operations where id = ${operation}`;
    assert.equal(event!.last_reply, "succeeded, by the operator");
  });
  await resumePolls(given);
  await settle(given);
  const provider_events: { reference: string }[] = await run(given, "facts");
  for (const { reference } of provider_events) {
    await run(given, "dismiss", reference, "--reason", "a test");
  }
});

liveCase("money that matches nothing is booked, matched and reversed once", async (given, t) => {
  await stopPolls(given);
  let reference = "";
  await t.step("it is booked for the account, with its fee, and listed", async () => {
    reference = await foreign(given);
    await learn(given);
    assert.deepEqual(await ofAccount(given), [960, 960]);
    const provider_events = await run(given, "facts");
    const paid = provider_events.find((event: { reference: string }) =>
      event.reference === `${reference}:succeeded`
    );
    assert.deepEqual([paid.outcome, paid.booked_minor], ["unmatched", 1000]);
    assert.match(paid.reason, /^it names no payment, and no operation has made pi_/);
    const [health] = await given.service.sql`select unmatched_events::int as n from pay.health`;
    assert.equal(health!.n, provider_events.length);
  });
  await t.step("a refund at the provider reverses it", async () => {
    await atStripe(given, "/v1/refunds", { payment_intent: reference, amount: "300" });
    await learn(given);
    assert.deepEqual(await ofAccount(given), [660, 660]);
  });
  const { id, operation } = await stuck(given, "before");
  await t.step("a match that does not fit changes nothing", async () => {
    const name = `${reference}:succeeded`;
    const unknown = idGenerator(Date.now())("pay_");
    await refused(given, /no such resource$/, "match", name, unknown);
    const { body: completed } = await given.pay();
    await refused(given, /it changes nothing at pay_/, "match", name, completed.id);
    assert.deepEqual(await ofAccount(given), [660, 660]);
  });
  await t.step("a match moves the money to the payment, and the rest follows", async () => {
    const name = `${given.account_id}/${reference}:succeeded`;
    const done = { matched: name, target: id, subject_id: id, status: "completed" };
    assert.deepEqual(await run(given, "match", name, id), done);
    await refused(given, /no unmatched provider event or exception/, "match", name, id);
    await settle(given);
    assert.deepEqual(await ofAccount(given), [0, 0]);
    const payment = await shown(given, id);
    assert.deepEqual([payment.status, payment.amount_refunded], ["partially_refunded", 300]);
    assert.ok(!(await run(given, "calls")).some((open: { id: string }) => open.id === operation));
  });
  await t.step("dismiss keeps a provider event and counts it no more", async () => {
    await foreign(given, "700");
    await learn(given);
    const booked = await ofAccount(given);
    const provider_events: { reference: string }[] = await run(given, "facts");
    assert.ok((await breaches(given)).length > 0);
    for (const event of provider_events) {
      const { dismissed } = await run(given, "dismiss", event.reference, "--reason", "other shop");
      assert.equal(dismissed, event.reference);
    }
    assert.deepEqual(await run(given, "facts"), []);
    const [health] = await given.service.sql`select unmatched_events::int as n from pay.health`;
    assert.equal(health!.n, 0);
    assert.deepEqual(await ofAccount(given), booked);
  });
});
