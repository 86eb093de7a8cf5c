/** Breaches of the invariants, also after statements that are rolled back. */

import assert from "node:assert/strict";
import type postgres from "postgres";
import { openSession } from "./database.ts";
import { checkBooks } from "../../../apps/operator/check_books.ts";

/** Asserts that no invariant has a breach, whether it is an alarm or not. */
export async function assertSilent(sql: postgres.Sql): Promise<void> {
  assert.deepEqual((await checkBooks(sql)).filter(({ breaches }) => breaches > 0), []);
}

/** Returns the names of the invariants that have a breach, without their prefix. */
export async function saidBy(sql: postgres.Sql): Promise<string[]> {
  const found = (await checkBooks(sql)).filter(({ breaches }) => breaches > 0);
  for (const { examples } of found) assert.ok(examples.length > 0);
  return [...new Set(found.map(({ invariant }) => invariant.replace("invariant_", "")))].sort();
}

/** The invariants (`pay.invariant_*`) that must find breaches, in words, and SQL that makes each. */
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

/** Returns the result of `look` after some statements, which no trigger refuses, and which are rolled back. */
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
