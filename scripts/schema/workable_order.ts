/** Statements in an order that works, found by trying. */

import type { TransactionSql } from "postgres";

/** The outcome for each item. */
interface WorkableOrder<Item> {
  /** Those whose statements have run, in the order in which they did. */
  done: Item[];
  /** Those that the database refuses in any order, with its reason. */
  refused: [Item, Error][];
}

/**
 * Runs the statements of each item, and those that fail again after the others, for as long as that
 * gets any further. A failed one leaves no trace.
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
