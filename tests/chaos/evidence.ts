/** The evidence of a run, which the audits read, and their verdicts. */

import type postgres from "postgres";
import type { Arrival } from "./arrival.ts";
import type { ApiResponse, Sent } from "./client_process.ts";
import type { Plan, Sandbox } from "./plan.ts";

/** The evidence of a run. */
export interface Evidence {
  plan: Plan;
  sql: postgres.Sql;
  /** The records of the clients, in the order of the journal. */
  journal: (Sent | ApiResponse)[];
  arrivals: Arrival[];
  environments: Record<Sandbox, string>;
  /** Endpoints by the path of their URL. */
  endpoints: Record<string, { sandbox: Sandbox; takes: (type: string) => boolean }>;
  /** Number of replays at the end, and their faults. */
  replays: { replayed: number; faults: string[] };
  /** Number of audits during the run, and their breaches. */
  meanwhile: { audits: number; breaches: string[] };
  /** Ledger transactions that were deleted or changed after the middle of the run. */
  altered_movements: string[];
  /** Number of redeliveries, and deliveries that did not follow the schedule. */
  drained: { redelivered: number; faults: string[] };
}

/** The verdict on one promise. */
export interface Verdict {
  promise: string;
  /** Figures for the report. */
  says: string;
  breaches: string[];
}

/** An event in the database. */
export interface StoredEvent {
  /** The public id. */
  environment_id: string;
  id: string;
  type: string;
  subject_id: string;
  sequence: number;
  /** The refund that the event shows; null for events of other types. */
  refund_id: string | null;
  key: string | null;
  /** SHA-256 of the body, in hex. */
  body_hash: string;
}

/** The responses of a kind, in the order of the journal. */
export function responsesOf({ journal }: Evidence, kind: ApiResponse["kind"]): ApiResponse[] {
  return journal.filter((record): record is ApiResponse => record.kind === kind);
}

/** The first response to each operation. */
export function firstResponses(evidence: Evidence): Map<number, ApiResponse> {
  const first = new Map<number, ApiResponse>();
  for (const response of responsesOf(evidence, "response")) {
    if (!first.has(response.operation)) first.set(response.operation, response);
  }
  return first;
}
