/**
 * Refuses an argument that is no object, such as `"success"` in place of `{ result: "success" }`,
 * and options that do not exist, such as `idempotency_key`. A program without type checks would
 * send the one, and lose the other.
 */

/** Returns the argument, or throws a `TypeError` that does not show it: it can be a secret. */
export function checkedObject<T>(name: string, value: T): T {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  const kind = value === null ? "null" : Array.isArray(value) ? "an array" : `a ${typeof value}`;
  throw new TypeError(`${name} is ${kind}, but must be an object`);
}

/** Returns options, or throws a `TypeError` for one that has a value and is not among the known. */
export function checkedOptions<T extends object>(options: T, known: readonly string[]): T {
  for (const [name, value] of Object.entries(checkedObject("options", options))) {
    if (value === undefined || known.includes(name)) continue;
    throw new TypeError(
      `${JSON.stringify(name.slice(0, 100))} is not an option: there are ${known.join(", ")}`,
    );
  }
  return options;
}
