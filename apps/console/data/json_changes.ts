/** The differences of two JSON values, member by member. */

/** A member that two values do not have in common. An absent value is undefined. */
export interface JsonChange {
  /** The names from the outside in: `method.card.last4`. */
  path: string;
  before: unknown;
  after: unknown;
}

/** Returns the members that differ, in the order of `after`. Lists are compared as a whole. */
export function jsonChanges(before: unknown, after: unknown, path = ""): JsonChange[] {
  if (!isObject(before) || !isObject(after)) {
    return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ path, before, after }];
  }
  const names = new Set([...Object.keys(after), ...Object.keys(before)]);
  return [...names].flatMap((name) =>
    jsonChanges(before[name], after[name], path === "" ? name : `${path}.${name}`)
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
