/**
 * The audits of the chaos runs find every broken promise. They find nothing in a good run: a small
 * plan that is played on the real service without faults, and small books of a provider and of a
 * bank. Then each case breaks one thing in a journal, in rows or in books, and the audit must name
 * it.
 */

import assert from "node:assert/strict";
import { type ServedService, withServedService } from "../support/service/served_service.ts";
import type { StripeObject } from "../support/stripe/journal.ts";
import { addEndpoint, openRecorder, settle } from "../support/webhook/recording_receiver.ts";
import { ApiResponse, RepeatingClient } from "./harness/client.ts";
import { readArrival } from "./harness/receiver.ts";
import { makeEnvironment } from "./harness/stage.ts";
import { auditBank } from "./worlds/banks/audit.ts";
import { auditCards } from "./worlds/cards/audit.ts";
import type { CardFinished } from "./worlds/cards/clients.ts";
import type { CardAction } from "./worlds/cards/plan.ts";
import { auditRun } from "./worlds/sandbox/audit.ts";
import { type Finished, PlanClients } from "./worlds/sandbox/clients.ts";
import { type Evidence, readRows } from "./worlds/sandbox/evidence.ts";
import { type Action, isRead, planOf, type Sandbox, SANDBOXES } from "./worlds/sandbox/plan.ts";

type Break<Run> = (run: Run) => unknown;
/** Each case breaks a run, so that its audit finds a breach. */
type Cases<Run> = [breach: RegExp, breakRun: Break<Run>][];

/** The response of an unknown id. */
const REFUSED = { status: 404, text: '{"error":{"code":"not_found"}}' };

const FIRST = { is_replay: false };
const ONE_CENT = { amount_minor: 1, credits_minor: 1 };

