/**
 * Random steps (fast-check commands) on one sandbox in virtual time. The model predicts each
 * answer: concurrent requests with and without idempotency keys, hours and months that pass,
 * purges, resets. The seed is in the name; `SEED` sets it. fast-check shrinks a failure and prints
 * its steps, which become a case in shrunk_cases.ts.
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import { INSTRUMENTS, OUTCOMES } from "../../torture/instruments.ts";
import { STATUSES } from "../../torture/payment_model.ts";
import { requestOf } from "../../torture/request.ts";
import { idMint } from "../../shared/core/ids.ts";
import { serviceCase } from "../support/service/service_case.ts";
import type { TestKey, TestService } from "../support/service/service.ts";
import { type ChangeStep, ServiceModel, type Step } from "../support/model/service_model.ts";
import { SHRUNK_CASES } from "../support/model/shrunk_cases.ts";

const SEED = Number(Deno.env.get("SEED") ?? Date.now() % 2 ** 31);
const RUNS = Number(Deno.env.get("RUNS") ?? 60);
const MAX_STEPS = 40;
const BEGIN_MS = Date.parse("2026-03-01T12:00:00.000Z");
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
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
    outcome: fc.option(fc.constantFrom(...Object.keys(OUTCOMES))),
    amount: Amount,
    is_sandbox: fc.boolean(),
  }),
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
  StepOf.clock.map(command),
  StepOf.look.map(command),
  StepOf.purge.map(command),
  StepOf.reset.map(command),
], { maxCommands: MAX_STEPS });

serviceCase("the service answers as the model", async (t, service) => {
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
});

let serial = 0;

/** Creates a sandbox for a run. */
async function begin(service: TestService): Promise<{ model: ServiceModel; real: Real }> {
  await service.setClock(BEGIN_MS);
  const environment_id = idMint(Date.now())("env_");
  await service.sql`
    select pay.create_environment(${environment_id}, ${`model ${serial++}`}, false, 'model')`;
  const key = await service.issueKey(environment_id);
  return { model: new ServiceModel(BEGIN_MS), real: { service, key } };
}

async function play(step: Step, model: ServiceModel, real: Real): Promise<void> {
  const { service, key } = real;
  switch (step.do) {
    case "send":
      return await send(step.change, step.key, model, real);
    case "pass":
      model.now_ms += step.ms;
      return;
    case "clock":
      return await advanceClock(step, model, real);
    case "purge":
      while (await service.deps.webhook_store.purge(model.now_ms) > 0);
      return model.purge();
    case "reset": {
      const answer = await service.call("POST", "/api-v1-sandbox/reset", { key: key.text });
      assert.equal(answer.status, 200, answer.text);
      assert.equal(answer.body.deleted.payments, model.payments.length);
      assert.equal(answer.body.deleted.transfers, model.transfers.length);
      return model.reset();
    }
    case "look":
      return await look(model, real);
  }
}

/** Advances the clock, in as many requests as it takes. */
async function advanceClock(
  { advance_s, mode }: Extract<Step, { do: "clock" }>,
  model: ServiceModel,
  { service, key }: Real,
): Promise<void> {
  const ended = model.advance(advance_s, mode);
  let body: Record<string, unknown> = { advance: advance_s, mode };
  for (;;) {
    const { status, body: clock, text } = await service.call("POST", "/api-v1-sandbox/clock", {
      key: key.text,
      body,
    });
    assert.equal(status, 200, text);
    if (!clock.has_more) {
      assert.deepEqual([clock.mode, Date.parse(clock.now)], [mode, model.time_ms], text);
      assert.equal(clock.did.expired_payments, ended, text);
      return;
    }
    body = { to: clock.target };
  }
}

/** Prefixes of the ids that do not exist, except for payments. */
const NOBODY: Partial<Record<ChangeStep["do"], string>> = {
  move_transfer: "tr_",
  advance_refund: "re_",
};

async function send(
  change: ChangeStep,
  key: number | null,
  model: ServiceModel,
  { service, key: api_key }: Real,
): Promise<void> {
  const subject = model.subjectOf(change);
  const nobody = NOBODY[change.do] ?? "pay_";
  const request = requestOf(actionOf(change), subject?.id ?? nobody + "0".repeat(26));
  const judgement = model.judge(change, key);
  const answer = await service.call(request.method, request.path, {
    key: api_key.text,
    body: request.body,
    ...(key !== null && { idempotency_key: `key-${key}` }),
  });
  const shown = `${JSON.stringify(change)}: ${answer.text}`;
  assert.equal(answer.status, judgement.http, shown);
  const is_replay = answer.headers.get("Idempotent-Replayed") === "true";
  assert.equal(is_replay, judgement.replays !== null, shown);
  if (judgement.replays !== null) return assert.equal(answer.text, judgement.replays);
  assert.equal(answer.body.error?.code ?? null, judgement.code, shown);
  const resource = answer.body.error?.payment ?? answer.body;
  const { standing } = judgement;
  if (standing !== null && resource.sequence !== undefined) {
    assert.equal(resource.status, standing.status, shown);
    assert.equal(resource.sequence, standing.sequence, shown);
  }
  judgement.happen({ id: resource.id, text: answer.text });
}

/** A step as an action of the torture plan. */
function actionOf(change: ChangeStep): Parameters<typeof requestOf>[0] {
  switch (change.do) {
    case "create":
    case "transfer":
      return { ...change, currency: "EUR" };
    case "move":
      return change.move;
    case "advance_refund":
      return { do: "advance_refund", which: 0, to: change.to };
    case "move_transfer":
      return change.move.do === "cancel"
        ? { do: "cancel_transfer" }
        : { do: "advance_transfer", to: change.move.to };
  }
}

/** Asserts that all readable data equals the model. */
async function look(model: ServiceModel, { service, key }: Real): Promise<void> {
  const get = async (path: string) => {
    const answer = await service.call("GET", `/api-v1-payments/v1/${path}`, { key: key.text });
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  };
  const newestFirst = <T extends { id: string }>(items: T[]) => items.toReversed();
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
  for (const { id, events } of model.payments) {
    const list = await get(`events?payment_id=${id}&limit=100`);
    const types = list.data.map(({ type }: { type: string }) => type).toReversed();
    assert.deepEqual(types, events.map(({ type }) => type));
  }
  const { balances } = await get("balance");
  const euro = balances.find(({ currency, account }: Record<string, string>) =>
    currency === "EUR" && account === "available"
  );
  assert.equal(euro?.amount_minor ?? 0, model.available);
}
