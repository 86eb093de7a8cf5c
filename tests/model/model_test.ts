/**
 * Random steps (fast-check commands) on one sandbox in virtual time. The model predicts each
 * response: concurrent requests with and without idempotency keys, hours and months that pass,
 * purges, resets. The seed is in the name; `SEED` sets it. fast-check shrinks a failure and prints
 * its steps, which become a case in shrunk_cases.ts.
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import { INSTRUMENTS, OUTCOMES } from "../support/model/instruments.ts";
import type { DisputeMove } from "../support/model/payment_model.ts";
import { STATUSES } from "../support/model/statuses.ts";
import { requestOf } from "../chaos/worlds/sandbox/request.ts";
import { checkBooks } from "../../apps/operator/check_books.ts";
import { idGenerator } from "../../shared/core/ids.ts";
import { serviceCase } from "../support/service/service_case.ts";
import type { TestKey, TestService } from "../support/service/service.ts";
import type { ChangeStep, Step } from "../support/model/model_steps.ts";
import { ServiceModel } from "../support/model/service_model.ts";
import { SHRUNK_CASES } from "../support/model/shrunk_cases.ts";

const SEED = Number(Deno.env.get("SEED") ?? Date.now() % 2 ** 31);
const RUNS = Number(Deno.env.get("RUNS") ?? 60);
const MAX_STEPS = 40;
const BEGIN_MS = Date.parse("2026-03-01T12:00:00.000Z");
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Faults that a request can ask for with its header. Nobody waits for the others. */
const REQUEST_FAULTS = [
  "rate_limited",
  "service_unavailable",
  "server_error_before",
  "server_error_after",
];
/** The operations whose requests have declared faults. */
const FAULTY_PATHS = [
  "/api-v1-payments/v1/payments",
  "/api-v1-payments/v1/payments/{id}/capture",
  "/api-v1-payments/v1/payments/{id}/refund",
  "/api-v1-payments/v1/transfers",
  "/api-v1-sandbox/payments",
];
/** Instruments that accept euro. */
const EURO = Object.keys(INSTRUMENTS).filter((name) => INSTRUMENTS[name]!.kind !== "stablecoin");

/** The sandbox of a run. */
interface Real {
  service: TestService;
  key: TestKey;
}

const Amount = fc.integer({ min: 1, max: 20 });
/**
 * Mostly the newest payment, so that moves follow each other; sometimes one that does not exist.
 */
