/**
 * The audit of a chaos run finds every broken promise. The test plays a small plan on the real
 * service without faults, and the audit finds nothing. Then each case breaks one thing in the
 * journals or in the database, and the audit must name it.
 */

import assert from "node:assert/strict";
import type postgres from "postgres";
import { idGenerator } from "../../shared/core/ids.ts";
import { type ServedService, withServedService } from "../support/service/served_service.ts";
import { addEndpoint, openRecorder, settle } from "../support/webhook/recording_receiver.ts";
import { RepeatingClient, type Replays } from "./harness/client.ts";
import { readArrival } from "./harness/receiver.ts";
import { makeEnvironment } from "./harness/stage.ts";
import { auditRun } from "./worlds/sandbox/audit.ts";
import { PlanClients, type Received } from "./worlds/sandbox/clients.ts";
import type { Evidence } from "./worlds/sandbox/evidence.ts";
import {
  type Action,
  isRead,
  keyOf,
  planOf,
  type Sandbox,
  SANDBOXES,
} from "./worlds/sandbox/plan.ts";

const PLAN = planOf(99, 400, 0);
const OPERATIONS = PLAN.stories.flatMap(({ groups }) => groups.flat());
for (const operation of OPERATIONS) {
  if (!isRead(operation.action)) operation.duplicates = 2;
}

/** An endpoint for each sandbox, subscribed to every event. */
const ENDPOINTS: Evidence["endpoints"] = Object.fromEntries(
  SANDBOXES.map((sandbox) => [`/${sandbox}`, { sandbox, takes: () => true }]),
);

/** Breaks the run. @param tx a transaction that is rolled back and skips triggers */
type Break = (run: Told & Evidence, tx: postgres.TransactionSql) => unknown;

