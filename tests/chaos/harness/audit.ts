/** The parts that the audits of all worlds share. */

import type postgres from "postgres";
import { checkBooks } from "../../../apps/operator/check_books.ts";
import type { ApiResponse } from "./client.ts";
import type { Stage } from "./stage.ts";

export interface Verdict {
  promise: string;
  says: string;
  breaches: string[];
}

/** Counts kills or faults by name. */
export class Tally {
  readonly counts: Map<string, number>;

  constructor(names: Iterable<string>) {
    this.counts = new Map([...names].map((name) => [name, 0]));
  }

  add(name: string, count = 1): void {
    this.counts.set(name, this.of(name) + count);
  }

  of(name: string): number {
    return this.counts.get(name) ?? 0;
  }

  get total(): number {
    return this.counts.values().reduce((sum, count) => sum + count, 0);
  }

  get missing(): string[] {
    return [...this.counts].filter(([, count]) => count === 0).map(([name]) => name);
  }

  /** The counts as a verdict. Each kind must have happened. */
  judge(promise: string): Verdict {
    return {
      promise,
      says: [...this.counts].map(([name, count]) => `${name} ${count}`).join(", "),
      breaches: this.missing.map((name) => `no "${name}" happened; a larger run has every kind`),
    };
  }
}

/** Provider events that are no fault: money without a purpose, which the operator handles. */
const TOLERATED = /too much|was sent to a payment that is|outside of payments/;

/** The breaches of the invariants. @param is_tolerant with money without a purpose */
export async function brokenInvariants(sql: postgres.Sql, is_tolerant = false): Promise<string[]> {
  const broken = (await checkBooks(sql)).filter(({ breaches, invariant }) =>
    breaches > 0 && !(is_tolerant && invariant === "invariant_reported_events")
  ).flatMap(({ invariant, examples }) => examples.map((example) => `${invariant}: ${example}`));
  if (!is_tolerant) return broken;
  const events = await sql<{ detail: string }[]>`
    select coalesce(subject_id, 'the account') || ': ' || detail as detail
    from pay.invariant_reported_events`;
  return [...broken, ...events.map(({ detail }) => detail).filter((text) => !TOLERATED.test(text))];
}

/** The unexpected errors of the servers. @param expected errors of this file are no fault */
export function faultsOfServers({ server_faults }: Stage, expected?: string): string[] {
  return server_faults.filter(({ fault }) => expected === undefined || !fault.includes(expected))
    .map(({ route, fault }) => `fault of a server: ${route} ${fault}`);
}

/** The breaches of lasting responses to the duplicates of a request: they are one response. */
export function duplicateFaults(name: string, responses: readonly ApiResponse[]): string[] {
  const texts = new Set(responses.map(({ status, text }) => `${status} ${text}`));
  const firsts = responses.filter(({ is_replay }) => !is_replay);
  return failing([
    [texts.size <= 1, `${name}: duplicates got ${[...texts].join(" and ")}`],
    [firsts.length <= 1, `${name}: duplicates got ${firsts.length} first responses`],
  ]);
}

/** The breaches of the checks that do not hold. */
export function failing(checks: readonly (readonly [holds: boolean, breach: string])[]): string[] {
  return checks.filter(([holds]) => !holds).map(([, breach]) => breach);
}

type Values = Iterable<readonly [id: string | null, value?: unknown]>;

/**
 * Compares the values of each id here with those at the other side, such as a provider, in any
 * order. A value that only one side has, or one side more often, is a breach. No value, null and 0
 * are the same.
 */
export function differences(name: string, ours: Values, theirs: Values): string[] {
  const textsOf = (values: Values) => {
    const texts = new Map<string | null, string>();
    for (const [id, value = "once"] of [...values].sort()) {
      if (value) texts.set(id, texts.has(id) ? `${texts.get(id)} and ${value}` : `${value}`);
    }
    return texts;
  };
  const [here, there] = [textsOf(ours), textsOf(theirs)];
  return [...new Set([...here.keys(), ...there.keys()])].flatMap((id) => {
    const [one, other] = [here, there].map((texts) => texts.get(id) ?? "none");
    return one === other ? [] : [`${id ?? "other money"}: ${name} ${one} here, ${other} there`];
  });
}

export function sumOf<T>(items: readonly T[], amountOf: (item: T) => number): number {
  return items.reduce((sum, item) => sum + amountOf(item), 0);
}