const Target = fc.integer({ min: 0, max: 3 });
const Change = fc.oneof(
  fc.record({
    do: fc.constant("create"),
    instrument: fc.constantFrom(...EURO),
    outcome: fc.option(fc.constantFrom(...Object.keys(OUTCOMES)), { freq: 1 }),
    amount: fc.integer({ min: 0, max: 20 }),
    is_sandbox: fc.boolean(),
    save: fc.option(fc.constantFrom("on_session", "off_session"), { freq: 2 }),
  }),
  fc.record({ do: fc.constant("use"), target: Target, amount: Amount, off_session: fc.boolean() }),
  fc.record({ do: fc.constant("end"), target: Target }),
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("move"),
      target: Target,
      move: fc.oneof(
        fc.constant({ do: "cancel" }),
        fc.record({ do: fc.constant("refund"), amount: fc.option(Amount) }),
        fc.record({ do: fc.constant("capture"), amount: fc.option(Amount) }),
        fc.record({ do: fc.constant("advance"), to: fc.constantFrom(...STATUSES.slice(1)) }),
        fc.record({
          do: fc.constant("authenticate"),
          result: fc.constantFrom("success", "failure"),
        }),
      ),
    }),
  },
  fc.record({
    do: fc.constant("dispute"),
    target: Target,
    move: fc.oneof(
      fc.constant({ do: "accept" }),
      fc.record({
        do: fc.constant("evidence"),
        text: fc.constantFrom("winning", "losing", "other", "saved"),
      }),
    ),
  }),
  fc.record({
    do: fc.constant("advance_refund"),
    target: Target,
    refund: fc.integer({ min: 0, max: 1 }),
    to: fc.constantFrom("completed", "failed"),
  }),
  fc.record({
    do: fc.constant("transfer"),
    amount: Amount,
    destination: fc.constantFrom("approved", "returned"),
    is_manual: fc.boolean(),
  }),
  fc.record({
    do: fc.constant("move_transfer"),
    target: Target,
    move: fc.oneof(
      fc.constant({ do: "cancel" }),
      fc.record({
        do: fc.constant("advance"),
        to: fc.constantFrom("completed", "failed", "cancelled"),
      }),
    ),
  }),
) as fc.Arbitrary<ChangeStep>;
const StepOf = {
  send: fc.record({
    do: fc.constant("send"),
    change: Change,
    key: fc.option(fc.integer({ min: 0, max: 5 })),
    // Rare, so that most faults come from declarations.
    fault: fc.option(fc.constantFrom(...REQUEST_FAULTS), { freq: 1, nil: null }).chain((fault) =>
      fc.integer({ min: 0, max: 9 }).map((n) => n === 0 ? fault : null)
    ),
  }),
  declare: fc.record({
    do: fc.constant("declare"),
    fault: fc.oneof(
      fc.record({
        on: fc.constant("request"),
        fault: fc.constantFrom(...REQUEST_FAULTS),
        times: fc.integer({ min: 1, max: 2 }),
        where: fc.oneof(
          fc.constantFrom(...FAULTY_PATHS).map((path) => ({ method: "POST", path })),
          fc.integer({ min: 0, max: 5 }).map((key) => ({ idempotency_key: `key-${key}` })),
        ),
      }),
      {
        weight: 2,
        arbitrary: fc.record({
          on: fc.constant("provider"),
          fault: fc.constantFrom("timeout", "declined", "failed"),
          times: fc.integer({ min: 1, max: 2 }),
          where: fc.constantFrom<Record<string, string>>(
            {},
            { method_kind: "card" },
            { method_kind: "sepa" },
            { operation: "authorize" },
            { operation: "capture" },
            { operation: "cancel" },
            { operation: "refund" },
            { operation: "transfer" },
          ),
        }),
      },
    ),
  }),
  pass: fc.record({
    do: fc.constant("pass"),
    ms: fc.constantFrom(
      1_000,
      HOUR_MS,
      DAY_MS - 60_000,
      DAY_MS - 1,
      DAY_MS,
      10 * DAY_MS,
      30 * DAY_MS,
    ),
  }),
  clock: fc.record({
    do: fc.constant("clock"),
    advance_s: fc.constantFrom(1, 3_600, 86_399, 86_400, 7 * 86_400, 31 * 86_400),
    mode: fc.constantFrom("real", "frozen"),
    times: fc.constantFrom(1, 1, 2, 3),
  }),
  look: fc.constant({ do: "look" }),
  purge: fc.constant({ do: "purge" }),
  reset: fc.constant({ do: "reset" }),
} as unknown as Record<Step["do"], fc.Arbitrary<Step>>;

/** A step as a command of fast-check. */
class StepCommand implements fc.AsyncCommand<ServiceModel, Real> {
  constructor(readonly step: Step) {}
  check(): boolean {
    return true;
  }
  async run(model: ServiceModel, real: Real): Promise<void> {
    // Two steps never share a millisecond, so lists have one order.
    model.now_ms++;
    await real.service.setClock(model.now_ms);
    await play(this.step, model, real);
  }
  toString(): string {
    return JSON.stringify(this.step);
  }
}

