/** Kills the processes of the main run and measures their recovery. */

import { until } from "../support/common/until.ts";
import type { Kill, Plan, Victim } from "./plan.ts";
import { type ApiServer, HEALTH_DEADLINE_MS, type Stage, untilWell } from "./stage.ts";

/** A process that can be killed and started again on the same port. */
export interface Restartable {
  restart(): Promise<void>;
}

/** Ends a process with SIGKILL when the plan says so, and waits until it is replaced. */
export class Killer {
  /** Number of operations with a response. */
  progress = 0;
  readonly kills: Record<Victim, number> = { postmaster: 0, backend: 0, server: 0, receiver: 0 };
  readonly recoveries: Record<Victim, number[]> = {
    postmaster: [],
    backend: [],
    server: [],
    receiver: [],
  };
  readonly #stage: Stage;
  readonly #servers: readonly ApiServer[];
  readonly #receiver: Restartable;
  readonly #due: Kill[];
  #killing: Promise<void> | null = null;

  constructor(stage: Stage, servers: readonly ApiServer[], receiver: Restartable, plan: Plan) {
    this.#stage = stage;
    this.#servers = servers;
    this.#receiver = receiver;
    this.#due = [...plan.kills];
  }

  advance(finished: number): void {
    this.progress = finished;
    this.#killing ??= this.#killDue().finally(() => this.#killing = null);
  }

  /** Resolves when the last kill is over and the run's own connections work again. */
  async end(): Promise<void> {
    await this.#killing;
    const { sql } = this.#stage;
    // A connection that a kill has reset fails at its next query. The pause makes the queries use
    // all connections.
    await until("the connections of the run work", async () => {
      const queries = Array.from(
        { length: sql.options.max },
        () => sql`select pg_sleep(0.02)`,
      );
      return (await Promise.allSettled(queries)).every(({ status }) => status === "fulfilled");
    });
  }

  async #killDue(): Promise<void> {
    while (this.#due.length > 0 && this.#due[0]!.at_operation <= this.progress) {
      const { victim, which } = this.#due.shift()!;
      const killed_at = await this.#kill(victim, which);
      this.kills[victim]++;
      await Promise.all(this.#servers.map(untilWell));
      this.recoveries[victim].push(performance.now() - killed_at);
    }
  }

  /** Resolves with the time of the kill when another process has replaced the killed one. */
  async #kill(victim: Victim, which: number): Promise<number> {
    switch (victim) {
      case "postmaster":
        return await killPostgres(this.#stage, this.#stage.postgres.pid);
      case "backend": {
        const backends = await untilResponse(() =>
          this.#stage.sql<{ pid: number }[]>`
            select pid from pg_stat_activity where application_name = 'payments' order by pid`
        );
        return await killPostgres(this.#stage, backends[Math.floor(which * backends.length)]!.pid);
      }
      case "server": {
        const killed_at = performance.now();
        await this.#servers[Math.floor(which * this.#servers.length)]!.restart();
        return killed_at;
      }
      case "receiver": {
        const killed_at = performance.now();
        await this.#receiver.restart();
        return killed_at;
      }
    }
  }
}

/**
 * Kills one process of PostgreSQL; resolves with the time of the kill after the recovery. When one
 * process is killed, PostgreSQL ends all of them and recovers. Until then old processes may still
 * respond. A new checkpointer shows that the recovery is over.
 */
export async function killPostgres({ sql }: Stage, pid: number): Promise<number> {
  const checkpointer = async () => {
    const [row] = await untilResponse(() =>
      sql<{ pid: number }[]>`
        select pid from pg_stat_activity where backend_type = 'checkpointer'`
    );
    return row!.pid;
  };
  const before = await checkpointer();
  const killed_at = performance.now();
  Deno.kill(pid, "SIGKILL");
  await until(
    "the database has recovered",
    async () => await checkpointer() !== before,
    HEALTH_DEADLINE_MS,
  );
  return killed_at;
}

/** Repeats a query while it fails on connections of the killed server. */
async function untilResponse<T>(ask: () => Promise<T[]>): Promise<T[]> {
  let rows: T[] = [];
  await until("the database responds", async () => {
    rows = await ask().catch(() => []);
    return rows.length > 0;
  }, HEALTH_DEADLINE_MS);
  return rows;
}
