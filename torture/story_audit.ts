/**
 * Judges stories by the model (payment_model.ts): some legal order of the simultaneous requests must
 * explain every answer and the final row of the payment or transfer.
 */

import { type Evidence, firstAnswers, type Verdict } from "./evidence.ts";
import type { Answer } from "./client_process.ts";
import {
  expectCreate,
  type Expected,
  expectMove,
  expectTransfer,
  expectTransferMove,
  type Standing,
  type TransferStanding,
} from "./payment_model.ts";
import type { Action, Operation, Story } from "./plan.ts";
import { pageFaults } from "./read_audit.ts";

/** The state of a payment or transfer in the database. */
interface StoredStanding {
  id: string;
  status: string;
  sequence: number;
  /** A whole number as text. */
  refunded: string;
}

/** R5, besides the oracles: the stories and the pages. */
export async function auditStories(evidence: Evidence): Promise<Verdict> {
  const { plan, sql, journal } = evidence;
  const stored = await standingsOf(sql);
  const first = firstAnswers(evidence);
  // A reset can come between twins. The story continues with the payment of the first twin.
  const leading = new Map(
    journal.filter((record): record is Answer => record.kind === "answer" && record.twin === 0)
      .map((answer) => [answer.operation, answer]),
  );
  const findings: string[] = [];
  let explained = 0;
  for (const story of plan.stories) {
    const is_reset = story.sandbox === "resets";
    const by_operation = is_reset ? leading : first;
    const answers = story.groups.map((group) =>
      group.map(({ number }) => by_operation.get(number))
    );
    if (answers.flat().some((answer) => answer?.status === 0)) continue;
    const fault = explain(story, answers, is_reset ? null : stored);
    if (fault === null) explained++;
    else findings.push(`story ${story.number}: ${fault}`);
  }
  return {
    promise: "R5",
    says: `${explained} payments and transfers explained by the model`,
    findings: [...findings, ...pageFaults(evidence)],
  };
}

/** The state of every payment and transfer, by id. */
async function standingsOf(sql: Evidence["sql"]): Promise<Map<string, StoredStanding>> {
  const rows = await sql<StoredStanding[]>`
    select id, status, sequence, amount_refunded::text as refunded from pay.payments
    union all
    select id, status, sequence, '0' from pay.transfers`;
  return new Map(rows.map((row) => [row.id, row]));
}

/** Reads of more than one payment. read_audit.ts judges them. */
const OF_ALL: ReadonlySet<string> = new Set(["list", "balance"]);

type Standings = { status: string; sequence: number; refunded?: number };

/**
 * The reason why no order explains a story; null if an order explains it.
 * @param answers the answers to the operations of each group
 * @param stored null if a reset may delete the payment; later requests then do not find it
 */
function explain(
  { groups }: Pick<Story, "groups">,
  answers: (Answer | undefined)[][],
  stored: ReadonlyMap<string, StoredStanding> | null,
): string | null {
  const made = answers[0]![0];
  if (made === undefined) return "its first request has no answer";
  const [{ action }] = groups[0]! as [Operation];
  if (action.do === "transfer" && made.status === 402) return null;
  if (action.do === "reset") {
    return made.status === 200 ? null : `a reset was answered ${made.status}`;
  }
  const begun = firstStanding(action);
  if (!isAnsweredAs(begun, made)) return `${action.do} was answered ${made.status}`;
  const body = JSON.parse(made.body);
  const id = body.error?.payment?.id ?? body.id;
  let standings: Standings[] = [begun.next];
  let is_gone = false;
  for (const [i, group] of groups.entries()) {
    if (i === 0) continue;
    if (answers[i]!.includes(undefined)) return "a request has no answer";
    const moves = group.map(({ action }, n) => ({ action, answer: answers[i]![n]! }))
      .filter(({ action }) => !OF_ALL.has(action.do));
    const found = stored === null ? moves.filter(({ answer }) => answer.status !== 404) : moves;
    if (is_gone && found.length > 0) return `${id} was found after it was not found`;
    is_gone ||= found.length < moves.length;
    standings = standings.flatMap((standing) => outcomes(standing, found));
    if (standings.length === 0) {
      const said = moves.map(({ action, answer }) => `${JSON.stringify(action)} ${answer.status}`);
      return `no order explains ${said.join(", ")}`;
    }
  }
  if (stored === null) return null;
  const row = stored.get(id);
  if (row === undefined) return `${id} does not exist`;
  const is_there = standings.some(({ status, sequence, refunded = 0 }) =>
    row.status === status && row.sequence === sequence && Number(row.refunded) === refunded
  );
  return is_there ? null : `${id} is ${row.status} with sequence ${row.sequence}, unlike the model`;
}

function firstStanding(action: Action): Expected<Standings> {
  if (action.do === "create") {
    const { instrument, outcome, amount, is_sandbox } = action;
    return expectCreate(instrument, outcome, amount, is_sandbox);
  }
  if (action.do === "transfer") {
    const { destination, currency, is_manual, amount } = action;
    // The test IBAN that returns transfers is for EUR only. There is a test wallet as well.
    const can_return = ["EUR", "USDC", "USDT"].includes(currency);
    return expectTransfer(can_return ? destination : "approved", is_manual, amount);
  }
  throw new Error(`a story cannot begin with ${action.do}`);
}

/** The possible states after simultaneous moves with these answers. */
function outcomes(
  standing: Standings,
  moves: { action: Action; answer: Answer }[],
): Standings[] {
  if (moves.length === 0) return [standing];
  return moves.flatMap(({ action, answer }, i) => {
    const expected = after(standing, action);
    if (!isAnsweredAs(expected, answer)) return [];
    if (action.do === "list_refunds" && !listsRefunds(answer, standing)) return [];
    return outcomes(expected.next, moves.filter((_, n) => n !== i));
  });
}

function after(standing: Standings, action: Action): Expected<Standings> {
  switch (action.do) {
    case "get":
    case "list_refunds":
      return { http: 200, code: null, next: standing, events: [] };
    case "cancel":
    case "refund":
    case "advance":
    case "authenticate":
      return expectMove(standing as Standing, action);
    case "cancel_transfer":
      return expectTransferMove(standing as TransferStanding, { do: "cancel" });
    case "advance_transfer":
      return expectTransferMove(standing as TransferStanding, { do: "advance", to: action.to });
  }
  throw new Error(`${action.do} is not a move`);
}

/** Whether an answer agrees with the model, as far as the answer shows it. */
function isAnsweredAs(expected: Expected<Standings>, { status, body }: Answer): boolean {
  const told = JSON.parse(body);
  if (status !== expected.http || (told.error?.code ?? null) !== expected.code) return false;
  const shown = told.error?.payment ?? told;
  if (shown.object === "refund") return shown.payment_status === expected.next.status;
  return shown.sequence === undefined ||
    (shown.sequence === expected.next.sequence && shown.status === expected.next.status);
}

/** Whether a list of refunds adds up to the refunded amount of the payment. */
function listsRefunds({ body }: Answer, { refunded = 0 }: Standings): boolean {
  const { object, data, has_more } = JSON.parse(body);
  if (object !== "list" || !Array.isArray(data)) return false;
  if (new Set(data.map(({ id }) => id)).size < data.length) return false;
  const listed = data.reduce((sum, { amount_minor }) => sum + amount_minor, 0);
  return has_more ? listed < refunded : listed === refunded;
}
