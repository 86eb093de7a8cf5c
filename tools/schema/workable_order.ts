/** Finds an order of statements in which the database accepts them, by trial. */

import type { TransactionSql } from "postgres";

/** The result for each item. */
interface WorkableOrder<Item> {
  /** Items whose statements have run, in that order. */
  done: Item[];
  /** Items that the database refuses in any order, with its error. */
  refused: [Item, Error][];
}

/**
 * Runs the statements of each item in the given order. Failed ones are rolled back and run again
 * after the others, until all have succeeded or a pass in which none succeeds.
 */
export async function workableOrder<Item>(
  sql: TransactionSql,
  items: readonly Item[],
  statementsOf: (item: Item) => string,
): Promise<WorkableOrder<Item>> {
  const done: Item[] = [];
  for (let left = items;;) {
    const refused: [Item, Error][] = [];
    for (const item of left) {
      try {
        await sql.savepoint((nested) => nested.unsafe(statementsOf(item)).simple());
        done.push(item);
      } catch (error) {
        refused.push([item, error as Error]);
      }
    }
    if (refused.length === 0 || refused.length === left.length) return { done, refused };
    left = refused.map(([item]) => item);
  }
}
