/** The parts that the audits of all worlds share. */

import type postgres from "postgres";
import { checkBooks } from "../../../apps/operator/check_books.ts";
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

/** The breaches of the checks that do not hold. */
export function failing(checks: readonly (readonly [holds: boolean, breach: string])[]): string[] {
  return checks.filter(([holds]) => !holds).map(([, breach]) => breach);
}

export function sumOf<T>(items: readonly T[], amountOf: (item: T) => number): number {
  return items.reduce((sum, item) => sum + amountOf(item), 0);
}
