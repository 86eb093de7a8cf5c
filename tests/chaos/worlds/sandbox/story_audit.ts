/**
 * Judges stories by the model (payment_model.ts): some legal order of the simultaneous requests
 * must explain every response and the final row of the payment or transfer. A page must contain
 * every payment that belongs on it and was acknowledged before the request for the page. A balance
 * must add up.
 */

import type { Verdict } from "../../harness/audit.ts";
import { createdIn } from "../../harness/client.ts";
import {
  availableOf,
  expectCreate,
  type Expected,
  expectEnd,
  expectMove,
  expectUse,
  nameNewestRefund,
  type Standing,
} from "../../../support/model/payment_model.ts";
import type { Saved } from "../../../support/model/saved_model.ts";
import {
  expectTransfer,
  expectTransferMove,
  type TransferStanding,
} from "../../../support/model/transfer_model.ts";
import type { Received, Sent } from "./clients.ts";
import { type Evidence, firstResponses, responsesOf } from "./evidence.ts";
import type { Action, Operation, Plan, Sandbox, Story } from "./plan.ts";
import { savedIn } from "./request.ts";

interface StoredStanding {
  id: string;
  status: string;
  sequence: number;
  /** The amounts of a payment, from its row and from the ledger. */
  money: Money | null;
}

/** The amounts of a payment in minor units, as the model and the database must agree on them. */
interface Money {
  refunded: number;
  refunding: number;
  disputed: number;
  captured: number;
  /** The sum of its movements on the available balance. */
  available: number;
}

type Standings = Standing | TransferStanding;

interface Responded {
  action: Action;
  response: Received;
  id: string;
}

/** R5, besides the invariants: the stories and the pages. */
export async function auditStories(evidence: Evidence): Promise<Verdict> {
  const { plan, sql, journal } = evidence;
  const sent = new Map(
    journal.filter((record): record is Sent => record.kind === "send")
      .map(({ operation, id }) => [operation, id]),
  );
  const stored = await standingsOf(sql);
  const first = firstResponses(evidence);
  // A reset can come between duplicates. The story continues with the payment of the first one.
  const leading = new Map(
    responsesOf(evidence, "response").filter(({ duplicate }) => duplicate === 0)
      .map((response) => [response.operation, response]),
  );
  const breaches: string[] = [];
  let explained = 0;
  for (const story of plan.stories) {
    const is_reset = story.sandbox === "resets";
    const responses = story.groups.map((group) =>
      group.map(({ number }) => (is_reset ? leading : first).get(number))
    );
    if (responses.flat().some((response) => response?.status === 0)) continue;
    const fault = explain(story, responses, sent, is_reset ? null : stored);
    if (fault === null) explained++;
    else breaches.push(`story ${story.number}: ${fault}`);
  }
  return {
    promise: "R5",
    says: `${explained} payments and transfers explained by the model`,
    breaches: [...breaches, ...pageFaults(evidence)],
  };
}

async function standingsOf(sql: Evidence["sql"]): Promise<Map<string, StoredStanding>> {
  const rows = await sql<StoredStanding[]>`
    select p.id, p.status, p.sequence, json_build_object(
      'refunded', p.amount_refunded, 'refunding', p.amount_refunding,
      'disputed', p.amount_disputed, 'captured', coalesce(m.captured, 0),
      'available', coalesce(m.available, 0)) as money
    from pay.payments p
    left join (
      select environment_id, subject_id,
        sum(amount_minor) filter (where kind = 'capture') as captured,
        sum(case 'available' when credit_account then amount_minor when debit_account
          then -amount_minor else 0 end) as available
      from pay.ledger_movements group by environment_id, subject_id
    ) m on m.environment_id = p.environment_id and m.subject_id = p.id
    union all
    select id, status, sequence, null from pay.transfers
    union all
    select id, status, sequence, null from pay.instruments`;
  return new Map(rows.map((row) => [row.id, row]));
}

/**
 * The reason why no order explains a story; null if an order explains it.
 * @param responses the responses to the operations of each group
 * @param sent the id in the path of each operation's request
 * @param stored null if a reset may delete the payment; later requests then do not find it
 */
