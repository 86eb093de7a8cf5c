/**
 * Coalesced commits: changes that arrive while a commit is under way leave together in the next
 * statement. There is no timer: on an idle server a change leaves at once, alone.
 *
 * A statement's price is mostly its own, not its rows'; together changes share it, and the commit.
 * Guarantees: each change has the outcome that it would have alone; environments take turns; one that
 * waits for a lock, or that the database refuses, is sent again by itself and holds nobody up.
 */

import { formatTime } from "../core/clock.ts";
import type { Change } from "./change.ts";
import { type Database, isAway, isLockTimeout, isOverdue, toApiError } from "./database.ts";
import type { Access, Idempotency, Row } from "./outcome.ts";

/** A change, and who asks for it. */
export interface RequestedChange {
  access: Access;
  change: Change;
  idempotency: Idempotency | null;
}

/** Statements under way at a time; more would only make each smaller. */
const MAX_UNDER_WAY = 1;
/** Changes of one statement: beyond it the price of a change falls no more. */
const MAX_CHANGES = 64;
/** Characters of one statement's bodies; a first change goes whatever it has. */
const MAX_CHARACTERS = 1_000_000;
/** How long a statement of all waits for a lock, in ms; what waited is then sent by itself. */
const HURRIED_MS = 50;
/** Keys whose environment is remembered. */
const KNOWN_KEYS_MAX = 10_000;

/** Exported for the benchmark, which issues the very same statement by pgbench. */
export const COMMIT = `select * from pay.commit(
  p_changes => $1::text, p_payments => $2::text, p_transfers => $3::text,
  p_refunds => $4::text, p_ledger => $5::text, p_events => $6::text, p_patience_ms => $7::int)`;

/** A row of `pay.commit`. */
interface CommitRow extends Row {
  /** Which change of the list, from 1. */
  n: number;
  environment_id: string | null;
}

interface Waiting extends RequestedChange {
  characters: number;
  resolve: (row: Row) => void;
  reject: (error: unknown) => void;
}

/** The way of changes into the database. */
export class CommitQueue {
  readonly #database: Database;
  /** By environment, or by key while that is not known; each in order of arrival. */
  readonly #waiting = new Map<string, Waiting[]>();
  readonly #environments = new Map<string, string>();
  #under_way = 0;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Commits a change, with others or alone; its row of `pay.commit`. Throws `ApiError`. */
  commit(requested: RequestedChange): Promise<Row> {
    return new Promise((resolve, reject) => {
      const { key_hash } = requested.access;
      const lane = this.#environments.get(key_hash) ?? key_hash;
      const entry = { ...requested, characters: charactersOf(requested.change), resolve, reject };
      const waiting = this.#waiting.get(lane);
      if (waiting) waiting.push(entry);
      else this.#waiting.set(lane, [entry]);
      this.#flush();
    });
  }

  #flush(): void {
    while (this.#under_way < MAX_UNDER_WAY && this.#waiting.size > 0) {
      this.#under_way++;
      this.#sendTogether(this.#take()).finally(() => {
        this.#under_way--;
        this.#flush();
      });
    }
  }

  /** The next list: one of each environment in turn. */
  #take(): Waiting[] {
    const list: Waiting[] = [];
    let characters = 0;
    while (this.#waiting.size > 0) {
      for (const [lane, [first, ...rest]] of this.#waiting) {
        const is_full = list.length === MAX_CHANGES ||
          (list.length > 0 && characters + first!.characters > MAX_CHARACTERS);
        if (is_full) return list;
        list.push(first!);
        characters += first!.characters;
        // Last in line, so that the next list begins with another.
        this.#waiting.delete(lane);
        if (rest.length > 0) this.#waiting.set(lane, rest);
      }
    }
    return list;
  }

  async #sendTogether(list: Waiting[]): Promise<void> {
    try {
      await this.#send(list, HURRIED_MS);
    } catch (error) {
      // A lock may be someone's for seconds, and a refusal is one change's own.
      if (isLockTimeout(error) || (list.length > 1 && !isAway(error))) {
        for (const entry of list) {
          this.#send([entry], null).catch((error) => entry.reject(toApiError(error)));
        }
        return;
      }
      // Past the deadline those that wait have waited as long.
      const others = isOverdue(error) ? [...this.#waiting.values()].flat() : [];
      if (others.length > 0) this.#waiting.clear();
      for (const { reject } of [...list, ...others]) reject(toApiError(error));
    }
  }

  /** @param patience_ms how long locks are waited for; null for as long as a twin may wait */
  async #send(list: Waiting[], patience_ms: number | null): Promise<void> {
    const parameters = [...commitParameters(list), patience_ms];
    const rows = await this.#database.attempt<CommitRow>(COMMIT, parameters);
    if (rows.length !== list.length) throw new Error("pay.commit() gave another number of rows");
    for (const row of rows) {
      const { access, resolve } = list[row.n - 1]!;
      if (row.environment_id) this.#learn(access.key_hash, row.environment_id);
      resolve(row);
    }
  }

  #learn(key_hash: string, environment_id: string): void {
    if (this.#environments.has(key_hash)) return;
    if (this.#environments.size >= KNOWN_KEYS_MAX) this.#environments.clear();
    this.#environments.set(key_hash, environment_id);
  }
}

/** The parameters of `pay.commit`, but for the last. */
export function commitParameters(list: readonly RequestedChange[]): string[] {
  const numbered = <T>(rowsOf: (change: Change) => readonly (T | null)[]) => {
    const rows = list.flatMap(({ change }, i) =>
      rowsOf(change).flatMap((row) => row === null ? [] : [{ n: i + 1, ...row }])
    );
    return rows.length === 0 ? "[]" : JSON.stringify(rows);
  };
  return [
    JSON.stringify(list.map(({ access, change, idempotency }, i) => ({
      n: i + 1,
      key_hash: access.key_hash,
      scope: access.scope,
      at: formatTime(access.at_ms),
      ...(access.rate_limit > 0 && { rate: access.rate_limit }),
      request_id: access.request_id,
      idempotency_key: idempotency?.key ?? null,
      fingerprint: idempotency?.fingerprint ?? null,
      ...(idempotency && change.answer),
      expects_id: change.expects?.id ?? null,
      expects_sequence: change.expects?.sequence ?? null,
    }))),
    numbered(({ payment }) => [payment]),
    numbered(({ transfer }) => [transfer]),
    numbered(({ refunds }) => refunds),
    numbered(({ ledger }) => ledger),
    numbered(({ events }) => events),
  ];
}

/** About how much text a change brings. */
function charactersOf({ answer, payment, transfer, refunds, events }: Change): number {
  let characters = answer.body.length + (payment?.body.length ?? 0) + (transfer?.body.length ?? 0);
  for (const { body } of refunds) characters += body.length;
  for (const { body } of events) characters += body.length;
  return characters;
}