const command = (step: Step) => new StepCommand(step);
/** Sends are more frequent than the other steps. */
const Commands = fc.commands([
  ...Array.from({ length: 8 }, () => StepOf.send.map(command)),
  ...Array.from({ length: 2 }, () => StepOf.pass.map(command)),
  StepOf.declare.map(command),
  StepOf.clock.map(command),
  StepOf.look.map(command),
  StepOf.purge.map(command),
  StepOf.reset.map(command),
], { maxCommands: MAX_STEPS });

serviceCase("the service responds as the model", async (t, service) => {
  for (const [name, steps] of SHRUNK_CASES) {
    await t.step(name, async () => {
      await fc.asyncModelRun(
        () => begin(service),
        [...steps, { do: "look" } as const].map(command),
      );
    });
  }
  await t.step(`random steps, seed ${SEED}`, async () => {
    await fc.assert(
      fc.asyncProperty(Commands, async (commands) => {
        await fc.asyncModelRun(() => begin(service), [...commands, command({ do: "look" })]);
      }),
      { numRuns: RUNS, seed: SEED },
    );
  });
  await t.step("the invariants hold after all steps", async () => {
    // Retention by the clock of a run deletes movements of sandboxes that are new by the real one.
    const broken = (await checkBooks(service.sql)).filter(({ invariant, breaches }) =>
      breaches > 0 && invariant !== "invariant_ledger_totals"
    );
    assert.deepEqual(broken, []);
  });
});

let serial = 0;

/** Creates a sandbox for a run. */
async function begin(service: TestService): Promise<{ model: ServiceModel; real: Real }> {
  await service.setClock(BEGIN_MS);
  const environment_id = idGenerator(Date.now())("env_");
  await service.sql`
    select pay.create_environment(${environment_id}, ${`model ${serial++}`}, false, 'model')`;
  const key = await service.issueKey(environment_id);
  return { model: new ServiceModel(BEGIN_MS), real: { service, key } };
}

async function play(step: Step, model: ServiceModel, real: Real): Promise<void> {
  const { service, key } = real;
  switch (step.do) {
    case "send":
      return await send(step, model, real);
    case "declare": {
      await service.post("/api-v1-sandbox/faults", step.fault, { key: key.text });
      return model.faults.declare(step.fault, model.time_ms);
    }
    case "pass":
      model.now_ms += step.ms;
      return;
    case "clock":
      return await advanceClock(step, model, real);
    case "purge":
      while (await service.deps.webhook_store.purge(model.now_ms) > 0);
      return model.purge();
    case "reset": {
      const { deleted } = await service.post("/api-v1-sandbox/reset", {}, { key: key.text });
      assert.equal(deleted.payments, model.payments.length);
      assert.equal(deleted.transfers, model.transfers.length);
      assert.equal(deleted.instruments, model.instruments.length);
      return model.reset();
    }
    case "look":
      return await look(model, real);
  }
}

/** Advances the clock, in as many requests as it takes, once or several times at once. */
async function advanceClock(
  { advance_s, mode, times = 1 }: Extract<Step, { do: "clock" }>,
  model: ServiceModel,
  { service, key }: Real,
): Promise<void> {
  const send = (body: Record<string, unknown>) =>
    service.post("/api-v1-sandbox/clock", body, { key: key.text });
  const did = Array.from({ length: times }, () => model.advance(advance_s, mode));
  const begun = await Promise.all(did.map(() => send({ advance: advance_s, mode })));
  let clock = times > 1 ? await send({ mode }) : begun[0];
  while (clock.has_more) clock = await send({ to: clock.target });
  assert.deepEqual([clock.mode, Date.parse(clock.now)], [mode, model.time_ms]);
  // Advances at the same time count together, or one after another.
  if (times > 1) return;
  const { expired_payments, disputes_closed } = clock.did;
  assert.deepEqual([{ expired_payments, disputes_closed }], did);
}

/** The further members of an action of the chaos plan. */
const PLANNED = { currency: "EUR", which: 0 };
/** Prefixes of the ids that do not exist, except for payments. */
const NOBODY: Partial<Record<ChangeStep["do"], string>> = {
  move_transfer: "tr_",
  advance_refund: "re_",
  dispute: "dp_",
  use: "ins_",
  end: "ins_",
};

