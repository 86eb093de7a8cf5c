/**
 * Refuses an argument that is no object, such as `"success"` in place of `{ result: "success" }`. A
 * program without type checks would send it, or lose an option.
 */

/** Returns the argument, or throws a `TypeError` that does not show it: it can be a secret. */
export function checkedObject<T>(name: string, value: T): T {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  const kind = value === null ? "null" : Array.isArray(value) ? "an array" : `a ${typeof value}`;
  throw new TypeError(`${name} is ${kind}, but must be an object`);
}