/** Cases by the promise whose verdict names the breach. */
const CASES: Record<string, [defect: string, breach: RegExp, breakRun: Break][]> = {
  R1: [
    ["an acknowledged change is missing", /is lost/, (run, tx) => {
      const key = keyOf(PLAN, responseTo(run, "cancel", 200).operation);
      return tx`delete from pay.events where idempotency_key = ${key}`;
    }],
    ["a refused change has happened", /but its change exists/, on("cancel", 200, refuse)],
    ["a request got no response", /no response/, on("create", 201, lose, "resets")],
  ],
  R2: [
    ["duplicates got different responses", /got different/, alter("create", { more: 1 }, 201)],
    ["two duplicates were the first", /2 first responses/, (run) => {
      const { operation } = responseTo(run, "create", 201);
      for (const response of responsesOf(run, operation)) response.is_replay = false;
    }],
    ["a duplicate was refused", /only some duplicates succeeded/, on("create", 201, refuse)],
    ["two payments were made under one key", /2 effects/, (run, tx) => {
      const key = keyOf(PLAN, responseTo(run, "create", 201).operation);
      const event = tx`type = 'payment.created' and idempotency_key = ${key}`;
      return copy(tx, "events", { id: newId("evt_"), subject_id: newId("pay_") }, event);
    }],
    ["a refund has completed twice", /re_.* refund.completed, refund.completed/, (_, tx) => {
      const last = tx`id = (select max(id) from pay.events where type = 'refund.completed')`;
      return copy(tx, "events", { id: newId("evt_"), sequence: 9_999 }, last);
    }],
    ["a refund has no beginning", /re_.* has the events refund.completed$/, (_, tx) => {
      const id = tx`select max(id) from pay.refunds where status = 'completed'`;
      return tx`
        delete from pay.events
        where type = 'refund.created' and object::json ->> 'id' = (${id})`;
    }],
    ["a save made two instruments", /2 instruments/, (_, tx) => {
      const one = tx`id = (select max(id) from pay.instruments where mandate_id is null)`;
      return copy(tx, "instruments", { id: newId("ins_") }, one);
    }],
    ["a replay differs from the first", /operation 0: 201 .* , then 201/, (run) => {
      run.replays = run.differing;
    }],
  ],
  R3: [
    ["a changed request was done", /one field changed: 201/, changed({ status: 201 })],
    ["a changed request got no response", /changed: no response/, changed({ status: 0 })],
    ["a changed request was refused for another reason", /changed: 409/, changed({ body: "{}" })],
  ],
  R4: [
    ["no audit ran during the run", /never/, having({ meanwhile: { audits: 0, breaches: [] } })],
    ["an audit found a breach", /bad/, having({ meanwhile: { audits: 1, breaches: ["bad"] } })],
    ["a ledger transaction was altered", /txn/, having({ altered_movements: ["txn"] })],
    ["a hot account is overdrawn", /EUR overdrawn/, (run, tx) => {
      return tx`
        update pay.ledger_movements set amount_minor = 1
        where environment_id = ${run.environments.transfers} and currency = 'EUR'
          and credit_account = 'available'`;
    }],
    ["a balance does not add up", /a balance: .* sums to/, (run) => {
      const { balances } = JSON.parse(responseTo(run, "balance", 200).body);
      const more = { ...balances[0], amount_minor: 1, debits_minor: 0, credits_minor: 1 };
      change(responseTo(run, "balance", 200), { balances: [...balances, more] });
    }],
    ["a balance is empty", /a balance: not a balance/, alter("balance", { balances: [] })],
    ["a balance was refused", /a balance: returned 404/, on("balance", 200, refuse)],
  ],
  R5: [
    ["a payment has a wrong status", /unlike the model/, (run, tx) => {
      return tx`update pay.payments set status = 'completed' where id = ${idOf(run, "cancel")}`;
    }],
    ["a capture was booked twice", /unlike the model/, bookAgain("capture")],
    ["a won dispute was booked twice", /unlike the model/, bookAgain("chargeback_reversal")],
    ["a pending refund is not held", /unlike the model/, (run, tx) => {
      return tx`
        update pay.payments set amount_refunding = 0
        where amount_refunding > 0 and ${isJudged(run, tx)}`;
    }],
    ["a capture shows another amount", /no order/, alter("capture", { amount_captured: 7 })],
    ["a refund shows another status", /no order/, alter("advance_refund", { status: "pending" })],
    ["a refund's payment is open", /no order/, alter("refund", { payment_status: "open" }, 201)],
    ["a charge was accepted after the end of its instrument", /no order/, (run) => {
      const { status, body } = responseTo(run, "use", 201);
      Object.assign(responseTo(run, "use", 409), { status, body });
    }],
    ["charges were refused before the end of their instruments", /no order/, (run) => {
      const { status, body } = responseTo(run, "use", 409);
      const uses = OPERATIONS.filter(({ action }) => action.do === "use");
      for (const { number } of uses) {
        for (const one of responsesOf(run, number)) Object.assign(one, { status, body });
      }
    }],
    ["an instrument is active after its end", /ins_.* is active/, (run, tx) => {
      return tx`
        update pay.instruments set status = 'active', ended_at = null, ended_reason = null
        where id = ${idOf(run, "end")}`;
    }],
    ["a payment is missing", /pay_.* does not exist/, (run, tx) => {
      return tx`delete from pay.payments where id = ${idOf(run, "cancel")}`;
    }],
    ["a story ends early", /a request has no response/, (run) => {
      const { operation } = responseTo(run, "refund", 201);
      run.journal = run.journal.filter((record) => record.operation !== operation);
    }],
    [
      "a list lacks the newest payment",
      /a list: .* is missing/,
      alterList((data) => data.slice(1)),
    ],
    ["a list is in another order", /a list: not newest first/, alterList((data) => data.reverse())],
    ["a list was refused", /a list: returned 404/, on("list", 200, refuse)],
    ["a list of refunds is empty", /no order/, (run) => {
      change(filledListOfRefunds(run), { data: [] });
    }],
    ["a list of refunds repeats one", /no order/, (run) => {
      const list = filledListOfRefunds(run);
      const { data } = JSON.parse(list.body);
      change(list, { data: [...data, data[0]] });
    }],
    ["a reset was refused", /a reset got 404/, on("reset", 200, refuse, "resets")],
    ["a create was refused", /create got 404/, on("create", 201, refuse, "resets")],
  ],
  R6: [
    ["an event has not arrived", /missing: payment/, (run) => {
      const { event_id } = run.arrivals.find(({ path }) => path === "/payments")!;
      run.arrivals = run.arrivals.filter((arrival) => arrival.event_id !== event_id);
    }],
    ["a delivery was forged", /1 forged/, arrived({ is_genuine: false })],
    ["a delivery had another body", /another body/, arrived({ body_hash: "0".repeat(64) })],
    ["a delivery has no event", /is not an event/, arrived({ event_id: "evt_unknown" })],
    ["too many deliveries arrived twice", /duplicates/, (run) => {
      run.arrivals.push(...run.arrivals.slice(0, run.arrivals.length / 10));
    }],
    ["too many deliveries were redelivered", /redeliveries/, (run) => {
      run.drained.redelivered = new Set(run.arrivals.keys().map(String));
    }],
    ["a delivery failed too early", /early/, (run) => run.drained.faults.push("early")],
  ],
  R7: [["two events of a payment are out of order", /./, (run) => {
    const here = run.arrivals.filter(({ path }) => path === "/payments");
    const second = here.find(({ sequence }) => sequence === 2)!;
    const first = here.find(({ subject_id }) => subject_id === second.subject_id)!;
    [first.sequence, second.sequence] = [second.sequence, first.sequence];
  }]],
  R8: [
    ["a signature was old", /signed 30000 ms before/, arrived({ age_ms: 30_000 })],
    ["a signature has a future time", /signed -2001 ms/, arrived({ age_ms: -2_001 })],
    ["headers have different times", /is 1 s off/, arrived({ timestamps_apart_s: 1 })],
  ],
};

