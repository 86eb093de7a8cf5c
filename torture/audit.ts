/**
 * The audit of a run: what the clients and the receiver have on disk against what the database holds.
 * Judges by the model, by the oracles of the database and by counting; shares no rule with the
 * product. Each check lists what breaks its promise.
 */

import type postgres from "postgres";
import { checkBooks } from "../scripts/check_books.ts";
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
import {
  type Action,
  isRead,
  type Operation,
  type Plan,
  type Sandbox,
  type Story,
} from "./plan.ts";
import type { Arrival } from "./receiver_process.ts";

/** What is known at the end of a run. */
export interface Evidence {
  plan: Plan;
  sql: postgres.Sql;
  answers: Answer[];
  arrivals: Arrival[];
  environments: Record<Sandbox, string>;
  /** Endpoints by the path of their address. */
  endpoints: Record<string, { sandbox: Sandbox; takes: (type: string) => boolean }>;
  /** Faults of the replays at the end, and how many there were. */
  replays: { replayed: number; faults: string[] };
  /** What was found while the run went on. */
  meanwhile: { audits: number; findings: string[] };
  /** Ledger entries that were deleted or altered since the middle of the run. */
  altered_entries: string[];
}

/** What one promise came to. */
export interface Verdict {
  promise: string;
  /** Figures, for the report. */
  says: string;
  findings: string[];
}

/** An event as the database has it. */
interface EventFact {
  environment_id: string;
  id: string;
  type: string;
  subject_id: string;
  sequence: number;
  key: string | null;
}

/** Longest age of a signature when it arrives (promise R8). */
const SIGNATURE_AGE_MS = 30_000;
/** Share of deliveries that may arrive more than once (promise R6). */
const DUPLICATES_LIMIT = 0.02;

/** Judges a run. */
export async function auditRun(evidence: Evidence): Promise<Verdict[]> {
  const events = await evidence.sql<EventFact[]>`
    select environment_id, id, type, subject_id, sequence,
      body::json #>> '{request,idempotency_key}' as key
    from pay.events where sequence is not null`;
  const books = await checkBooks(evidence.sql);
  const broken = (promise: string) =>
    books.filter((verdict) => verdict.findings > 0 && ofPromise(verdict.promise).includes(promise))
      .flatMap(({ oracle, examples }) => examples.map((example) => `${oracle}: ${example}`));
  const verdicts = [
    auditEffects(evidence, events),
    auditTwins(evidence, events),
    auditChanged(evidence),
    await auditLedger(evidence),
    await auditStories(evidence),
    ...auditDeliveries(evidence, events),
  ];
  for (const verdict of verdicts) verdict.findings.push(...broken(verdict.promise));
  return verdicts;
}

/** `R1, R9: …` → R1, R9 */
function ofPromise(text: string): string[] {
  return text.split(":")[0]!.split(", ");
}

/** Operations whose answers are judged: those of a sandbox that is never reset. */
function judged({ stories }: Plan): { story: Story; operation: Operation }[] {
  return stories.filter(({ sandbox }) => sandbox !== "resets")
    .flatMap((story) => story.groups.flat().map((operation) => ({ story, operation })));
}

function firstAnswers({ answers }: Evidence): Map<number, Answer> {
  const first = new Map<number, Answer>();
  for (const answer of answers) {
    if (answer.kind === "answer" && !first.has(answer.operation)) {
      first.set(answer.operation, answer);
    }
  }
  return first;
}

function keyOf(plan: Plan, operation: number): string {
  return `torture-${plan.seed}-${operation}`;
}

