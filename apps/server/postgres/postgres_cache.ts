/** The folder with PostgreSQL's programs and with prepared databases, for every data folder. */

import { resolve } from "node:path";
import { cacheDir } from "../data_dir/cache_dir.ts";
import { type Account, canReach } from "./postgres_account.ts";

/**
 * Returns the cache of this account, and creates it if it is missing.
 * @param fallback the folder to use if the cache cannot be created, or if the account that runs
 * PostgreSQL cannot enter it
 */
export async function postgresCache(account: Account, fallback: string): Promise<string> {
  const path = cacheDir((name) => Deno.env.get(name));
  if (path === null) return fallback;
  try {
    await Deno.mkdir(path, { recursive: true, mode: 0o755 });
  } catch {
    return fallback;
  }
  const is_usable = !("uid" in account) || await canReach(account, path);
  return is_usable ? resolve(path) : fallback;
}
