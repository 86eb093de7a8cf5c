/** Programs of the system that tests start. */

import { delimiter, join } from "node:path";
import { launchCommand } from "./running_command.ts";

/** Returns the first of the paths at which a program is installed, or null. */
export async function findProgram(places: readonly string[]): Promise<string | null> {
  for (const path of places) {
    if (await Deno.stat(path).then(() => true, () => false)) return path;
  }
  return null;
}

/** Reports whether a program takes connections at a loopback port. */
export async function listens(port: number): Promise<boolean> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port }).catch(() => null);
  connection?.close();
  return connection !== null;
}

/** Returns the places of a program: the path that a variable names, or the folders of PATH. */
export function placesOf(name: string, variable: string): string[] {
  const named = Deno.env.get(variable);
  const folders = (Deno.env.get("PATH") ?? "").split(delimiter).filter((path) => path !== "");
  return named ? [named] : folders.map((folder) => join(folder, name));
}

/**
 * Starts a program that listens on loopback and prints its address.
 * @param printed matches the output that has the address
 * @throws {Error} if the program ends before
 */
export async function startListening(executable: string, args: string[], printed: RegExp) {
  const { pid, printed: isPrinted, end } = launchCommand({ args: [executable, ...args] });
  const [, address] = await isPrinted(printed);
  return { pid, url: `http://${address}`, close: async () => void await end("SIGKILL") };
}

/** Returns the programs that this machine lacks. */
export async function missingPrograms(names: readonly string[]): Promise<string[]> {
  const missing: string[] = [];
  for (const name of names) {
    try {
      await new Deno.Command(name, { args: ["--version"], stdout: "null", stderr: "null" })
        .output();
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
      missing.push(name);
    }
  }
  return missing;
}

/**
 * Whether tests that need programs are skipped, because this machine lacks one of them. In CI a
 * missing program is a failure.
 */
export async function lacksPrograms(tests: string, names: readonly string[]): Promise<boolean> {
  const missing = await missingPrograms(names);
  const is_skipped = missing.length > 0 && Deno.env.get("CI") === undefined;
  if (is_skipped) console.warn(`Not run unless CI is set: ${tests}, no ${missing.join(", ")}`);
  return is_skipped;
}

/** Registers a test that needs a program. Without it the test is skipped, but in CI it fails. */
export function testWith(
  program: string,
  is_there: boolean,
  name: string,
  fn: (t: Deno.TestContext) => void | Promise<void>,
): void {
  const ignore = !is_there && Deno.env.get("CI") === undefined;
  if (ignore) console.warn(`${program} is not installed; skipped unless CI is set: ${name}`);
  Deno.test({ name, ignore, fn });
}
