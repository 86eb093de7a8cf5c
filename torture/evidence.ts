/** The evidence of a run, as the audits read it, and their verdicts. */

import type postgres from "postgres";
import type { Arrival } from "./arrival.ts";
import type { Answer, Sent } from "./client_process.ts";
import type { Plan, Sandbox } from "./plan.ts";

/** The evidence that a run has gathered when it ends. */
export interface Evidence {
  plan: Plan;
  sql: postgres.Sql;
  /** What the clients have sent and been told, in the order in which it came to be on disk. */
  journal: (Sent | Answer)[];
  arrivals: Arrival[];
  environments: Record<Sandbox, string>;
  /** Endpoints by the path of their address. */
  endpoints: Record<string, { sandbox: Sandbox; takes: (type: string) => boolean }>;
  /** Faults of the replays at the end, and how many there were. */
  replays: { replayed: number; faults: string[] };
  /** What was found while the run went on. */
  meanwhile: { audits: number; findings: string[] };
  /** Ledger transactions that were deleted or altered since the middle of the run. */
  altered_movements: string[];
  /** Deliveries that were asked for again, and those that ended otherwise than the schedule says. */
  drained: { redelivered: number; faults: string[] };
}

/** What one promise came to. */
export interface Verdict {
  promise: string;
  /** Figures, for the report. */
  says: string;
  findings: string[];
}

/** An event as the database has it. */
export interface EventFact {
  /** The public one. */
  environment_id: string;
  id: string;
  type: string;
  subject_id: string;
  sequence: number;
  key: string | null;
  /** SHA-256 of the body, in hex. */
  body_hash: string;
}

/** The answers of a kind, in order. */
export function answersOf({ journal }: Evidence, kind: Answer["kind"]): Answer[] {
  return journal.filter((record): record is Answer => record.kind === kind);
}

/** The answer to each operation that came first. */
export function firstAnswers(evidence: Evidence): Map<number, Answer> {
  const first = new Map<number, Answer>();
  for (const answer of answersOf(evidence, "answer")) {
    if (!first.has(answer.operation)) first.set(answer.operation, answer);
  }
  return first;
}
