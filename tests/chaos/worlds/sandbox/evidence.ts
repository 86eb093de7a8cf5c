/** The evidence of the main run, which its audits read. */

import type postgres from "postgres";
import type { Arrival } from "../../harness/receiver.ts";
import type { Replays } from "../../harness/client.ts";
import type { Received, Sent } from "./clients.ts";
import type { Plan, Sandbox } from "./plan.ts";

export interface Evidence {
  plan: Plan;
  sql: postgres.Sql;
  /** The records of the clients, in the order of the journal. */
  journal: (Sent | Received)[];
  arrivals: Arrival[];
  environments: Record<Sandbox, string>;
  /** Endpoints by the path of their URL. */
  endpoints: Record<string, { sandbox: Sandbox; takes: (type: string) => boolean }>;
  replays: Replays;
  /** Number of audits during the run, and their breaches. */
  meanwhile: { audits: number; breaches: string[] };
  /** Ledger transactions that were deleted or changed after the middle of the run. */
  altered_movements: string[];
  /** The events of redeliveries, and deliveries that did not follow the schedule. */
  drained: { redelivered: Set<string>; faults: string[] };
}

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
  body_hash: string;
}

export function responsesOf({ journal }: Evidence, kind: Received["kind"]): Received[] {
  return journal.filter((record): record is Received => record.kind === kind);
}

export function firstResponses(evidence: Evidence): Map<number, Received> {
  // A later entry of a Map replaces an earlier one.
  return new Map(responsesOf(evidence, "response").reverse().map((one) => [one.operation, one]));
}