async function send(
  { change, key, fault = null }: Extract<Step, { do: "send" }>,
  model: ServiceModel,
  { service, key: api_key }: Real,
): Promise<void> {
  if (change.do === "dispute") await readDispute(change.target, model, { service, key: api_key });
  if (change.do === "use" || change.do === "end") {
    await readInstruments(model, { service, key: api_key });
  }
  const subject = model.subjectOf(change);
  const nobody = NOBODY[change.do] ?? "pay_";
  const id = subject?.id ?? nobody + "0".repeat(26);
  const request = change.do === "dispute"
    ? disputeRequest(id, change.move)
    : requestOf({ ...PLANNED, ...change }, id);
  const { method, path } = request;
  const judgement = model.judge(change, key, { method, path: path.replace(id, "{id}") }, fault);
  const response = await service.call(method, path, {
    key: api_key.text,
    body: request.body ?? undefined,
    ...(key !== null && { idempotency_key: `key-${key}` }),
    ...(fault !== null && { headers: { "Sandbox-Fault": fault } }),
  });
  const shown = `${JSON.stringify(change)}: ${response.text}`;
  assert.equal(response.status, judgement.http, shown);
  const is_replay = response.headers.get("Idempotent-Replayed") === "true";
  assert.equal(is_replay, judgement.is_replay ?? false, shown);
  assert.equal(response.headers.get("Sandbox-Fault"), judgement.fault ?? null, shown);
  if (is_replay) {
    judgement.happen({ id: "", text: response.text });
    return assert.equal(response.text, judgement.replays ?? response.text);
  }
  assert.equal(response.body.error?.code ?? null, judgement.code, shown);
  const { hidden_http, standing } = judgement;
  if (hidden_http !== undefined) {
    const made = hidden_http < 300 || hidden_http === 402
      ? await newestOf(change, id, { service, key: api_key })
      : "";
    return judgement.happen({ id: made, text: null });
  }
  const resource = response.body.error?.payment ?? response.body;
  if (standing !== null && resource.sequence !== undefined) {
    assert.equal(resource.status, standing.status, shown);
    assert.equal(resource.sequence, standing.sequence, shown);
  }
  judgement.happen({ id: resource.id, text: response.text });
}

/** The id of what a request has made, whose response a fault has hidden. */
async function newestOf(change: ChangeStep, id: string, { service, key }: Real): Promise<string> {
  const is_refund = change.do === "move" && change.move.do === "refund";
  const list = change.do === "transfer"
    ? "transfers"
    : is_refund
    ? `payments/${id}/refunds`
    : "payments";
  const path = `/api-v1-payments/v1/${list}?limit=1`;
  const { body, text } = await service.call("GET", path, { key: key.text });
  assert.ok(body.data, text);
  return body.data[0]?.id ?? "";
}

/** The request of a move of a dispute. */
function disputeRequest(id: string, move: DisputeMove) {
  const path = `/api-v1-payments/v1/disputes/${id}`;
  if (move.do === "accept") return { method: "POST", path: `${path}/accept`, body: {} };
  const text = move.text === "saved" ? "winning_evidence" : `${move.text}_evidence`;
  const body = { text, ...(move.text === "saved" && { submit: false }) };
  return { method: "POST", path: `${path}/evidence`, body };
}

/** Reads the newest dispute of a payment into the model. */
async function readDispute(target: number, model: ServiceModel, { service, key }: Real) {
  const payment = model.payments.at(-1 - target);
  if (!payment) return;
  const path = `/api-v1-payments/v1/disputes?payment_id=${payment.id}&limit=1`;
  const { body } = await service.call("GET", path, { key: key.text });
  const [dispute] = body.data;
  if (dispute) payment.dispute = { id: dispute.id, at_ms: Date.parse(dispute.created_at) };
}

