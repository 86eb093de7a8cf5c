/**
 * The audit of a chaos run finds every broken promise. The test plays a small plan on the real
 * service without faults, and the audit finds nothing. Then each case breaks one thing in the
 * journals or in the database, and the audit must name it. A plan has every kind of operation.
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
for (const operation of PLAN.stories.flatMap(({ groups }) => groups.flat())) {
  if (!isRead(operation.action)) operation.duplicates = 2;
}

/** An endpoint for each sandbox, subscribed to every event. */
const ENDPOINTS: Evidence["endpoints"] = Object.fromEntries(
  SANDBOXES.map((sandbox) => [`/${sandbox}`, { sandbox, takes: () => true }]),
);

/** Breaks the run. @param tx a transaction that is rolled back and skips triggers */
type Break = (run: Told & Evidence, tx: postgres.TransactionSql) => unknown;

const CASES: [defect: string, promise: string, breach: RegExp, breakRun: Break][] = [
  ["an acknowledged change is missing", "R1", /is lost/, async (run, tx) => {
    const { operation } = responseTo(run, "cancel", 200);
    await tx`
      delete from pay.events
      where idempotency_key = ${keyOf(PLAN, operation)}`;
  }],
  ["a refused change has happened", "R1", /but its change exists/, (run) => {
    refuse(responseTo(run, "cancel", 200));
  }],
  ["an operation got no response", "R1", /no response/, (run) => {
    dropResponse(responseTo(run, "refund", 201));
  }],
  ["an operation of the sandbox that is reset got no response", "R1", /no response/, (run) => {
    dropResponse(responseTo(run, "create", 201, "resets"));
  }],
  ["duplicates got different responses", "R2", /duplicates got different responses/, (run) => {
    responseTo(run, "create", 201).body += " ";
  }],
  ["two duplicates were the first", "R2", /2 first responses/, (run) => {
    const { operation } = responseTo(run, "create", 201);
    for (const response of responsesOf(run, operation)) response.is_replay = false;
  }],
  ["a duplicate was refused", "R2", /only some duplicates succeeded/, (run) => {
    refuse(responseTo(run, "create", 201));
  }],
  ["two payments were made under one key", "R2", /2 effects/, async (run, tx) => {
    const { operation } = responseTo(run, "create", 201);
    const newId = idGenerator(Date.now());
    await tx`
      insert into pay.events select (json_populate_record(e,
        json_build_object('id', ${newId("evt_")}::text, 'subject_id', ${newId("pay_")}::text))).*
      from pay.events e where type = 'payment.created'
        and idempotency_key = ${keyOf(PLAN, operation)}`;
  }],
  ["a refund has completed twice", "R2", /re_.* refund.completed, refund.completed/, (_, tx) => {
    const newId = idGenerator(Date.now());
    return tx`
      insert into pay.events select (json_populate_record(e,
        json_build_object('id', ${newId("evt_")}::text, 'sequence', sequence + 1000))).*
      from pay.events e
      where id = (select max(id) from pay.events where type = 'refund.completed')`;
  }],
  ["a refund has no beginning", "R2", /re_.* has the events refund.completed$/, (_, tx) => {
    return tx`
      delete from pay.events e using (
        select max(id) as id from pay.refunds where status = 'completed'
      ) r
      where e.type = 'refund.created' and e.object::json ->> 'id' = r.id`;
  }],
  ["a replay differs from the first response", "R2", /operation 0: 201 .* , then 201/, (run) => {
    run.replays = run.differing;
  }],
  ["a changed request was done", "R3", /one field changed: 201/, (run) => {
    changedResponse(run).status = 201;
  }],
  ["a changed request got no response", "R3", /one field changed: no response/, (run) => {
    changedResponse(run).status = 0;
  }],
  ["a changed request was refused for another reason", "R3", /one field changed: 409/, (run) => {
    changedResponse(run).body = '{"error":{"code":"invalid_state"}}';
  }],
  ["no audit ran during the run", "R4", /never audited/, (run) => {
    run.meanwhile.audits = 0;
  }],
  ["an audit during the run has a breach", "R4", /during the run invariant/, (run) => {
    run.meanwhile.breaches.push("during the run invariant_ledger_totals: …");
  }],
  ["a ledger transaction was altered", "R4", /was deleted or changed/, (run) => {
    run.altered_movements.push("ledger transaction txn_… was deleted or changed");
  }],
  ["a hot account is overdrawn", "R4", /EUR overdrawn/, async (run, tx) => {
    await tx`
      update pay.ledger_movements set amount_minor = 1
      where environment_id = ${run.environments.transfers} and currency = 'EUR'
        and credit_account = 'available'`;
  }],
  ["a balance does not add up", "R4", /a balance: .* sums to 1/, (run) => {
    alter(responseTo(run, "balance", 200), ({ balances }) => {
      balances[0].amount_minor++;
      balances[0].credits_minor++;
    });
  }],
  ["a balance is empty", "R4", /a balance: not a balance/, (run) => {
    alter(responseTo(run, "balance", 200), (body) => body.balances = []);
  }],
  ["a balance was refused", "R4", /a balance: returned 404/, (run) => {
    refuse(responseTo(run, "balance", 200));
  }],
  ["a payment has a wrong status", "R5", /unlike the model/, async (run, tx) => {
    const { id } = JSON.parse(responseTo(run, "cancel", 200).body);
    await tx`update pay.payments set status = 'completed' where id = ${id}`;
  }],
  ["a capture was booked twice", "R5", /unlike the model/, (run, tx) => {
    return bookAgain(run, tx, "capture");
  }],
  ["a won dispute was booked twice", "R5", /unlike the model/, (run, tx) => {
    return bookAgain(run, tx, "chargeback_reversal");
  }],
  ["a pending refund is not held", "R5", /unlike the model/, async (run, tx) => {
    const [held] = await tx`
      update pay.payments set amount_refunding = 0
      where amount_refunding > 0 and environment_id not in (
        select id from pay.environments where public_id = ${run.environments.resets}
      )
      returning id`;
    assert.ok(held);
  }],
  ["a capture shows another amount", "R5", /no order explains/, (run) => {
    alter(responseTo(run, "capture", 200), (body) => body.amount_captured++);
  }],
  ["a refund shows another status", "R5", /no order explains/, (run) => {
    alter(responseTo(run, "advance_refund", 200), (body) => body.status = "pending");
  }],
  ["a charge was accepted after the end of its instrument", "R5", /no order explains/, (run) => {
    const { status, body } = responseTo(run, "use", 201);
    Object.assign(responseTo(run, "use", 409), { status, body });
  }],
  ["charges were refused before the end of their instruments", "R5", /no order explains/, (run) => {
    const { status, body } = responseTo(run, "use", 409);
    for (const { groups } of run.plan.stories) {
      for (const { number } of groups.flat().filter(({ action }) => action.do === "use")) {
        for (const one of responsesOf(run, number)) Object.assign(one, { status, body });
      }
    }
  }],
  ["an instrument is active after its end", "R5", /ins_.* is active/, async (run, tx) => {
    const { id } = JSON.parse(responseTo(run, "end", 200).body);
    await tx`
      update pay.instruments set status = 'active', ended_at = null, ended_reason = null
      where id = ${id}`;
  }],
  ["a save without its instrument", "R5", /ins_.* does not exist/, async (run, tx) => {
    const { id } = JSON.parse(responseTo(run, "end", 200).body);
    await tx`delete from pay.instruments where id = ${id}`;
  }],
  ["a save made two instruments", "R2", /2 instruments/, (_, tx) => {
    const id = idGenerator(Date.now())("ins_");
    return tx`
      insert into pay.instruments
      select (json_populate_record(t, json_build_object('id', ${id}::text))).*
      from pay.instruments t where mandate_id is null limit 1`;
  }],
  ["a payment is missing", "R5", /does not exist/, async (run, tx) => {
    const { id } = JSON.parse(responseTo(run, "cancel", 200).body);
    await tx`delete from pay.payments where id = ${id}`;
  }],
  ["a create had the wrong result", "R5", /create got/, (run) => {
    alter(responseTo(run, "create", 201), (body) => body.status = "chargeback");
  }],
  ["no order explains the responses", "R5", /no order explains/, (run) => {
    alter(responseTo(run, "refund", 201), (body) => body.payment_status = "pending");
  }],
  ["a story ends early", "R5", /a request has no response/, (run) => {
    const { operation } = responseTo(run, "refund", 201);
    run.journal = run.journal.filter((record) => record.operation !== operation);
  }],
  ["a list is empty", "R5", /a list: .* is missing/, (run) => {
    alter(lastListOfPayments(run), (body) => {
      Object.assign(body, { data: [], has_more: false, next_cursor: null });
    });
  }],
  ["a list lacks the newest payment", "R5", /a list: .* is missing/, (run) => {
    alter(lastListOfPayments(run), ({ data }) => data.shift());
  }],
  ["a list is in another order", "R5", /a list: not newest first/, (run) => {
    alter(lastListOfPayments(run), ({ data }) => data.reverse());
  }],
  ["a list was refused", "R5", /a list: returned 404/, (run) => {
    refuse(lastListOfPayments(run));
  }],
  ["a list of refunds is empty", "R5", /no order explains/, (run) => {
    alter(filledListOfRefunds(run), (body) => body.data = []);
  }],
  ["a list of refunds repeats one", "R5", /no order explains/, (run) => {
    alter(filledListOfRefunds(run), ({ data }) => data.push(data[0]));
  }],
  ["a reset was refused", "R5", /a reset got 404/, (run) => {
    refuse(responseTo(run, "reset", 200, "resets"));
  }],
  ["a create in the sandbox that is reset was refused", "R5", /create got 404/, (run) => {
    refuse(responseTo(run, "create", 201, "resets"));
  }],
  ["an event has not arrived", "R6", /missing: payment/, (run) => {
    const { event_id } = run.arrivals.find(({ path }) => path === "/payments")!;
    run.arrivals = run.arrivals.filter((arrival) => arrival.event_id !== event_id);
  }],
  ["a delivery was forged", "R6", /1 forged/, (run) => {
    run.arrivals[0]!.is_genuine = false;
  }],
  ["a delivery had another body", "R6", /another body/, (run) => {
    run.arrivals[0]!.body_hash = "0".repeat(64);
  }],
  ["a delivery has no event", "R6", /is not an event/, (run) => {
    run.arrivals.find(({ path }) => path === "/payments")!.event_id = "evt_unknown";
  }],
  ["too many deliveries arrived twice", "R6", /duplicates/, (run) => {
    run.arrivals.push(...run.arrivals.slice(0, run.arrivals.length / 10));
  }],
  ["too many deliveries were redelivered", "R6", /redeliveries/, (run) => {
    run.drained.redelivered = new Set(run.arrivals.keys().map(String));
  }],
  ["a delivery failed after too few attempts", "R6", /failed after 1 attempts/, (run) => {
    run.drained.faults.push("whd_… is failed after 1 attempts");
  }],
  ["two events of a payment are out of order", "R7", /./, (run) => {
    const here = run.arrivals.filter(({ path }) => path === "/payments");
    const second = here.find(({ sequence }) => sequence === 2)!;
    const first = here.find(({ subject_id }) => subject_id === second.subject_id)!;
    [first.sequence, second.sequence] = [second.sequence, first.sequence];
  }],
  ["a signature was old", "R8", /signed 30000 ms before/, (run) => {
    run.arrivals[0]!.age_ms = 30_000;
  }],
  ["a signature has a future time", "R8", /signed -2001 ms before/, (run) => {
    run.arrivals[0]!.age_ms = -2_001;
  }],
  ["two headers have different times", "R8", /Webhook-Timestamp is 1 s off/, (run) => {
    run.arrivals[0]!.timestamps_apart_s = 1;
  }],
];

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
    for (const [defect, promise, breach, breakRun] of CASES) {
      await t.step(`${promise}: ${defect}`, async () => {
        const { breaches } = await judgeBroken(
          service.sql,
          structuredClone(run),
          promise,
          breakRun,
        );
        assert.ok(breaches.some((text) => breach.test(text)), breaches.join("\n"));
      });
    }
  }));