/** R1: what was acknowledged is there, what was refused has left nothing, everything was answered. */
function auditEffects(evidence: Evidence, events: EventFact[]): Verdict {
  const { plan } = evidence;
  const findings: string[] = [];
  const first = firstAnswers(evidence);
  const keys = new Set(events.map(({ environment_id, key }) => `${environment_id} ${key}`));
  let acknowledged = 0;
  for (const { story, operation } of judged(plan)) {
    const { number, action } = operation;
    const answer = first.get(number);
    // A story ends early when its transfer finds no money.
    if (answer === undefined) continue;
    if (answer.status === 0) findings.push(`operation ${number}: ${answer.body}`);
    if (isRead(action) || answer.status === 0) continue;
    const has_effect = keys.has(`${evidence.environments[story.sandbox]} ${keyOf(plan, number)}`);
    const promises = hasEffect(action, answer);
    if (promises !== false) acknowledged++;
    if (promises === true && !has_effect) findings.push(`operation ${number} is lost`);
    if (promises === false && has_effect) {
      findings.push(`operation ${number} was answered ${answer.status} and happened all the same`);
    }
  }
  return {
    promise: "R1",
    says: `${acknowledged} changes acknowledged, ${first.size} operations answered`,
    findings,
  };
}

/** Whether an answer says that something has changed; null: it says not (an advance in place). */
function hasEffect(action: Action, { status, body }: Answer): boolean | null {
  if (status === 402) return action.do !== "transfer";
  if (status >= 400) return false;
  // An advance to where the payment stands is 200 and changes nothing; the stories tell them apart.
  if (action.do === "advance" || action.do === "advance_transfer") {
    return JSON.parse(body).status === action.to ? null : true;
  }
  return true;
}

/** R2: one effect per key, and one answer. */
function auditTwins(evidence: Evidence, events: EventFact[]): Verdict {
  const findings: string[] = [];
  const made = new Map<string, Set<string>>();
  for (const { environment_id, key, type, subject_id, sequence } of events) {
    if (key === null || environment_id === evidence.environments.resets) continue;
    const makes = type.endsWith(".created") ? subject_id : `${subject_id} ${sequence}`;
    if (!type.endsWith(".created") && type !== "refund.completed") continue;
    // A forced refund is made with its payment.
    const name = `${environment_id} ${key} ${type}`;
    made.set(name, (made.get(name) ?? new Set()).add(makes));
  }
  for (const [name, things] of made) {
    if (things.size > 1) findings.push(`${name}: ${things.size} of them`);
  }
  const told = new Map<number, Answer[]>();
  for (const answer of evidence.answers) {
    if (answer.kind !== "answer") continue;
    told.set(answer.operation, [...told.get(answer.operation) ?? [], answer]);
  }
  let twins = 0;
  let replays = 0;
  for (const { operation } of judged(evidence.plan)) {
    const answers = told.get(operation.number) ?? [];
    if (isRead(operation.action)) continue;
    twins += answers.length;
    replays += answers.filter(({ is_replay }) => is_replay).length;
    const lasting = answers.filter(({ status }) =>
      status < 300 || status === 402 || status === 409
    );
    if (new Set(lasting.map(({ status, body }) => `${status} ${body}`)).size > 1) {
      findings.push(`operation ${operation.number}: twins were answered differently`);
    }
    const firsts = lasting.filter(({ is_replay }) => !is_replay);
    if (firsts.length > 1) findings.push(`operation ${operation.number}: ${firsts.length} firsts`);
    const is_mixed = lasting.some(({ status }) => status < 300) && lasting.length < answers.length;
    if (is_mixed) findings.push(`operation ${operation.number}: done and refused`);
  }
  findings.push(...evidence.replays.faults);
  return {
    promise: "R2",
    says: `${twins} answers to twins, ${replays} of them replays; ` +
      `${evidence.replays.replayed} keys replayed byte for byte at the end`,
    findings,
  };
}

/** R3: another body under a used key is 409 and nothing else. */
function auditChanged({ answers }: Evidence): Verdict {
  const changed = answers.filter(({ kind, status }) => kind === "changed" && status !== 0);
  const findings = changed
    .filter(({ status, body }) => status !== 409 || !body.includes('"idempotency_conflict"'))
    .map(({ operation, status }) => `operation ${operation}, one field changed: ${status}`);
  return { promise: "R3", says: `${changed.length} requests with one field changed`, findings };
}

