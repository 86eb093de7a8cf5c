/**
 * One npm package, fetched when it is needed and not before: the project's lock file would make
 * every machine fetch it, and all that it names as its dependencies. A lock file of one entry is made
 * for the fetch; a package that differs from its integrity is refused.
 */

import { join } from "node:path";

/** A package as the npm registry publishes it. */
interface NpmPackage {
  name: string;
  version: string;
  /** `sha512-…` of its archive. */
  integrity: string;
}

/**
 * Runs a module script that imports the package, fetching it if the cache of npm packages lacks it.
 * @returns what the script writes to standard output
 * @throws {Error} with what the runtime said
 */
export async function runWithPackage(
  { name, version, integrity }: NpmPackage,
  script: string,
  signal?: AbortSignal,
): Promise<Uint8Array<ArrayBuffer>> {
  const id = `${name}@${version}`;
  const lock_dir = await Deno.makeTempDir({ prefix: "npm-package-" });
  try {
    const lock = join(lock_dir, "deno.lock");
    await Deno.writeTextFile(
      lock,
      JSON.stringify({
        version: "5",
        specifiers: { [`npm:${id}`]: version },
        npm: { [id]: { integrity } },
      }),
    );
    const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["eval", "--quiet", "--no-config", `--lock=${lock}`, "--frozen", script],
      env: { NO_COLOR: "1" },
      stdin: "null",
      ...(signal && { signal }),
    }).output();
    if (success) return stdout;
    throw new Error(
      `Could not fetch the package ${id}:\n${new TextDecoder().decode(stderr).trim()}`,
    );
  } finally {
    await Deno.remove(lock_dir, { recursive: true });
  }
}
