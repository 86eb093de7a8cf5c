/**
 * R5 without faults: moves of one payment, released together over two servers. Refunds give back what
 * there is and no more; of cancels, advances and refunds some legal order explains all answers and how
 * the payment stands (story_audit.ts).
 */

import { checkBooks } from "../scripts/operator/check_books.ts";
import { callApi } from "./api_call.ts";
import type { Verdict } from "./evidence.ts";
import type { Answer } from "./client_process.ts";
import { untilWell } from "./main_run.ts";
import type { Action, Operation } from "./plan.ts";
import { randomOf } from "./random.ts";
import { requestOf } from "./request.ts";
import type { Stage } from "./stage.ts";
import { explain, standingsOf } from "./story_audit.ts";

/** What is asked for. */
interface RacesOptions {
  seed: number;
  /** Payments that refunds race on. */
  payments: number;
  /** Payments that moves race on. */
  rounds: number;
}

const REFUNDS = 50;
const AMOUNT = 1_000;
/** Amount of each refund of a payment, and how many of them fit. */
const FITTING: [amount: number, fit: number][] = [[1, 50], [20, 50], [30, 33], [600, 1], [
  1_000,
  1,
]];
const OUTCOMES = ["pending", "success"] as const;
const MOVES: readonly Action[] = [
  { do: "cancel" },
  { do: "refund", amount: null },
  { do: "refund", amount: 400 },
  { do: "advance", to: "completed" },
  { do: "advance", to: "declined" },
  { do: "advance", to: "chargeback" },
];
const MOST_MOVES = 5;
const MOST_TRIES = 20;
/** Payments that are raced on at once. */
const AT_ONCE = 4;

/** Runs it. */
export async function runRaces(
  stage: Stage,
  { seed, payments, rounds }: RacesOptions,
): Promise<Verdict[]> {
  const servers = await Promise.all([stage.startServer(), stage.startServer()]);
  await Promise.all(servers.map(untilWell));
  const { text } = await stage.makeSandbox("races");
  const findings: string[] = [];
  let [sent, lost] = [0, 0];
  const perform = async (action: Action, id: string, at: number) => {
    const { path, body } = requestOf(action, id);
    const { base_url } = servers[at % servers.length]!;
    const key = `race-${sent++}`;
    // Who has lost too often is told to come back.
    for (let tries = 1;; tries++, lost++) {
      const answer = await callApi(base_url, text, path, { body: body ?? {}, key });
      if (answer.status !== 503 || tries === MOST_TRIES) return answer;
    }
  };
  const create = (outcome: string): Action => ({
    do: "create",
    instrument: "card",
    outcome,
    amount: AMOUNT,
    currency: "EUR",
    is_sandbox: true,
  });

  let refunds = 0;
  const raceRefunds = async (round: number) => {
    const [amount, fit] = FITTING[round % FITTING.length]!;
    const { id } = (await perform(create("success"), "none", round)).body;
    const answers = await Promise.all(
      Array.from({ length: REFUNDS }, (_, i) => perform({ do: "refund", amount }, id, i)),
    );
    const made = answers.filter(({ status }) => status === 201).length;
    // Nothing is left to refund, or too little.
    const refusal = fit * amount === AMOUNT ? 409 : 400;
    const refused = answers.filter(({ status }) => status === refusal).length;
    refunds += made;
    if (made !== fit || refused !== REFUNDS - fit) {
      const others = answers.filter(({ status }) => ![201, refusal].includes(status));
      findings.push(
        `${REFUNDS} refunds of ${amount}: ${made} made, ${refused} refused rightly` +
          others.map(({ text }) => `, ${text}`).join(""),
      );
    }
    const [row] = await stage.sql<{ refunded: string }[]>`
      select amount_refunded::text as refunded from pay.payments where id = ${id}`;
    if (row!.refunded !== String(fit * amount)) {
      findings.push(`${row!.refunded} of ${id} were refunded, not ${fit * amount}`);
    }
  };

  const stories: { groups: Operation[][]; answers: Answer[][] }[] = [];
  const raceMoves = async (round: number) => {
    const random = randomOf(seed, "races", round);
    const moves = Array.from(
      { length: random.integer(2, MOST_MOVES) },
      () => random.pick(MOVES),
    );
    const groups = [[create(random.pick(OUTCOMES))], moves];
    const told: Answer[][] = [];
    let id = "none";
    for (const group of groups) {
      const answers = await Promise.all(group.map((action, i) => perform(action, id, round + i)));
      if (told.length === 0) id = answers[0]!.body.id;
      told.push(answers.map(({ status, text: body }) => answerOf(status, body)));
    }
    stories.push({
      groups: groups.map((group) => group.map(operationOf)),
      answers: told,
    });
  };

  await inTurn(payments, raceRefunds);
  await inTurn(rounds, raceMoves);
  const stored = await standingsOf(stage.sql);
  let overtaken = 0;
  for (const { groups, answers } of stories) {
    const fault = explain({ groups }, answers, stored);
    if (fault !== null) findings.push(fault);
    const one_by_one = groups.flat().map((operation) => [operation]);
    const as_sent = explain({ groups: one_by_one }, answers.flat().map((one) => [one]), stored);
    if (as_sent !== null) overtaken++;
  }
  if (overtaken === 0) {
    findings.push("all moves came in the order in which they were sent: no race");
  }
  for (const { findings: found, oracle, examples } of await checkBooks(stage.sql)) {
    if (found > 0) findings.push(`${oracle}: ${examples[0]}`);
  }
  return [{
    promise: "R5",
    says: `${payments} payments, ${REFUNDS} refunds racing on each: ${refunds} of ` +
      `${
        payments * REFUNDS
      } made; ${rounds} races of up to ${MOST_MOVES} moves explained by the model, ` +
      `${overtaken} by another order than they were sent in; ${lost} requests told to come back`,
    findings,
  }];
}

/** Does something so often, a few at once. */
async function inTurn(count: number, work: (i: number) => Promise<void>): Promise<void> {
  let next = 0;
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    while (next < count) await work(next++);
  }));
}

function operationOf(action: Action, number: number): Operation {
  return { number, action, twins: 1, is_changed: false };
}

function answerOf(status: number, body: string): Answer {
  return { kind: "answer", operation: 0, story: 0, twin: 0, status, body, is_replay: false };
}
