/**
 * The cache of this account: files that every data folder shares and that can be made again. It has
 * the name of the npm package, which is also what a CI job keeps between its runs.
 */

import { join } from "node:path";
import PACKAGE from "../../../packages/sandbox/package.json" with { type: "json" };

/**
 * Returns CACHE_DIR, or else the usual place of the system. PostgreSQL does not run as root, and
 * the account that runs it cannot enter the home of root, so root has a folder below /var/cache.
 * @param env reads an environment variable
 * @returns null if the system has no usual place, for example without HOME
 */
export function cacheDir(env: (name: string) => string | undefined): string | null {
  const read = (name: string) => env(name)?.trim() || null;
  const own = read("CACHE_DIR");
  if (own !== null) return own;
  const parent = usualPlace(read);
  return parent === null ? null : join(parent, PACKAGE.name);
}

function usualPlace(read: (name: string) => string | null): string | null {
  if (Deno.build.os === "windows") return read("LOCALAPPDATA");
  if (Deno.uid() === 0) return "/var/cache";
  const home = read("HOME");
  if (Deno.build.os === "darwin") return home && join(home, "Library", "Caches");
  return read("XDG_CACHE_HOME") ?? (home && join(home, ".cache"));
}