/** R4, besides the oracles: append-only, and no hot balance below zero, meanwhile and at the end. */
async function auditLedger(evidence: Evidence): Promise<Verdict> {
  const overdrawn = await overdrawnBalances(evidence.sql, evidence.environments.transfers);
  const [row] = await evidence.sql<{ transactions: string; transfers: string }[]>`
    select (select count(*) from pay.ledger_transactions) as transactions,
      (select count(*) from pay.transfers) as transfers`;
  return {
    promise: "R4",
    says: `${row!.transactions} ledger transactions, ${row!.transfers} transfers, ` +
      `audited ${evidence.meanwhile.audits} times meanwhile`,
    findings: [...overdrawn, ...evidence.meanwhile.findings, ...evidence.altered_entries],
  };
}

/** Balances that transfers alone draw on, and that have gone below zero. */
export async function overdrawnBalances(
  sql: postgres.Sql,
  environment_id: string,
): Promise<string[]> {
  const rows = await sql`
    select currency, sum(case direction when 'credit' then amount_minor else -amount_minor end) as left
    from pay.ledger_entries where environment_id = ${environment_id} and account = 'available'
    group by currency
    having sum(case direction when 'credit' then amount_minor else -amount_minor end) < 0`;
  return rows.map(({ currency, left }) => `${currency} overdrawn: ${left}`);
}

/** R5, besides the oracles: some legal order of the requests explains every answer and the end. */
async function auditStories(evidence: Evidence): Promise<Verdict> {
  const { plan, sql } = evidence;
  const rows = await sql<{ id: string; status: string; sequence: number; refunded: string }[]>`
    select id, status, sequence, amount_refunded::text as refunded from pay.payments
    union all
    select id, status, sequence, '0' from pay.transfers`;
  const stored = new Map(rows.map((row) => [row.id, row]));
  const first = firstAnswers(evidence);
  const findings: string[] = [];
  let explained = 0;
  for (const story of plan.stories) {
    if (story.sandbox === "resets") continue;
    const answers = story.groups.map((group) => group.map(({ number }) => first.get(number)));
    if (answers.flat().some((answer) => answer?.status === 0)) continue;
    const fault = explain(story, answers, stored);
    if (fault === null) explained++;
    else findings.push(`story ${story.number}: ${fault}`);
  }
  return {
    promise: "R5",
    says: `${explained} payments and transfers explained by the model`,
    findings,
  };
}

type Standings = { status: string; sequence: number; refunded?: number };

/** Why a story cannot have gone this way; null when it can. */
function explain(
  { groups }: Story,
  answers: (Answer | undefined)[][],
  stored: Map<string, { status: string; sequence: number; refunded: string }>,
): string | null {
  const made = answers[0]![0];
  if (made === undefined) return "was never told";
  const [{ action }] = groups[0]! as [Operation];
  if (action.do === "transfer" && made.status === 402) return null;
  const begun = firstStanding(action);
  if (!isAnsweredAs(begun, made)) return `${action.do} was answered ${made.status}`;
  const body = JSON.parse(made.body);
  const id = body.error?.payment?.id ?? body.id;
  let standings: Standings[] = [begun.next];
  for (const [i, group] of groups.entries()) {
    if (i === 0) continue;
    const moves = group.flatMap(({ action }, n) =>
      action.do !== "get" && isRead(action) ? [] : [{ action, answer: answers[i]![n]! }]
    );
    standings = standings.flatMap((standing) => outcomes(standing, moves));
    if (standings.length === 0) {
      const said = moves.map(({ action, answer }) => `${JSON.stringify(action)} ${answer?.status}`);
      return `no order explains ${said.join(", ")}`;
    }
  }
  const row = stored.get(id);
  if (row === undefined) return `${id} is not there`;
  const is_there = standings.some(({ status, sequence, refunded = 0 }) =>
    row.status === status && row.sequence === sequence && Number(row.refunded) === refunded
  );
  return is_there ? null : `${id} stands at ${row.status} ${row.sequence}, not where it must`;
}

