/** Breaches of the invariants, also after statements that are rolled back. */

import assert from "node:assert/strict";
import type postgres from "postgres";
import { checkBooks } from "../../../apps/operator/check_books.ts";

/** Asserts that no invariant has a breach, whether it is an alarm or not. */
export async function assertSilent(sql: postgres.Sql): Promise<void> {
  assert.deepEqual((await checkBooks(sql)).filter(({ breaches }) => breaches > 0), []);
}

/** Returns the invariants that have a breach. */
export async function saidBy(sql: postgres.Sql): Promise<string[]> {
  const found = (await checkBooks(sql)).filter(({ breaches }) => breaches > 0);
  for (const { examples } of found) assert.ok(examples.length > 0);
  return [...new Set(found.map(({ invariant }) => invariant))].sort();
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
  const session = await sql.reserve();
  try {
    await session`begin`;
    await runUnguarded(session, statements);
    return await look(session);
  } finally {
    await session`rollback`;
    session.release();
  }
}
