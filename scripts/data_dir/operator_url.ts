/**
 * `<DATA_DIR>/operator_url` (mode 600): how the operator's commands reach the embedded server of a
 * start that runs. The start writes it when its database is ready and removes it at its end. What is
 * left of one that was killed is recognised by `start.lock`, which nobody holds any more.
 */

import { join } from "node:path";
import { writePrivateFile } from "./private_file.ts";

/** Writes the file; the returned function removes it. */
export function publishOperatorUrl(data_dir: string, url: string): () => void {
  writePrivateFile(operatorUrlPath(data_dir), `${url}\n`);
  return () => removeOperatorUrl(data_dir);
}

/** The URL of a start that runs, or null while it is still starting. */
export async function readOperatorUrl(data_dir: string): Promise<string | null> {
  try {
    return (await Deno.readTextFile(operatorUrlPath(data_dir))).trim() || null;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

/** Removes the file if there is one: its start's own end, or what a killed one has left. */
export function removeOperatorUrl(data_dir: string): void {
  try {
    Deno.removeSync(operatorUrlPath(data_dir));
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

function operatorUrlPath(data_dir: string): string {
  return join(data_dir, "operator_url");
}
