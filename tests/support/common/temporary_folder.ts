/** A folder for one test. Other accounts can enter it, because PostgreSQL never runs as root. */

import { join } from "node:path";

/** Runs the work with an empty folder and removes it. */
export async function withTemporaryFolder<T>(work: (path: string) => Promise<T>): Promise<T> {
  const path = await Deno.makeTempDir({ prefix: "payments-test-" });
  if (Deno.build.os !== "windows") await Deno.chmod(path, 0o755);
  try {
    return await work(join(path, "data"));
  } finally {
    await Deno.remove(path, { recursive: true });
  }
}