function explain(
  { groups }: Pick<Story, "groups">,
  responses: (Received | undefined)[][],
  sent: ReadonlyMap<number, string>,
  stored: ReadonlyMap<string, StoredStanding> | null,
): string | null {
  const made = responses[0]![0];
  if (made === undefined) return "its first request has no response";
  const [{ action }] = groups[0]! as [Operation];
  if (action.do === "transfer" && made.status === 402) return null;
  if (action.do === "reset") {
    return made.status === 200 ? null : `a reset got ${made.status}`;
  }
  const begun = firstStanding(action);
  if (!isExpected(begun, made)) return `${action.do} got ${made.status}`;
  // The rest of the story was impossible.
  if (begun.http === 400) return null;
  const id = createdIn(made.body)!;
  let standings: Standings[] = [begun.next];
  let is_gone = false;
  for (const [i, group] of groups.entries()) {
    if (i === 0) continue;
    if (responses[i]!.includes(undefined)) return "a request has no response";
    const moves = group.map(({ action, number }, n): Responded => ({
      action,
      response: responses[i]![n]!,
      id: sent.get(number) ?? id,
      // pageFaults() and balanceFaults() judge these.
    })).filter(({ action, response }) =>
      action.do !== "list" && action.do !== "balance" &&
      // A refund that is not found does not show whether its payment exists.
      (stored !== null || action.do !== "advance_refund" || response.status !== 404)
    );
    const found = stored === null ? moves.filter(({ response }) => response.status !== 404) : moves;
    if (is_gone && found.length > 0) return `${id} was found after it was not found`;
    is_gone ||= found.length < moves.length;
    // Before the reset, one that is not found can have happened: its first response was lost.
    const lost = moves.filter((move) => !found.includes(move));
    standings = standings.flatMap((standing) => outcomes(standing, found, lost));
    if (standings.length === 0) {
      const said = moves.map(({ action, response }) =>
        `${JSON.stringify(action)} ${response.status}`
      );
      return `no order explains ${said.join(", ")}`;
    }
  }
  if (stored === null) return null;
  const saved = standings.flatMap((one) => "saved" in one && one.saved ? [one.saved] : []);
  const instrument = saved.length === 0 ? null : savedIn(made.body);
  return compareRow(id, stored.get(id), standings) ??
    (instrument && compareRow(instrument, stored.get(instrument), saved));
}

/** The reason why a row is in none of the possible states; null if it is. */
function compareRow(
  id: string,
  row: StoredStanding | undefined,
  standings: readonly (Standings | Saved)[],
): string | null {
  if (row === undefined) return `${id} does not exist`;
  const is_there = standings.some((standing) =>
    row.status === standing.status && row.sequence === standing.sequence &&
    (!("captured" in standing) || isEqual(row.money, standing))
  );
  return is_there ? null : `${id} is ${row.status} with sequence ${row.sequence} and money ` +
    `${JSON.stringify(row.money)}, unlike the model`;
}

function isEqual(money: Money | null, payment: Standing): boolean {
  const { refunded, refunding, disputed, captured } = payment;
  const expected = { refunded, refunding, disputed, captured, available: availableOf(payment) };
  return money !== null &&
    Object.entries(expected).every(([name, amount]) => money[name as keyof Money] === amount);
}

function firstStanding(action: Action): Expected<Standings> {
  if (action.do === "create") {
    const { instrument, outcome, amount, is_sandbox, save } = action;
    return expectCreate(instrument, outcome, amount, is_sandbox, save);
  }
  if (action.do === "transfer") {
    const { destination, currency, is_manual, amount } = action;
    // The test IBAN that returns transfers is for EUR only. There is a test wallet as well.
    const is_to_wallet = ["USDC", "USDT"].includes(currency);
    const result = is_to_wallet || currency === "EUR" ? destination : "approved";
    return expectTransfer(result, is_manual, amount, is_to_wallet);
  }
  throw new Error(`a story cannot begin with ${action.do}`);
}

/**
 * The possible states after simultaneous moves with these responses.
 * @param lost moves whose responses do not tell whether they happened
 */
function outcomes(standing: Standings, moves: Responded[], lost: Responded[]): Standings[] {
  if (moves.length === 0) return [standing];
  const unseen = lost.flatMap(({ action, id }, i) => {
    const { next } = after(standing, action, id);
    return next === standing ? [] : outcomes(next, moves, lost.filter((_, n) => n !== i));
  });
  const seen = moves.flatMap(({ action, response, id }, i) => {
    const expected = after(standing, action, id);
    if (!isExpected(expected, response)) return [];
    if (action.do === "list_refunds" && !listsRefunds(response, standing)) return [];
    const next = action.do === "refund" && response.status === 201
      ? nameNewestRefund(expected.next as Standing, JSON.parse(response.body).id)
      : expected.next;
    return outcomes(next, moves.filter((_, n) => n !== i), lost);
  });
  return [...seen, ...unseen];
}

function after(standing: Standings, action: Action, id: string): Expected<Standings> {
  switch (action.do) {
    case "get":
    case "list_refunds":
      return { http: 200, code: null, next: standing, events: [] };
    case "advance_refund":
      return expectMove(standing as Standing, { do: "advance_refund", id, to: action.to });
    case "cancel":
    case "capture":
    case "refund":
    case "advance":
    case "authenticate":
      return expectMove(standing as Standing, action);
    case "use": {
      const { saved } = standing as Standing;
      const { next: shows, ...use } = expectUse(saved!, action.amount, action.off_session);
      return { ...use, next: standing, shows };
    }
    case "end":
      return expectEnd(standing as Standing);
    case "cancel_transfer":
      return expectTransferMove(standing as TransferStanding, { do: "cancel" });
    case "advance_transfer":
      return expectTransferMove(standing as TransferStanding, { do: "advance", to: action.to });
  }
  throw new Error(`${action.do} is not a move`);
}