Deno.test("auditRun()", (t) =>
  withServedService(async (served) => {
    const { service } = served;
    const run = await tellPlan(served);
    await t.step("finds nothing in a run without faults", async () => {
      const whole = { ...run, endpoints: ENDPOINTS, sql: service.sql };
      for (const { promise, breaches } of await auditRun(whole)) {
        assert.deepEqual(breaches, [], promise);
      }
    });
    for (const [promise, cases] of Object.entries(CASES)) {
      for (const [defect, breach, breakRun] of cases) {
        await t.step(`${promise}: ${defect}`, async () => {
          const verdicts = await judgeBroken(service.sql, structuredClone(run), breakRun);
          const { breaches } = verdicts.find((one) => one.promise === promise)!;
          assert.ok(breaches.some((text) => breach.test(text)), breaches.join("\n"));
        });
      }
    }
  }));

function newId(prefix: Parameters<ReturnType<typeof idGenerator>>[0]): string {
  return idGenerator(Date.now())(prefix);
}

/** Inserts copies of rows with other values. */
async function copy(
  tx: postgres.TransactionSql,
  table: string,
  values: Record<string, string | number>,
  which: postgres.PendingQuery<postgres.Row[]>,
): Promise<void> {
  const copied = await tx`
    insert into pay.${tx(table)} select (json_populate_record(t, ${tx.json(values)}::json)).*
    from pay.${tx(table)} t where ${which} returning 1`;
  assert.ok(copied.length > 0, `nothing in ${table} is copied`);
}

/** Copies a movement of a kind, as if the service had booked it twice. */
function bookAgain(kind: string): Break {
  return (run, tx) => {
    const last = tx`select max(transaction_id) from pay.ledger_movements
      where kind = ${kind} and ${isJudged(run, tx)}`;
    const id = newId("txn_");
    return copy(tx, "ledger_movements", { transaction_id: id }, tx`transaction_id = (${last})`);
  };
}

/** Whether a row is not of the sandbox that is reset. */
function isJudged({ environments }: Evidence, tx: postgres.TransactionSql) {
  return tx`environment_id not in (
    select id from pay.environments where public_id = ${environments.resets})`;
}

/** The evidence of a run without its database. */
interface Told extends Omit<Evidence, "sql" | "endpoints"> {
  /** The replays, compared with a first response that had another body. */
  differing: Replays;
}

/** Plays the plan, one story after the other. */
async function tellPlan({ service, base_url }: ServedService): Promise<Told> {
  const [environments, keys, secrets] = [{}, {}, {}] as Record<Sandbox, string>[];
  const hooks = openRecorder();
  for (const name of SANDBOXES) {
    const { environment_id, key } = await makeEnvironment(service.sql, name, "chaos", false);
    const { secret } = await addEndpoint(service, hooks.url(`/${name}`), {}, { key });
    environments![name] = environment_id;
    keys![name] = key;
    secrets![name] = secret;
  }
  const ends: (() => unknown)[] = [];
  const client = new RepeatingClient({ atEnd: (end) => ends.push(end) }, [{ base_url }]);
  const clients = new PlanClients(PLAN, client, keys!, 1);
  await clients.tell();
  await settle(service);
  const arrivals = await Promise.all(
    hooks.arrivals.map((one) => readArrival(one, secrets![one.path.slice(1) as Sandbox])),
  );
  await hooks.close();
  const first = clients.journal.find((record): record is Received =>
    record.kind === "response" && record.operation === 0 && record.duplicate === 0
  )!;
  const { body } = first;
  first.body += " ";
  const differing = await clients.replay(client);
  first.body = body;
  const replays = await clients.replay(client);
  assert.ok(replays.replayed > 200, `${replays.replayed} replays`);
  for (const end of ends) end();
  return {
    ...{ plan: PLAN, journal: clients.journal, arrivals, environments: environments! },
    ...{ replays, differing },
    meanwhile: { audits: 1, breaches: [] },
    altered_movements: [],
    drained: { redelivered: new Set(), faults: [] },
  };
}

