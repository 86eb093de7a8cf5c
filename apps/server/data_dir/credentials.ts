/**
 * Reads and writes `<DATA_DIR>/credentials.json` (mode 600). The file holds the base URL and the
 * demo keys, so that people and scripts can call the running service.
 */

import { join } from "node:path";
import { writePrivateFile } from "./private_file.ts";

export interface DemoKeys {
  test_key: string;
  live_key: string;
}

/** The content of the file. */
export interface Credentials extends DemoKeys {
  base_url: string;
}

export function credentialsPath(data_dir: string): string {
  return join(data_dir, "credentials.json");
}

/** Reads what an earlier start has written: nothing if the file is missing or not valid JSON. */
export async function readCredentials(data_dir: string): Promise<Partial<Credentials>> {
  try {
    const members = Object.entries(JSON.parse(await Deno.readTextFile(credentialsPath(data_dir))));
    return Object.fromEntries(members.filter(([, value]) => typeof value === "string"));
  } catch {
    return {};
  }
}

/** Replaces the file atomically: a reader sees the old content or the new, never a part. */
export function writeCredentials(data_dir: string, credentials: Credentials): void {
  const { base_url, test_key, live_key } = credentials;
  const text = JSON.stringify({ base_url, test_key, live_key }, null, 2) + "\n";
  writePrivateFile(credentialsPath(data_dir), text);
}