/** Whether a response agrees with the model, as far as the response shows it. */
function isExpected(expected: Expected<Standings>, { status, body }: Received): boolean {
  const told = JSON.parse(body);
  if (status !== expected.http || (told.error?.code ?? null) !== expected.code) return false;
  const shown = told.error?.payment ?? told;
  if (shown.object === "refund") {
    const { refund } = expected;
    return refund !== undefined && shown.amount_minor === refund.amount &&
      shown.status === refund.status && shown.payment_status === refund.payment_status;
  }
  const next = expected.shows ?? expected.next;
  return shown.sequence === undefined ||
    (shown.sequence === next.sequence && shown.status === next.status &&
      (!("captured" in next) || showsMoney(shown, next)));
}

function showsMoney(shown: Record<string, unknown>, payment: Standing): boolean {
  return shown["amount_captured"] === payment.captured &&
    shown["amount_refunded"] === payment.refunded &&
    shown["amount_refunding"] === payment.refunding &&
    shown["amount_disputed"] === payment.disputed;
}

/** Whether a list of refunds adds up to the refunded and the pending amount of the payment. */
function listsRefunds({ body }: Received, standing: Standings): boolean {
  const { object, data, has_more } = JSON.parse(body);
  if (object !== "list" || !Array.isArray(data) || !("refunds" in standing)) return false;
  if (new Set(data.map(({ id }) => id)).size < data.length) return false;
  const sum = (wanted: string) =>
    data.reduce((sum, { status, amount_minor }) => status === wanted ? sum + amount_minor : sum, 0);
  const { refunded, refunding, refunds } = standing;
  return has_more
    ? data.length < refunds.length
    : data.length === refunds.length && sum("completed") === refunded &&
      sum("pending") === refunding;
}

/** The faults of lists of payments (promise R5). */
function pageFaults({ plan, journal }: Evidence): string[] {
  const operations = operationsOf(plan);
  const breaches: string[] = [];
  const acknowledged: Partial<Record<Sandbox, string[]>> = {};
  /** Number of acknowledged payments before the first request for each list. */
  const known_when_sent = new Map<number, number>();
  for (const record of journal) {
    const { sandbox, action } = operations.get(record.operation)!;
    const ids = acknowledged[sandbox] ??= [];
    if (record.kind === "send") known_when_sent.set(record.operation, ids.length);
    if (record.kind !== "response" || record.status === 0) continue;
    if (action.do === "create") {
      const id = createdIn(record.body);
      if (id !== null) ids.push(id);
    }
    if (action.do !== "list") continue;
    // A reset may have deleted acknowledged payments.
    const known = sandbox === "resets" ? [] : ids.slice(0, known_when_sent.get(record.operation));
    const fault = pageFault(record, known);
    if (fault !== null) breaches.push(`operation ${record.operation}, a list: ${fault}`);
  }
  return breaches;
}

/** The faults of balances (promise R4). */
export function balanceFaults({ plan, journal }: Evidence): string[] {
  const operations = operationsOf(plan);
  return journal.flatMap((record) => {
    const { action } = operations.get(record.operation)!;
    if (record.kind !== "response" || action.do !== "balance" || record.status === 0) return [];
    const fault = balanceFault(record);
    return fault === null ? [] : [`operation ${record.operation}, a balance: ${fault}`];
  });
}

function pageFault({ status, body }: Received, known: readonly string[]): string | null {
  if (status !== 200) return `returned ${status}`;
  const { object, data, has_more, next_cursor } = JSON.parse(body);
  if (object !== "list" || !Array.isArray(data) || typeof has_more !== "boolean") {
    return "not a list";
  }
  const ids: string[] = data.map(({ id }) => id);
  if (ids.some((id, i) => i > 0 && id >= ids[i - 1]!)) return "not newest first";
  const last = ids.at(-1) ?? null;
  if (next_cursor !== (has_more ? last : null) || (has_more && last === null)) {
    return "its cursor is wrong";
  }
  const missing = known.find((id) => (!has_more || id > last!) && !ids.includes(id));
  return missing === undefined ? null : `${missing} is missing`;
}

function balanceFault({ status, body }: Received): string | null {
  if (status !== 200) return `returned ${status}`;
  const { object, balances } = JSON.parse(body);
  // The plan funds every hot account first.
  if (object !== "balance" || !Array.isArray(balances) || balances.length === 0) {
    return "not a balance";
  }
  const sums = new Map<string, number>();
  for (const { currency, account, debits_minor, credits_minor, amount_minor } of balances) {
    if (amount_minor !== credits_minor - debits_minor) {
      return `${currency} ${account} does not add up`;
    }
    if (account === "available" && amount_minor < 0) return `${currency} is overdrawn`;
    sums.set(currency, (sums.get(currency) ?? 0) + amount_minor);
  }
  const unequal = [...sums].find(([, sum]) => sum !== 0);
  return unequal === undefined ? null : `${unequal[0]} sums to ${unequal[1]}`;
}

function operationsOf({ stories }: Plan): Map<number, { sandbox: Sandbox; action: Action }> {
  return new Map(
    stories.flatMap(({ sandbox, groups }) =>
      groups.flat().map(({ number, action }) => [number, { sandbox, action }] as const)
    ),
  );
}