/** The verdicts after the run was broken. The change of the database is rolled back. */
async function judgeBroken(
  sql: postgres.Sql,
  told: Told,
  breakRun: Break,
): Promise<Awaited<ReturnType<typeof auditRun>>> {
  const judged = Promise.withResolvers<Awaited<ReturnType<typeof auditRun>>>();
  const rollback = new Error("rolls back");
  await sql.begin(async (tx) => {
    await tx`set local session_replication_role = 'replica'`;
    const run = { ...told, endpoints: ENDPOINTS, sql: tx as unknown as postgres.Sql };
    await breakRun(run, tx);
    judged.resolve(await auditRun(run));
    throw rollback;
  }).catch((error) => {
    if (error !== rollback) throw error;
  });
  return await judged.promise;
}

function responsesOf({ journal }: Evidence, operation: number): Received[] {
  return journal.filter((record): record is Received =>
    record.kind === "response" && record.operation === operation
  );
}

/**
 * The first response to the last action of a kind that has this status. @param of sandboxes, by
 * default all but the one that is reset
 */
function responseTo(
  run: Evidence,
  kind: Action["do"],
  status: number,
  of: Sandbox | null = null,
): Received {
  const operations = run.plan.stories
    .filter(({ sandbox }) => of === null ? sandbox !== "resets" : sandbox === of)
    .flatMap(({ groups }) => groups.flat())
    .filter(({ action }) => action.do === kind);
  const responses = operations.flatMap(({ number }) => responsesOf(run, number).slice(0, 1))
    .filter((response) => response.status === status);
  assert.ok(responses.length > 0, `no ${kind} got ${status}`);
  return responses.at(-1)!;
}

/** A list of refunds that is not empty. No refund was requested at the same time. */
function filledListOfRefunds({ journal, plan }: Evidence): Received {
  const lists = new Set(
    plan.stories.filter(({ sandbox }) => sandbox !== "resets")
      .flatMap(({ groups }) => groups.filter(({ length }) => length === 1).flat())
      .filter(({ action }) => action.do === "list_refunds").map(({ number }) => number),
  );
  return journal.find((record): record is Received =>
    record.kind === "response" && lists.has(record.operation) && record.body.includes('"re_')
  )!;
}

/** Changes the first response to the last action of a kind that has this status. */
function on(
  kind: Action["do"],
  status: number,
  change: (response: Received) => unknown,
  of: Sandbox | null = null,
): Break {
  return (run) => change(responseTo(run, kind, status, of));
}

/** Changes fields in the body of such a response. */
function alter(kind: Action["do"], fields: object, status = 200): Break {
  return on(kind, status, (response) => change(response, fields));
}

function change(response: Received, fields: object): void {
  response.body = JSON.stringify({ ...JSON.parse(response.body), ...fields });
}

/** Changes a page in the middle of a sandbox's payments. */
function alterList(changeData: (data: unknown[]) => unknown[]): Break {
  return on("list", 200, (response) => {
    const { data, has_more } = JSON.parse(response.body);
    assert.ok(has_more);
    change(response, { data: changeData(data) });
  });
}

/** Changes the response to a request with one field changed. */
function changed(values: Partial<Received>): Break {
  return ({ journal }) => Object.assign(journal.find(({ kind }) => kind === "changed")!, values);
}

/** Changes the record of a delivery of a sandbox that is not reset. */
function arrived(values: Partial<Evidence["arrivals"][number]>): Break {
  return (run) => Object.assign(run.arrivals.find(({ path }) => path === "/payments")!, values);
}

function having(values: Partial<Evidence>): Break {
  return (run) => Object.assign(run, values);
}

/** The id in the response to the last action of a kind. */
function idOf(run: Evidence, kind: Action["do"]): string {
  return JSON.parse(responseTo(run, kind, 200).body).id;
}

/** Replaces a response by that of an unknown id. */
function refuse(response: Received): void {
  Object.assign(response, { status: 404, body: '{"error":{"code":"not_found"}}' });
}

function lose(response: Received): void {
  Object.assign(response, { status: 0, body: "no response in 120000 ms" });
}