/** The promise stands before each breach. */
const MAIN_CASES: Cases<MainRun> = [
  [/^R1 .* pay_\w+ is lost/m, (run) => dropRow(run, "cancel", 200)],
  [/^R1 .* pay_\w+ is lost/m, (run) => dropRow(run, "use", 201)],
  [/^R1 .* unlike the model/m, alterRow("cancel", { status: "completed" })],
  [/^R1 .* unlike the model/m, alterRow("capture", { amount_captured: 7 })],
  [/^R1 .* unlike the model/m, alterRow("get", { amount_refunding: 7 })],
  [/^R1 .* unlike the model/m, alterRow("get", { amount_refunded: 7 })],
  [/^R1 .* unlike the model/m, alterRow("get", { amount_disputed: 7 })],
  [/^R1 .*"active".* is unlike the model/m, alterRow("end", { status: "active" })],
  [/^R2 .*: duplicates got 201/m, alter("create", { more: 1 }, 201)],
  [/^R2 .* 2 first responses/m, (run) => {
    for (const response of to(run, "create", 201).responses) Object.assign(response, FIRST);
  }],
  [/^R2 .*only some duplicates succeeded/m, on("create", 201, REFUSED)],
  [/^R2 invariant_effects: twice/m, ({ rows: { books } }) => {
    const found = { severity: "alarm" as const, breaches: 1, examples: ["twice"] };
    books.push({ invariant: "invariant_effects", promise: "R1, R2: one", ...found });
  }],
  [/^R2 pay_1 has several instruments/m, ({ rows }) => rows.saved_twice.push("pay_1")],
  [/^R2 operation 0: 201 .* , then 201/m, (run) => run.replays = run.differing],
  [/^R3 .*one field changed: 201/m, changed({ status: 201 })],
  [/^R3 .*changed: 0/m, changed({ status: 0 })],
  [/^R3 .*changed: 409/m, changed({ text: "{}" })],
  [/^R4 .*never/m, ({ meanwhile }) => meanwhile.audits = 0],
  [/^R4 bad/m, ({ meanwhile }) => meanwhile.breaches.push("bad")],
  [/^R4 EUR overdrawn/m, ({ rows }) => rows.overdrawn.push("EUR overdrawn")],
  [/^R4 .*a balance: .* does not add up/m, alterBalance(() => ({ ...ONE_CENT, debits_minor: 0 }))],
  [
    /^R4 .*a balance: \{/m,
    alterBalance(({ amount_minor }) => ({ amount_minor: amount_minor + 1 })),
  ],
  [/^R4 .*a balance: is empty/m, alter("balance", { balances: [] })],
  [/^R4 .*a balance: returned 404/m, on("balance", 200, REFUSED)],
  [/^R5 .* no order/m, alter("capture", { amount_captured: 7 })],
  [/^R5 .* no order/m, alter("advance_refund", { status: "pending" })],
  [/^R5 .* no order/m, alter("refund", { payment_status: "open" }, 201)],
  // A charge was accepted after the end of its instrument.
  [/^R5 .* no order/m, (run) => {
    to(run, "use", 409).responses[0] = to(run, "use", 201).responses[0];
  }],
  // Charges were refused before the end of their instruments.
  [/^R5 .* no order/m, (run) => {
    const { responses } = to(run, "use", 409);
    for (const one of run.journal) {
      if (one.operation.action.do === "use") one.responses = responses;
    }
  }],
  [/^R5 .* a request has no response/m, (run) => {
    const { operation } = to(run, "refund", 201);
    run.journal = run.journal.filter((one) => one.operation !== operation);
  }],
  [/^R5 .*a list: .* is missing/m, alter("list", ({ data }) => ({ data: data.slice(1) }))],
  [/^R5 .*a list: not newest/m, alter("list", ({ data }) => ({ data: data.toReversed() }))],
  [/^R5 .*a list: its cursor/m, alter("list", { next_cursor: "pay_1" })],
  [/^R5 .*a list: returned 404/m, on("list", 200, REFUSED)],
  [/^R5 .* no order/m, alter("list_refunds", ({ data }) => ({ data: [...data, { id: "re_1" }] }))],
  [/^R5 .* a reset got 404/m, on("reset", 200, REFUSED, "resets")],
  [/^R5 .* create got 404/m, on("create", 201, REFUSED, "resets")],
  // A payment was found after it was not found.
  [/^R5 .* was found after/m, ({ journal, plan }) => {
    const { groups } = plan.stories.find(({ sandbox, groups }) =>
      sandbox === "resets" && groups.length > 2 && groups[1]![0]!.action.do !== "advance_refund"
    )!;
    const gone = journal.filter(({ operation }) => groups[1]!.includes(operation));
    for (const { responses } of gone) Object.assign(responses[0], REFUSED);
  }],
  [/^R6 missing: payment/m, (run) => {
    const { event_id } = run.arrivals.find(({ path }) => path === "/payments")!;
    run.arrivals = run.arrivals.filter((arrival) => arrival.event_id !== event_id);
  }],
  [/^R6 1 forged/m, arrived({ is_genuine: false })],
  [/^R6 .* another body/m, arrived({ body_hash: "0".repeat(64) })],
  [/^R6 .* is not an event/m, arrived({ event_id: "evt_unknown" })],
  [/^R6 .* duplicates/m, ({ arrivals }) => {
    arrivals.push(...arrivals.slice(0, arrivals.length / 10));
  }],
  [/^R6 .* redeliveries/m, ({ drained, arrivals }) => {
    drained.redelivered = new Set(arrivals.keys().map(String));
  }],
  [/^R6 early/m, ({ drained: { faults } }) => faults.push("early")],
  // Two events of a payment came in the other order.
  [/^R7 /m, ({ arrivals }) => {
    const here = arrivals.filter(({ path }) => path === "/payments");
    const second = here.find(({ sequence }) => sequence === 2)!;
    const first = here.find(({ subject_id }) => subject_id === second.subject_id)!;
    [first.sequence, second.sequence] = [second.sequence, first.sequence];
  }],
  [/^R8 .* signed 30000 ms before/m, arrived({ age_ms: 30_000 })],
  [/^R8 .* signed -2001 ms/m, arrived({ age_ms: -2_001 })],
  [/^R8 .* is 1 s off/m, arrived({ timestamps_apart_s: 1 })],
];

const CARDS_CASES: Cases<ReturnType<typeof goodCards>> = [
  [/pay_2: response none here, once/, set("payments.1")],
  [/pay_3: response once here, none/, set("payments.+", { id: "pay_3" })],
  [/pay_1: object succeeded here, succ.* and/, set("books.payment_intent.+", { id: "pi_3" })],
  [/pay_2: object canceled here, none/, set("books.payment_intent.1")],
  [/pay_9: object none here/, set("books.payment_intent.+", { metadata: { payment: "pay_9" } })],
  [/pay_1: object .*, requires/, set("books.payment_intent.0.status", "requires_capture")],
  [/pay_1: charge 1000 here, 1000 and 1000/, set("books.charge.+", { id: "ch_3" })],
  [/pay_1: charge 1000 here, 999/, set("books.charge.0.amount_captured", 999)],
  [/re_1: response once here, none/, set("operations.2")],
  [/re_1: refund completed 300 here, none/, set("books.refund.0")],
  [/re_1: refund .* here, completed 301/, set("books.refund.0.amount", 301)],
  [/pay_1: balance 659 here, 660/, ({ balances }) => balances.set("pay_1", 659)],
  [/create-1: duplicates got 201 .* and 201 {}/, set("operations.0.responses.1.text", "{}")],
  [/2 first responses/, set("operations.0.responses.1.is_replay", false)],
  [/refund-1: 0/, set("operations.2.responses.0.status", 0)],
  [/u1 has 2 customers at the provider/, set("books.customer.+", { id: "cus_2" })],
  [/ins_1 is of cus_2, which is not/, set("instruments.0.customer", "cus_2")],
  [/pm_1: end once here, none/, set("books.event.0")],
  [/ins_1 is active, not ended/, set("instruments.0.status", "active")],
  [/ins_1 is ended, not failed/, set("instruments.0.payment_status", "declined")],
  [/pm_2: .* none .*, cus_1/, set("books.payment_method.+", { id: "pm_2", customer: "cus_1" })],
  [/charge-1: ended, then 201/, ({ operations }) => {
    const charge = { do: "charge", body: {}, is_late: true } as const;
    operations.push(finished("charge-1", charge, null, 201, { id: "pay_1", status: "completed" }));
  }],
  [/contradicts 201/, set("books.payment_intent.0.amount_received", 0)],
  [/contradicts 402/, set("books.payment_intent.1.amount_received", 500)],
];

const BANK_CASES: Cases<ReturnType<typeof goodBank>> = [
  [/-30: entry once and once here, once/, ({ entries }) => entries.push(-30)],
  [/other money: money 1 here, none/, ({ booked }) => booked.set(null, 1)],
  [/tr-1: money none here, -30/, ({ booked }) => booked.set("tr-1", 0).set("tr-2", -30)],
  [/other money: .* none here, -5/, set("books.entries.+", { amount: -5, parts: [] })],
  [/tr-2: order once here, none/, set("books.orders.tr-2")],
  [/pay_2 is under M-1, at the bank under M-2/, set("books.mandates.pay-2", "M-2")],
  [/M-1 is account_closed/, ({ mandates }) => mandates.set("M-1", "account_closed")],
  [/M-1 is active/, set("books.codes.pay-2", "AC04")],
  [/pay_3 saves .* is processing/, set("subjects.4.status", "processing")],
  [/tr_1 is pending, at the bank booked/, set("subjects.1.status", "pending")],
  [/tr_2 is completed, at the bank taken/, set("subjects.2.status", "completed")],
  [/tr_1 is completed, at the bank rejected/, set("books.orders.tr-1", "rejected")],
  [/tr_1 is completed, at the bank returned/, set("books.orders.tr-1", "returned")],
  [/tr_2 is undefined, at the bank taken/, set("subjects.2")],
  [/pay_1 has received 400, of 1000/, set("subjects.0.amount_received", 400)],
  [/pay_1 of 900 is pending with 1000/, set("subjects.0.status", "pending")],
  [/pay_1 of 1001 is completed/, set("payments.0.amount", 1001)],
  [/invariant_ledger/, ({ broken }) => broken.push("invariant_ledger")],
];

/** The evidence of a good run, with replays after a first response that had another body. */
type MainRun = Evidence & { differing: Evidence["replays"] };

/** Plays a plan, one story after the other. */
async function playMain({ service, base_url }: ServedService): Promise<MainRun> {
  const plan = planOf(98, 400, 0);
  for (const operation of plan.stories.flatMap(({ groups }) => groups.flat())) {
    if (!isRead(operation.action)) operation.duplicates = 2;
  }
  const environments = {} as Evidence["environments"];
  const endpoints: Evidence["endpoints"] = {};
  const secrets: Record<string, string> = {};
  const hooks = openRecorder();
  for (const sandbox of SANDBOXES) {
    const made = await makeEnvironment(service.sql, sandbox, "chaos", false);
    environments[sandbox] = made;
    const path = `/${sandbox}`;
    secrets[path] = (await addEndpoint(service, hooks.url(path), {}, made)).secret;
    endpoints[path] = { sandbox, events: "*" };
  }
  const ends: (() => unknown)[] = [];
  const client = new RepeatingClient({ atEnd: (end) => ends.push(end) }, [{ base_url }]);
  const clients = new PlanClients(plan, client, environments, 1);
  await clients.tell();
  await settle(service);
  const arrivals = await Promise.all(
    hooks.arrivals.map((it) => readArrival(it, secrets[it.path]!)),
  );
  await hooks.close();
  const { journal } = clients;
  const first = journal.find(({ operation: { number } }) => number === 0)!;
  const { text } = first.responses[0];
  Object.assign(first.responses[0], { text: `${text} ` });
  const differing = await clients.replay(client);
  Object.assign(first.responses[0], { text });
  const replays = await clients.replay(client);
  assert.ok(replays.replayed > 200, `${replays.replayed} replays`);
  for (const end of ends) end();
  return {
    ...{ plan, journal, arrivals, environments, endpoints, replays, differing },
    rows: await readRows(service.sql, environments),
    meanwhile: { audits: 1, breaches: [] },
    drained: { redelivered: new Set(), faults: [] },
  };
}

function judgeMain(run: MainRun): string[] {
  return auditRun(run).flatMap(({ promise, breaches }) =>
    breaches.map((breach) => `${promise} ${breach}`)
  );
}

type Kind = Action["do"] | Extract<Action, { do: "move" }>["move"]["do"];

/** The last operation of a kind whose first response has a status. */
function to({ journal }: MainRun, kind: Kind, status: number, of?: Sandbox): Finished {
  const last = journal.findLast(({ story: { sandbox }, operation: { action }, responses }) =>
    (action.do === "move" ? action.move.do : action.do) === kind &&
    responses[0].status === status &&
    (of === undefined ? sandbox !== "resets" : sandbox === of)
  );
  assert.ok(last, `no ${kind} got ${status}`);
  return last;
}

/** Changes the first response to such an operation. */
function on(
  kind: Kind,
  status: number,
  values: Partial<ApiResponse>,
  of?: Sandbox,
): Break<MainRun> {
  return (run) => Object.assign(to(run, kind, status, of).responses[0], values);
}

// deno-lint-ignore no-explicit-any -- a case knows the shape
type Change = object | ((body: any) => object);

function alterText(text: string, change: Change): string {
  const body = JSON.parse(text);
  return JSON.stringify({ ...body, ...typeof change === "function" ? change(body) : change });
}

/** Changes fields in the body of such a response. */
function alter(kind: Kind, change: Change, status = 200): Break<MainRun> {
  return (run) => {
    const [response] = to(run, kind, status).responses;
    Object.assign(response, { text: alterText(response.text, change) });
  };
}

/** Changes the first balance of a response. */
function alterBalance(change: (one: { amount_minor: number }) => object): Break<MainRun> {
  return alter("balance", ({ balances: [one, ...more] }) => ({
    balances: [{ ...one, ...change(one) }, ...more],
  }));
}

/** Changes the stored text of the payment or instrument that such a response shows. */
function alterRow(kind: Kind, change: Change): Break<MainRun> {
  return (run) => {
    const { id } = JSON.parse(to(run, kind, 200).responses[0].text);
    run.rows.stored.set(id, alterText(run.rows.stored.get(id)!, change));
  };
}

function dropRow(run: MainRun, kind: Kind, status: number): void {
  run.rows.stored.delete(JSON.parse(to(run, kind, status).responses[0].text).id);
}

/** Changes the response to a request with one field changed. */
function changed(values: Partial<ApiResponse>): Break<MainRun> {
  return ({ journal }) => Object.assign(journal.find(({ changed }) => changed)!.changed!, values);
}

/** Changes the record of a delivery of a sandbox that is not reset. */
function arrived(values: Partial<Evidence["arrivals"][number]>): Break<MainRun> {
  return (run) => Object.assign(run.arrivals.find(({ path }) => path === "/payments")!, values);
}

/**
 * Changes the value at a path. Without a value it is removed, and a path to `+` adds a copy of the
 * first item with other fields.
 */
function set(path: string, value?: unknown): Break<object> {
  return (run) => {
    const names = path.split(".");
    const name = names.pop()!;
    // deno-lint-ignore no-explicit-any
    const holder = names.reduce((at: any, each) => at[each], run);
    if (name === "+") holder.push({ ...holder[0], ...value as object });
    else if (value !== undefined) holder[name] = value;
    else if (Array.isArray(holder)) holder.splice(Number(name), 1);
    else delete holder[name];
  };
}

const ENDED = { id: "ins_1", ended_reason: "deleted" };

/** A payment that was charged and refunded in part, and one that was declined. */
function goodCards() {
  const act = <Do extends "create" | "refund">(verb: Do, amount_minor: number) => {
    return { do: verb, body: { amount_minor } };
  };
  const refused = { error: { payment: { id: "pay_2", status: "declined" } } };
  const completed = (id: string) => ({ id, status: "completed" });
  const charged = { status: "succeeded", metadata: { payment: "pay_1" } };
  const [declined, refunded] = [{ payment: "pay_2" }, { payment: "pay_1", refund: "re_1" }];
  const detached = { type: "payment_method.detached", data: { object: { id: "pm_1" } } };
  return {
    operations: [
      finished("create-1", act("create", 1000), "pay_1", 201, completed("pay_1")),
      finished("create-2", act("create", 500), "pay_2", 402, refused),
      finished("refund-1", act("refund", 300), "pay_1", 201, completed("re_1")),
      finished("end-1", { do: "end", body: null }, null, 200, ENDED),
    ],
    instruments: [{
      ...{ id: "ins_1", status: "ended", customer_id: "u1", customer: "cus_1" },
      ...{ token: "pm_1", payment_status: "completed" },
    }],
    payments: [
      { id: "pay_1", status: "partially_refunded", amount_captured: 1000 },
      { id: "pay_2", status: "declined", amount_captured: 0 },
    ],
    refunds: [{ id: "re_1", status: "completed", amount_minor: 300 }],
    balances: new Map([["pay_1", 660]]),
    books: {
      payment_intent: [
        object("pi_1", { ...charged, amount_received: 1000 }),
        object("pi_2", { status: "canceled", amount_received: 0, metadata: declined }),
      ],
      charge: [object("ch_1", { ...charged, amount_captured: 1000, payment_intent: "pi_1" })],
      refund: [object("re_x", { status: "succeeded", amount: 300, metadata: refunded })],
      balance_transaction: [
        object("txn_1", { source: "ch_1", net: 960 }),
        object("txn_2", { source: "re_x", net: -300 }),
      ],
      customer: [object("cus_1", { metadata: { customer: "u1" } })],
      payment_method: [object("pm_1", { customer: null })],
      event: [object("evt_1", detached)],
      ...{ dispute: [], payout: [], setup_intent: [] },
    },
  };
}

function finished(
  key: string,
  action: CardAction,
  payment_id: string | null,
  status: number,
  shown: object,
): CardFinished {
  const text = JSON.stringify(shown);
  const responses = [false, true].map((is_replay) =>
    new ApiResponse(status, text, is_replay, null)
  );
  const target_id = action.do === "end" ? "ins_1" : payment_id;
  return { key, action, duplicates: 2, target_id, payment_id, responses };
}

function object(id: string, fields: object): StripeObject {
  return { id, object: "", created: 0, ...fields };
}

/**
 * A payment in two parts, two transfers, of which the bank has booked one, a collection, and a
 * mandate that is saved alone.
 */
function goodBank() {
  const part = (amount: number, of: string | null) => ({ amount, parts: [{ amount, of }] });
  const subject = (id: string, status: string, amount_received: number | null = null) => {
    return { id, status, amount_received };
  };
  return {
    payments: [{ id: "pay_1", reference: "RF1", amount: 900 }],
    orders: [
      { id: "tr_1", amount: 30, mandate: null },
      { id: "tr_2", amount: 30, mandate: null },
      { id: "pay_2", amount: 30, mandate: "M-1" },
    ],
    saved_alone: ["pay_3"],
    books: {
      entries: [part(400, "RF1"), part(-30, "tr-1"), part(600, "RF1")],
      orders: { "tr-1": "booked", "tr-2": "taken", "pay-2": "taken" } as const,
      mandates: { "pay-2": "M-1" },
      codes: {},
    },
    mandates: new Map<string, string | null>([["M-1", null]]),
    subjects: [
      subject("pay_1", "completed", 1000),
      subject("tr_1", "completed"),
      subject("tr_2", "pending"),
      subject("pay_2", "processing"),
      subject("pay_3", "completed"),
    ],
    entries: [400, -30, 600],
    booked: new Map<string | null, number>([["RF1", 1000], ["tr-1", -30]]),
    broken: [] as string[],
  };
}

/** A step for the good run, and one for each case. */
async function findAll<Run>(
  t: Deno.TestContext,
  judge: (run: Run) => string[],
  run: Run,
  cases: Cases<Run>,
): Promise<void> {
  await t.step("finds nothing in a good run", () => assert.deepEqual(judge(run), []));
  for (const [breach, breakRun] of cases) {
    await t.step(`finds ${breach.source}`, () => {
      const broken = structuredClone(run);
      breakRun(broken);
      assert.match(judge(broken).join("\n"), breach);
    });
  }
}

Deno.test("auditRun()", (t) =>
  withServedService(async (served) => {
    await findAll(t, judgeMain, await playMain(served), MAIN_CASES);
  }));
Deno.test("auditCards()", (t) => findAll(t, auditCards, goodCards(), CARDS_CASES));
Deno.test("auditBank()", (t) => findAll(t, auditBank, goodBank(), BANK_CASES));
