/**
 * Fetches one npm package on demand. If the package were in the project's lock file, every machine
 * would fetch it and all its dependencies. Each fetch uses a temporary lock file with one entry, so
 * Deno refuses a package that does not match its integrity hash.
 */

import { join } from "node:path";

interface NpmPackage {
  name: string;
  version: string;
  /** Hash of the archive, `sha512-…`. */
  integrity: string;
}

/**
 * Runs a module script that imports the package. Deno fetches the package if its cache lacks it.
 * @returns the standard output of the script
 * @throws {Error} with the standard error of Deno
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
