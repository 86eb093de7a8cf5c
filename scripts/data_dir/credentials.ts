/** `<DATA_DIR>/credentials.json`: how scripts and people find the running service (mode 600). */

import { join } from "node:path";
import { writePrivateFile } from "./private_file.ts";

/** The keys of the demo account. */
export interface DemoKeys {
  test_key: string;
  live_key: string;
}

/** The content of the file. */
export interface Credentials extends DemoKeys {
  base_url: string;
}

/** Where the file is. */
export function credentialsPath(data_dir: string): string {
  return join(data_dir, "credentials.json");
}

/** The keys of an earlier start; nothing where the file is missing or no longer makes sense. */
export async function readDemoKeys(data_dir: string): Promise<Partial<DemoKeys>> {
  const text = await Deno.readTextFile(credentialsPath(data_dir)).catch(() => "{}");
  try {
    const { test_key, live_key } = JSON.parse(text);
    return {
      ...(typeof test_key === "string" && { test_key }),
      ...(typeof live_key === "string" && { live_key }),
    };
  } catch {
    return {};
  }
}

/** Writes the file whole, at once: a reader sees the old content or the new. */
export function writeCredentials(data_dir: string, credentials: Credentials): void {
  const { base_url, test_key, live_key } = credentials;
  const text = JSON.stringify({ base_url, test_key, live_key }, null, 2) + "\n";
  writePrivateFile(credentialsPath(data_dir), text);
}
