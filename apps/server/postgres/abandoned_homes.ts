/**
 * Removes databases whose data folder was deleted. For a root caller the files of PostgreSQL can be
 * in a folder of their own (postgres_account.ts), which stays when the data folder is deleted. A
 * file in it names the data folders that use it.
 *
 * A data folder that was moved, or whose disk is not mounted, looks deleted too. So a folder is
 * removed only if nothing has used it for a day, and if the place of the data folder is still on
 * the same disk. The next start in a moved data folder writes its new place.
 */

import { dirname, join } from "node:path";
import { hasServer } from "./postgres_cluster.ts";

const MARKER = "data_folders.json";
/** The names of the folders that `postgresHome` makes. */
const NAME = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** How long a folder must be unused: time to start a project again after it was moved. */
const UNUSED_MS = 24 * 3_600_000;

interface DataFolder {
  path: string;
  device: number;
}

/** Records that a data folder has its databases in `home`. */
export async function noteDataFolder(home: string, data_dir: string): Promise<void> {
  const others = (await readMarker(home) ?? []).filter(({ path }) => path !== data_dir);
  const { dev: device } = await Deno.stat(data_dir);
  const folders = [...others, { path: data_dir, device }];
  await Deno.writeTextFile(join(home, MARKER), `${JSON.stringify(folders)}\n`, { mode: 0o600 });
}

/** Removes the folders in `parent` whose data folders are gone. Returns their number. */
export async function removeAbandonedHomes(parent: string, now_ms = Date.now()): Promise<number> {
  let removed = 0;
  for (const { name, isDirectory } of await listFolder(parent)) {
    const home = join(parent, name);
    if (!isDirectory || !NAME.test(name) || !await isAbandoned(home, now_ms)) continue;
    await Deno.remove(home, { recursive: true });
    removed++;
  }
  return removed;
}

async function isAbandoned(home: string, now_ms: number): Promise<boolean> {
  const folders = await readMarker(home);
  if (folders === null || folders.length === 0) return false;
  for (const folder of folders) if (!await isDeleted(folder)) return false;
  const cluster = join(home, "postgres");
  const used_ms = await Promise.all([
    changedAt(join(home, MARKER)),
    // The server writes this file at each checkpoint and when it ends.
    changedAt(join(cluster, "global", "pg_control")),
  ]);
  return now_ms - Math.max(...used_ms) >= UNUSED_MS && !await hasServer(cluster);
}

/** Reports whether the folder is gone, and not only the disk on which it was. */
async function isDeleted({ path, device }: DataFolder): Promise<boolean> {
  for (let place = path;; place = dirname(place)) {
    try {
      const { dev } = await Deno.stat(place);
      return place !== path && dev === device;
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound) || place === dirname(place)) return false;
    }
  }
}

/** Returns the data folders of a home; null without a file that the caller has written. */
async function readMarker(home: string): Promise<DataFolder[] | null> {
  const marker = join(home, MARKER);
  const found = await Deno.lstat(marker).catch(() => null);
  if (!found?.isFile || found.uid !== Deno.uid()) return null;
  try {
    const folders = JSON.parse(await Deno.readTextFile(marker));
    const is_valid = Array.isArray(folders) &&
      folders.every((each) =>
        typeof each?.path === "string" && each.path.startsWith("/") && Number.isInteger(each.device)
      );
    return is_valid ? folders : null;
  } catch {
    return null;
  }
}

async function changedAt(path: string): Promise<number> {
  const { mtime } = await Deno.stat(path).catch(() => ({ mtime: null }));
  return mtime?.getTime() ?? 0;
}

async function listFolder(path: string): Promise<Deno.DirEntry[]> {
  try {
    return await Array.fromAsync(Deno.readDir(path));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}
