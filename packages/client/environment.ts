/**
 * The environment of the program: `Deno.env`, or `process.env` of Node, Bun and other runtimes that
 * have it. Browsers and some edge runtimes have none.
 */

/** The parts of the global object that hold an environment. */
export interface EnvironmentHolder {
  Deno?: { env?: { get(name: string): string | undefined } };
  process?: { env?: Readonly<Record<string, string | undefined>> };
}

/**
 * Returns a variable of the environment. Returns undefined if it is not set or empty, or if there
 * is no environment. Without the permission to read it, Deno throws an error that says so.
 */
export function readVariable(
  name: string,
  holder: EnvironmentHolder = globalThis as EnvironmentHolder,
): string | undefined {
  const value = holder.Deno?.env ? holder.Deno.env.get(name) : holder.process?.env?.[name];
  return value || undefined;
}
