/**
 * Judges lists and balances that were read during changes. A page must contain every payment that
 * belongs on it and was acknowledged before the request for the page. A balance must add up.
 */

import { createdIn } from "../../harness/client.ts";
import type { Received } from "./clients.ts";
import type { Evidence } from "./evidence.ts";
import type { Action, Plan, Sandbox } from "./plan.ts";

/** The faults of lists of payments (promise R5). */
export function pageFaults({ plan, journal }: Evidence): string[] {
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
