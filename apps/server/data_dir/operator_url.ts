/**
 * `<DATA_DIR>/operator_url` (mode 600): the URL by which the operator's commands reach the embedded
 * server of a running start. The start writes the file when its database is ready, and removes it
 * when it ends. A killed start leaves the file behind, so the URL is valid only while a process
 * holds `start.lock`.
 */

import { join } from "node:path";
import { removeIfPresent, writePrivateFile } from "./private_file.ts";

/** Writes the file. The returned function removes it. */
export function publishOperatorUrl(data_dir: string, url: string): () => void {
  writePrivateFile(operatorUrlPath(data_dir), `${url}\n`);
  return () => removeOperatorUrl(data_dir);
}

/** Reads the URL of the running start. Returns null if the start has not written it yet. */
export async function readOperatorUrl(data_dir: string): Promise<string | null> {
  try {
    return (await Deno.readTextFile(operatorUrlPath(data_dir))).trim() || null;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

/** Removes the file if it exists. */
export function removeOperatorUrl(data_dir: string): void {
  removeIfPresent(operatorUrlPath(data_dir));
}

function operatorUrlPath(data_dir: string): string {
  return join(data_dir, "operator_url");
}
