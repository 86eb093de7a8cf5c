/** The store of declared faults. Each call runs one entry function in one round trip (ADR 0023). */

import { invalidParameter } from "../core/errors.ts";
import type { FAULT_CONDITIONS, FAULTS } from "../core/vocabulary.ts";
import type { EntryCalls } from "../store/entry_calls.ts";
import {
  type Access,
  type Idempotency,
  requestParameter,
  type Responded,
  respondedBy,
  type Row,
} from "../store/outcome.ts";
import { sql } from "../store/statement.ts";

/** Most faults of a sandbox that can still happen. The service chose the number. */
const MAX_OPEN_FAULTS = 100;

/** The kinds of faults that functions ask for. The dispatcher finds those of deliveries itself. */
type RequestedKind = "request" | "provider";

/** A fault to declare, with the names of the database's columns. */
interface FaultRow {
  id: string;
  kind: string;
  fault: string;
  filter: Readonly<Record<string, string | undefined>>;
  delay_ms: number | null;
  times: number;
}

export interface MatchedFault<Kind extends RequestedKind> {
  id: string;
  fault: typeof FAULTS[Kind][number];
  /** Of a delay; null for other faults. */
  delay_ms: number | null;
}

/** The request or operation that a fault can concern, with the values of its conditions. */
export type FaultTarget<Kind extends RequestedKind> = {
  [Name in typeof FAULT_CONDITIONS[Kind][number]]?: string | readonly string[];
};

/** The store of faults. Each method throws `ApiError`. */
export class FaultStore {
  readonly #calls: EntryCalls;

  constructor(calls: EntryCalls) {
    this.#calls = calls;
  }

  /** Throws `invalid_parameter` if the sandbox has `MAX_OPEN_FAULTS` already. */
  async create(
    access: Access,
    fault: FaultRow,
    idempotency: Idempotency | null,
  ): Promise<Responded> {
    const request = requestParameter(access, idempotency, { status: 201, body: "" });
    const row = await this.#calls.ask<Row<"full">>(
      access,
      ...sql`select * from pay.create_fault(p_request => ${request}, p_fault => ${fault},
        p_limit => ${MAX_OPEN_FAULTS}::int)`,
    );
    if (row.outcome === "full") {
      throw invalidParameter(
        "times",
        `Cannot declare a fault: this sandbox has ${MAX_OPEN_FAULTS} that have not happened ` +
          "yet. Delete one first, or declare one with more times",
      );
    }
    return respondedBy(row, 201);
  }

  /** Throws `not_found`. */
  async delete(
    access: Access,
    id: string,
    idempotency: Idempotency | null,
  ): Promise<Responded> {
    const deletion = sql`select * from pay.delete_fault(
      p_request => ${requestParameter(access, idempotency)}, p_id => ${id})`;
    return respondedBy(await this.#calls.ask(access, ...deletion), 200);
  }

  /** Counts the fault of a request, and returns it. Null: no fault matches. */
  take(access: Access, request: FaultTarget<"request">): Promise<MatchedFault<"request"> | null> {
    return this.#match(access, "request", request, true);
  }

  /** Finds the fault of an operation of the provider. The commit of its result counts it. */
  find(
    access: Access,
    operation: FaultTarget<"provider">,
  ): Promise<MatchedFault<"provider"> | null> {
    return this.#match(access, "provider", operation, false);
  }

  async #match<Kind extends RequestedKind>(
    access: Access,
    kind: Kind,
    target: FaultTarget<Kind>,
    takes: boolean,
  ): Promise<MatchedFault<Kind> | null> {
    const row = await this.#calls.ask(
      access,
      ...sql`select * from pay.match_fault(p_request => ${requestParameter(access)},
        p_kind => ${kind}, p_target => ${target}, p_takes => ${takes}::boolean)`,
    );
    return row.body === null ? null : JSON.parse(row.body);
  }
}