/** Copies a movement of a kind, as if the service had booked it twice. */
async function bookAgain(
  run: Evidence,
  tx: postgres.TransactionSql,
  kind: string,
): Promise<void> {
  const transaction_id = idGenerator(Date.now())("txn_");
  const [copy] = await tx`
    insert into pay.ledger_movements
    select (json_populate_record(m, json_build_object('transaction_id', ${transaction_id}::text))).*
    from pay.ledger_movements m
    where transaction_id = (
      select max(transaction_id) from pay.ledger_movements
      where kind = ${kind} and environment_id not in (
        select id from pay.environments where public_id = ${run.environments.resets}
      )
    )
    returning 1`;
  assert.ok(copy, `no ${kind}`);
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
  const client = new RepeatingClient({ atEnd: (end) => ends.push(end) }, { urls: [base_url] });
  const onFinished = () => {};
  const clients = new PlanClients({ plan: PLAN, client, keys: keys!, clients: 1, onFinished });
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

/** The verdict on a promise after the run was broken. The change of the database is rolled back. */
async function judgeBroken(
  sql: postgres.Sql,
  told: Told,
  promise: string,
  breakRun: Break,
): Promise<{ breaches: string[] }> {
  class Enough extends Error {}
  const verdict = Promise.withResolvers<{ breaches: string[] }>();
  await sql.begin(async (tx) => {
    await tx`set local session_replication_role = 'replica'`;
    const run = { ...told, endpoints: ENDPOINTS, sql: tx as unknown as postgres.Sql };
    await breakRun(run, tx);
    const verdicts = await auditRun(run);
    verdict.resolve(verdicts.find((one) => one.promise === promise)!);
    throw new Enough();
  }).catch((error) => {
    if (!(error instanceof Enough)) throw error;
  });
  return await verdict.promise;
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

function changedResponse({ journal }: Evidence): Received {
  return journal.find((record): record is Received => record.kind === "changed")!;
}

/** A page in the middle of a sandbox's payments. */
function lastListOfPayments(run: Evidence): Received {
  const list = responseTo(run, "list", 200);
  assert.ok(JSON.parse(list.body).has_more);
  return list;
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

/** Replaces a response by that of an unknown id. */
function refuse(response: Received): void {
  response.status = 404;
  response.body = '{"error":{"code":"not_found"}}';
}

function dropResponse(response: Received): void {
  response.status = 0;
  response.body = "no response in 120000 ms";
}

/** Changes the body of a response. */
// deno-lint-ignore no-explicit-any
function alter(response: Received, change: (body: any) => unknown): void {
  const body = JSON.parse(response.body);
  change(body);
  response.body = JSON.stringify(body);
}

/** A plan of the usual size of the main run. */
const LARGE_PLAN = planOf(7, 5_000, 10);
const KINDS = "advance advance_refund advance_transfer authenticate balance cancel " +
  "cancel_transfer capture create end get list list_refunds refund reset transfer use";

Deno.test("planOf() depends only on the seed", () => {
  assert.deepEqual(planOf(7, 5_000, 10), LARGE_PLAN);
  assert.notDeepEqual(planOf(8, 5_000, 10), LARGE_PLAN);
});

Deno.test("planOf() has every kind of operation in every sandbox, with 1 to 16 duplicates", () => {
  const all = LARGE_PLAN.stories.flatMap(({ groups }) => groups.flat());
  assert.deepEqual(new Set(LARGE_PLAN.stories.map(({ sandbox }) => sandbox)), new Set(SANDBOXES));
  assert.equal([...new Set(all.map(({ action }) => action.do))].sort().join(" "), KINDS);
  assert.deepEqual(
    new Set(all.map(({ duplicates }) => duplicates)),
    new Set(Array.from({ length: 16 }, (_, i) => i + 1)),
  );
  const writes = all.filter(({ action }) => !isRead(action));
  const changed = writes.filter(({ is_changed }) => is_changed).length / writes.length;
  assert.ok(changed > 0.07 && changed < 0.13, `${changed}`);
});
