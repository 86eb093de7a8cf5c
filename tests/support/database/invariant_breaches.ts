/** Breaches of the invariants, also after statements that are rolled back. */

import assert from "node:assert/strict";
import type postgres from "postgres";
import { openSession } from "./database.ts";
import { checkBooks } from "../../../apps/operator/check_books.ts";

/** Asserts that no invariant has a breach, whether it is an alarm or not. */
export async function assertSilent(sql: postgres.Sql): Promise<void> {
  assert.deepEqual((await checkBooks(sql)).filter(({ breaches }) => breaches > 0), []);
}

/** The invariants whose breaches in sandboxes are alarms: no tester can cause them. */
const ARITHMETIC = ["ledger_legs", "ledger_totals", "payment_money", "refunds", "texts"]
  .concat("transfer_money");

/**
 * Returns the names of the invariants that have a breach, without their prefix. Asserts which
 * breaches are only notes: those of sandboxes, but for those of arithmetic.
 */
export async function saidBy(sql: postgres.Sql): Promise<string[]> {
  const live = (await sql`select id from pay.environments where livemode`).map(({ id }) => id);
  const names = new Set<string>();
  for (const { invariant, breaches, severity, examples } of await checkBooks(sql)) {
    if (breaches === 0) continue;
    assert.ok(examples.length > 0);
    const name = invariant.replace("invariant_", "");
    names.add(name);
    for (const example of examples) {
      const is_alarm = live.includes(example.split(" ", 1)[0]) || ARITHMETIC.includes(name);
      assert.equal(severity !== "note", is_alarm, `${invariant}: ${example}`);
    }
  }
  return [...names].sort();
}

/** The invariants (`pay.invariant_*`) that must find breaches: words, and SQL that makes each. */
export type Breaks = [invariants: string, ...statements: string[]];

/** SQL of another text in the bodies of rows. */
export function reword(table: string, text: string, other: string, where = "true"): string {
  return `update pay.${table} set body = replace(body, '${text}', '${other}') where ${where}`;
}

/**
 * Asserts in a step for each breach which invariants find it.
 * @param named values of the names in the statements, such as `:newest`
 */
export async function assertBreaks(
  t: Deno.TestContext,
  sql: postgres.Sql,
  breaks: readonly Breaks[],
  named: Record<string, string> = {},
): Promise<void> {
  for (const [invariants, ...all] of breaks) {
    for (const statements of all) {
      await t.step(`${statements}: ${invariants}`, async () => {
        const text = statements.replaceAll(
          /:([a-z]+)\b/g,
          (all, name) => name in named ? `'${named[name]}'` : all,
        );
        assert.equal((await afterwards(sql, text, saidBy)).join(" "), invariants);
      });
    }
  }
}

/** Runs statements past the triggers that protect the past. */
export async function runUnguarded(sql: postgres.Sql, statements: string): Promise<void> {
  await sql.unsafe(`set local session_replication_role = replica; ${statements}`);
}

/**
 * Returns the result of `look` after statements that no trigger refuses and that are rolled back.
 */
export async function afterwards<T>(
  sql: postgres.Sql,
  statements: string,
  look: (session: postgres.Sql) => Promise<T>,
): Promise<T> {
  await using session = await openSession(sql);
  await session`begin`;
  await runUnguarded(session, statements);
  return await look(session);
}
