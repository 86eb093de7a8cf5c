/**
 * Judges stories by the model (payment_model.ts): some legal order of the simultaneous requests
 * must explain every response and the final row of the payment or transfer. A page must contain
 * every payment that belongs on it and was acknowledged before the request for the page. A balance
 * must add up.
 */

import type { Verdict } from "../../harness/audit.ts";
import { type ApiResponse, createdIn } from "../../harness/client.ts";
import {
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
import type { Finished } from "./clients.ts";
import type { Evidence } from "./evidence.ts";
import type { Action, Operation, Story } from "./plan.ts";
import { savedIn } from "./request.ts";

type Standings = Standing | TransferStanding;

/**
 * R1, besides the invariants: acknowledged changes exist, and refused ones left nothing. R5: an
 * order explains each story, and the pages are complete.
 */
export function auditStories(evidence: Evidence): Verdict[] {
  const { journal, plan, rows: { stored } } = evidence;
  const told = new Map(journal.map((finished) => [finished.operation, finished]));
  const [lost, unexplained]: [string[], string[]] = [[], []];
  for (const { operation: { number, action }, story: { sandbox }, responses } of journal) {
    const makes = ["create", "use", "transfer"].includes(action.do) && sandbox !== "resets";
    const id = makes ? createdIn(responses[0].text) : null;
    if (id !== null && !stored.has(id)) lost.push(`operation ${number}: ${id} is lost`);
  }
  for (const story of plan.stories) {
    const operations = story.groups.flat();
    if (operations.some((operation) => told.get(operation)?.responses[0].status === 0)) continue;
    const fault = explain(story, told, (id, standings) => {
      const text = stored.get(id);
      if (text === undefined || standings.some((one) => isIn(JSON.parse(text), one))) return;
      lost.push(`story ${story.number}: ${text} is unlike the model`);
    });
    if (fault !== null) unexplained.push(`story ${story.number}: ${fault}`);
  }
  return [
    { promise: "R1", says: `${told.size} operations with a response`, breaches: lost },
    {
      promise: "R5",
      says: `${plan.stories.length} stories of payments and transfers explained by the model`,
      breaches: [...unexplained, ...readFaults(evidence, "list")],
    },
  ];
}

/**
 * The reason why no order explains a story; null if an order explains it. A reset can delete its
 * payment between two requests, also between duplicates: the story goes on with the payment of the
 * first one.
 * @param onEnd gets the possible last states of the payment or transfer, and of its instrument
 */
function explain(
  { groups, sandbox }: Story,
  told: ReadonlyMap<Operation, Finished>,
  onEnd: (id: string, standings: readonly (Standings | Saved)[]) => void,
): string | null {
  const [[first]] = groups as [[Operation]];
  const { action } = first;
  const made = told.get(first)?.responses[0];
  if (made === undefined) return "its first request has no response";
  if (action.do === "transfer" && made.status === 402) return null;
  if (action.do === "reset") return made.status === 200 ? null : `a reset got ${made.status}`;
  const begun = firstStanding(action);
  if (!isExpected(begun, made)) return `${action.do} got ${made.status}`;
  // The rest of the story was impossible.
  if (begun.http === 400) return null;
  const id = createdIn(made.text)!;
  let standings: Standings[] = [begun.next];
  let is_gone = false;
  for (const group of groups.slice(1)) {
    const responses = group.flatMap((operation) => told.get(operation) ?? []);
    if (responses.length < group.length) return "a request has no response";
    const moves = responses.filter(({ operation: { action }, responses: [{ status }] }) =>
      // readFaults() judges these.
      action.do !== "list" && action.do !== "balance" &&
      // A refund that is not found does not show whether its payment exists.
      (sandbox !== "resets" || action.do !== "advance_refund" || status !== 404)
    );
    if (sandbox === "resets") {
      const lost = moves.filter(({ responses: [{ status }] }) => status === 404).length;
      if (is_gone && lost < moves.length) return `${id} was found after it was not found`;
      is_gone ||= lost > 0;
      if (is_gone) continue;
    }
    standings = standings.flatMap((standing) => outcomes(standing, moves));
    if (standings.length === 0) {
      const said = moves.map(({ operation: { action }, responses: [{ status }] }) =>
        `${JSON.stringify(action)} ${status}`
      );
      return `no order explains ${said.join(", ")}`;
    }
  }
  if (sandbox === "resets") return null;
  onEnd(id, standings);
  const saved = standings.flatMap((one) => "saved" in one && one.saved ? [one.saved] : []);
  if (saved.length > 0) onEnd(savedIn(made.text)!, saved);
  return null;
}

/** Whether a payment, transfer or instrument is in a state of the model. */
function isIn(shown: Record<string, unknown>, standing: Standings | Saved): boolean {
  return shown["status"] === standing.status && shown["sequence"] === standing.sequence &&
    (!("captured" in standing) ||
      shown["amount_captured"] === standing.captured &&
        shown["amount_refunded"] === standing.refunded &&
        shown["amount_refunding"] === standing.refunding &&
        shown["amount_disputed"] === standing.disputed);
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

/** The possible states after simultaneous moves with these responses. */
function outcomes(standing: Standings, moves: Finished[]): Standings[] {
  if (moves.length === 0) return [standing];
  return moves.flatMap(({ operation: { action }, id, responses: [response] }, i) => {
    const expected = after(standing, action, id);
    if (!isExpected(expected, response)) return [];
    if (action.do === "list_refunds" && !listsRefunds(response, standing)) return [];
    const next = expected.refund !== undefined && response.status === 201
      ? nameNewestRefund(expected.next as Standing, JSON.parse(response.text).id)
      : expected.next;
    return outcomes(next, moves.filter((_, n) => n !== i));
  });
}

function after(standing: Standings, action: Action, id: string): Expected<Standings> {
  switch (action.do) {
    case "get":
    case "list_refunds":
      return { http: 200, code: null, next: standing, events: [] };
    case "advance_refund":
      return expectMove(standing as Standing, { do: "advance_refund", id, to: action.to });
    case "move":
      return expectMove(standing as Standing, action.move);
    case "use": {
      const { saved } = standing as Standing;
      const { next: shows, ...use } = expectUse(saved!, action.amount, action.off_session);
      return { ...use, next: standing, shows };
    }
    case "end":
      return expectEnd(standing as Standing);
    case "move_transfer":
      return expectTransferMove(standing as TransferStanding, action.move);
  }
  throw new Error(`${action.do} is not a move`);
}

/** Whether a response agrees with the model, as far as the response shows it. */
function isExpected(expected: Expected<Standings>, { status, text }: ApiResponse): boolean {
  const told = JSON.parse(text);
  if (status !== expected.http || (told.error?.code ?? null) !== expected.code) {
    return false;
  }
  const shown = told.error?.payment ?? told;
  if (shown.object === "refund") {
    const { refund } = expected;
    return refund !== undefined && shown.amount_minor === refund.amount &&
      shown.status === refund.status && shown.payment_status === refund.payment_status;
  }
  return shown.sequence === undefined || isIn(shown, expected.shows ?? expected.next);
}

/** Whether a list of refunds adds up to the refunded and the pending amount of the payment. */
function listsRefunds({ text }: ApiResponse, standing: Standings): boolean {
  const { object, data, has_more } = JSON.parse(text);
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

/** The faults of the lists of payments (promise R5) or of the balances (promise R4). */
export function readFaults({ journal }: Evidence, kind: "list" | "balance"): string[] {
  const made = journal.flatMap(({ story: { sandbox }, operation: { action }, responses }, at) => {
    const id = action.do === "create" ? createdIn(responses[0].text) : null;
    return id === null ? [] : [{ id, sandbox, at }];
  });
  return journal.flatMap(({ story: { sandbox }, operation, sent_after, responses: [first] }) => {
    if (operation.action.do !== kind || first.status === 0) return [];
    // A reset may have deleted acknowledged payments.
    const known = made.filter((one) =>
      one.sandbox === sandbox && sandbox !== "resets" && one.at < sent_after
    );
    const fault = first.status !== 200
      ? `returned ${first.status}`
      : kind === "list"
      ? pageFault(JSON.parse(first.text), known)
      : balanceFault(JSON.parse(first.text));
    return fault === null ? [] : [`operation ${operation.number}, a ${kind}: ${fault}`];
  });
}

/** @param known payments that were acknowledged before the request */
// deno-lint-ignore no-explicit-any -- a list of payments
function pageFault({ data, has_more, next_cursor }: any, known: readonly { id: string }[]) {
  const ids: string[] = data.map(({ id }: { id: string }) => id);
  if (ids.some((id, i) => i > 0 && id >= ids[i - 1]!)) return "not newest first";
  const last = ids.at(-1);
  if (next_cursor !== (has_more ? last : null)) return "its cursor is wrong";
  const missing = known.find(({ id }) => (!has_more || id > last!) && !ids.includes(id));
  return missing === undefined ? null : `${missing.id} is missing`;
}

/** The plan funds every hot account first, so there are balances. */
function balanceFault({ balances }: { balances: Record<string, number>[] }): string | null {
  if (balances.length === 0) return "is empty";
  const sums = new Map<unknown, number>();
  for (const balance of balances) {
    const { currency, account, amount_minor, credits_minor, debits_minor } = balance;
    const is_overdrawn = String(account) === "available" && amount_minor! < 0;
    if (is_overdrawn || amount_minor !== credits_minor! - debits_minor!) {
      return JSON.stringify(balance);
    }
    sums.set(currency, (sums.get(currency) ?? 0) + amount_minor);
  }
  const unequal = [...sums].find(([, sum]) => sum !== 0);
  return unequal === undefined ? null : `${unequal[0]} does not add up`;
}
