/** Statements with parameters in the places of their text where they are used. */

import type { Database } from "./database.ts";

/** The arguments of `Database.query`. */
type Statement = [text: string, parameters: (string | null)[]];

/** The texts of templates. A prepared statement is found by its text. */
const TEXTS = new WeakMap<TemplateStringsArray, string>();

/**
 * Makes the statement of a template. Each value is a parameter of the type `text`, which the
 * template can cast: `p_limit => ${10}::int`. An object or a list becomes JSON, and undefined null.
 */
export function sql(parts: TemplateStringsArray, ...values: readonly unknown[]): Statement {
  let text = TEXTS.get(parts);
  if (text === undefined) {
    text = parts.reduce((text, part, i) => `${text}$${i}::text${part}`);
    TEXTS.set(parts, text);
  }
  return [text, values.map(textOf)];
}

/** Returns the template of calls as `pay.list_bank_orders(${id})`: rows as objects, from JSON. */
export function callsOf(database: Pick<Database, "query">) {
  return async <T>(...template: Parameters<typeof sql>): Promise<T[]> => {
    const [call, parameters] = sql(...template);
    const text = `select to_jsonb(t)::text as found from ${call} t`;
    const rows = await database.query<{ found: string }>(text, parameters);
    return rows.map(({ found }) => JSON.parse(found));
  };
}

function textOf(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