/** Reads the ids of the instruments into the model. */
async function readInstruments(model: ServiceModel, { service, key }: Real) {
  const path = "/api-v1-payments/v1/instruments?limit=100";
  const { body, text } = await service.call("GET", path, { key: key.text });
  assert.equal(body.data.length, model.instruments.length, text);
  for (const [i, { id }] of body.data.toReversed().entries()) model.instruments[i]!.id = id;
  return body.data;
}

/** Asserts that all readable data equals the model. */
async function look(model: ServiceModel, { service, key }: Real): Promise<void> {
  const get = (path: string) => service.get(`/api-v1-payments/v1/${path}`, { key: key.text });
  const newestFirst = <T extends { id: string | null }>(items: T[]) => items.toReversed();
  const payments = await get("payments?limit=100");
  assert.deepEqual(
    payments.data.map((payment: Record<string, unknown>) => [
      payment["id"],
      payment["status"],
      payment["sequence"],
      payment["amount_captured"],
      payment["amount_refunded"],
      payment["amount_refunding"],
      payment["amount_disputed"],
    ]),
    newestFirst(model.payments).map(({ id, standing }) => [
      id,
      standing.status,
      standing.sequence,
      standing.captured,
      standing.refunded,
      standing.refunding,
      standing.disputed,
    ]),
  );
  const transfers = await get("transfers?limit=100");
  assert.deepEqual(
    transfers.data.map(({ id, status, sequence }: Record<string, unknown>) => [
      id,
      status,
      sequence,
    ]),
    newestFirst(model.transfers).map(({ id, standing }) => [
      id,
      standing.status,
      standing.sequence,
    ]),
  );
  for (const { id, events, standing } of model.payments) {
    const disputes = await get(`disputes?payment_id=${id}&limit=100`);
    assert.deepEqual(
      disputes.data.filter(({ status }: { status: string }) => status !== "won")
        .map(({ status, amount_minor }: Record<string, unknown>) => [status, amount_minor]),
      standing.dispute === null ? [] : [[standing.dispute, standing.disputed]],
    );
    const list = await get(`events?payment_id=${id}&limit=100`);
    const types = list.data.map(({ type }: { type: string }) => type).toReversed();
    assert.deepEqual(types, events.map(({ type }) => type));
  }
  const instruments = await readInstruments(model, { service, key });
  assert.deepEqual(
    instruments.map((shown: Record<string, unknown>) => [
      ...[shown["status"], shown["ended_reason"], shown["usage"], shown["is_kept"]],
      ...[shown["sequence"], shown["last_used_at"], shown["ended_at"]],
    ]),
    newestFirst(model.instruments).map((
      { payment: { standing: { saved } }, used_ms, ended_ms },
    ) => [
      ...[saved!.status, saved!.reason, saved!.usage, saved!.is_kept, saved!.sequence],
      ...[used_ms, ended_ms].map((at_ms) => at_ms === null ? null : new Date(at_ms).toISOString()),
    ]),
  );
  for (const { id, ended_ms } of model.instruments) {
    const { data } = await get(`events?instrument_id=${id}&type=instrument.ended`);
    assert.deepEqual(
      data.map(({ created_at }: { created_at: string }) => Date.parse(created_at)),
      ended_ms === null || ended_ms < model.time_ms - 30 * DAY_MS ? [] : [ended_ms],
    );
  }
  const faults = await service.call("GET", "/api-v1-sandbox/faults?limit=100", { key: key.text });
  assert.deepEqual(
    faults.body.data.map(({ left }: { left: number }) => left),
    model.faults.left(),
    faults.text,
  );
  const { balances } = await get("balance");
  const euro = balances.find(({ currency, account }: Record<string, string>) =>
    currency === "EUR" && account === "available"
  );
  assert.equal(euro?.amount_minor ?? 0, model.available);
}
