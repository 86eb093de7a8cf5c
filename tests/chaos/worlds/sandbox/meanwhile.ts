/** The audit during the main run: reads the invariants repeatedly, and copies the ledger once. */

import { pause } from "../../../support/common/until.ts";
import { brokenInvariants } from "../../harness/audit.ts";
import type { Stage } from "../../harness/stage.ts";
import { overdrawnBalances } from "./audit.ts";
import type { Evidence } from "./evidence.ts";

const AUDIT_EVERY_MS = 2_000;

export class Auditor {
  audits = 0;
  readonly breaches: string[] = [];
  #has_copy = false;
  #is_over = false;
  readonly #auditing: Promise<void>;

  constructor(
    readonly stage: Stage,
    readonly environments: Evidence["environments"],
    readonly isMidway: () => boolean,
  ) {
    this.#auditing = this.#auditUntilEnd();
  }

  /** Ends the audit; returns the movements of the copy that were changed or deleted later. */
  async end(): Promise<string[]> {
    this.#is_over = true;
    await this.#auditing;
    if (!this.#has_copy) return ["the run made no copy of the ledger"];
    const rows = await this.stage.sql`
      select transaction_id as id
      from (table public.chaos_ledger except table pay.ledger_movements) gone limit 5`;
    return rows.map(({ id }) => `ledger transaction ${id} was deleted or changed`);
  }

  async #auditUntilEnd(): Promise<void> {
    while (!this.#is_over) {
      const started = performance.now();
      await this.#audit().catch((error) => {
        if (!isCutOff(error)) this.breaches.push(`during the run: ${error}`);
      });
      // The audit takes at most a tenth of the time, except for the copy.
      const pause_ms = Math.max(AUDIT_EVERY_MS, 9 * (performance.now() - started));
      const until_ms = performance.now() + pause_ms;
      do await pause(50); while (
        !this.#is_over && performance.now() < until_ms && !this.#wantsCopy()
      );
    }
  }

  async #audit(): Promise<void> {
    const { sql } = this.stage;
    const broken = await brokenInvariants(sql);
    this.breaches.push(...broken.map((breach) => `during the run ${breach}`));
    this.breaches.push(...await overdrawnBalances(sql, this.environments.transfers));
    this.audits++;
    if (!this.#wantsCopy()) return;
    // An earlier try may have made the copy before its connection broke.
    await sql`
      create table if not exists public.chaos_ledger as select * from pay.ledger_movements
      where environment_id not in (
        select id from pay.environments where public_id = ${this.environments.resets}
      )`;
    const [copied] = await sql`select from public.chaos_ledger limit 1`;
    if (copied === undefined) this.breaches.push("the ledger was empty in the middle of the run");
    this.#has_copy = true;
  }

  #wantsCopy(): boolean {
    return this.isMidway() && !this.#has_copy;
  }
}

/** Whether a query failed because the database was killed or is still starting. */
export function isCutOff(error: unknown): boolean {
  const code = (error as { code?: string } | null)?.code;
  return code !== undefined && /^(CONNECT|ECONN|EPIPE|08|57P0)/.test(code);
}