function firstStanding(action: Action): Expected<Standings> {
  if (action.do === "create") {
    const { instrument, outcome, amount, is_sandbox } = action;
    return expectCreate(instrument, outcome, amount, is_sandbox);
  }
  if (action.do === "transfer") {
    const { destination, currency, is_manual, amount } = action;
    // The test IBAN that is returned is for euro alone; wallets have one too.
    const can_return = ["EUR", "USDC", "USDT"].includes(currency);
    return expectTransfer(can_return ? destination : "approved", is_manual, amount);
  }
  throw new Error(`a story cannot begin with ${action.do}`);
}

/** How things can stand after moves that were sent at once, given their answers. */
function outcomes(
  standing: Standings,
  moves: { action: Action; answer: Answer }[],
): Standings[] {
  if (moves.length === 0) return [standing];
  return moves.flatMap(({ action, answer }, i) => {
    const expected = after(standing, action);
    if (!isAnsweredAs(expected, answer)) return [];
    return outcomes(expected.next, moves.filter((_, n) => n !== i));
  });
}

function after(standing: Standings, action: Action): Expected<Standings> {
  switch (action.do) {
    case "get":
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
  throw new Error(`${action.do} is no move`);
}

/** Whether an answer is what the model expects, as far as the answer shows it. */
function isAnsweredAs(expected: Expected<Standings>, { status, body }: Answer): boolean {
  const told = JSON.parse(body);
  if (status !== expected.http || (told.error?.code ?? null) !== expected.code) return false;
  const shown = told.error?.payment ?? told;
  if (shown.object === "refund") return shown.payment_status === expected.next.status;
  return shown.sequence === undefined ||
    (shown.sequence === expected.next.sequence && shown.status === expected.next.status);
}

/** R6 to R8: everything arrives, in order, freshly signed. */
function auditDeliveries(evidence: Evidence, events: EventFact[]): Verdict[] {
  const { arrivals, endpoints, environments } = evidence;
  const taken = new Map<string, number>();
  const [disordered, stale]: [string[], string[]] = [[], []];
  const last = new Map<string, number>();
  let [oldest, newest, forged] = [0, 0, 0];
  for (const arrival of arrivals) {
    const { path, event_id, subject_id, sequence, age_ms } = arrival;
    if (!arrival.is_genuine) forged++;
    oldest = Math.max(oldest, age_ms);
    newest = Math.min(newest, age_ms);
    if (age_ms >= SIGNATURE_AGE_MS) stale.push(`${event_id} at ${path}: ${age_ms} ms`);
    if (!arrival.is_taken) continue;
    const name = `${path} ${event_id}`;
    taken.set(name, (taken.get(name) ?? 0) + 1);
    if (taken.get(name)! > 1) continue;
    const payment = `${path} ${subject_id}`;
    if (sequence <= (last.get(payment) ?? 0)) disordered.push(`${name}: ${sequence}`);
    last.set(payment, sequence);
  }
  const missing: string[] = [];
  let due = 0;
  for (const [path, { sandbox, takes }] of Object.entries(endpoints)) {
    for (const { environment_id, id, type } of events) {
      if (environment_id !== environments[sandbox] || !takes(type)) continue;
      due++;
      if (!taken.delete(`${path} ${id}`)) missing.push(`${type} ${id} at ${path}`);
    }
  }
  const duplicates = arrivals.filter(({ is_taken }) => is_taken).length - due + missing.length;
  const strangers = [...taken.keys()].map((name) => `${name} is no event`);
  const refused = arrivals.filter(({ is_taken }) => !is_taken).length;
  const too_many = duplicates > DUPLICATES_LIMIT * due ? [`${duplicates} duplicates`] : [];
  return [
    {
      promise: "R6",
      says: `${due} deliveries due, ${missing.length} missing, ${forged} forged, ` +
        `${duplicates} duplicates, ${refused} refused by the receiver`,
      findings: [
        ...missing.map((name) => `missing: ${name}`),
        ...strangers,
        ...too_many,
        ...(forged > 0 ? [`${forged} forged`] : []),
      ],
    },
    { promise: "R7", says: `${last.size} payments at endpoints, in order`, findings: disordered },
    { promise: "R8", says: `signatures at most ${oldest} ms old on arrival`, findings: stale },
  ];
}
