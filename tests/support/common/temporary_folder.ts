/**
 * A temporary folder for one test. Other accounts can enter it, because for root PostgreSQL runs
 * as another account.
 */

import { join } from "node:path";

/**
 * Runs the work with the path of a folder that does not exist yet, and removes it afterwards.
 * @param dir the folder around it, by default that of the system
 */
export async function withTemporaryFolder<T>(
  work: (path: string) => Promise<T>,
  dir?: string,
): Promise<T> {
  const path = await Deno.makeTempDir({ prefix: "payments-test-", ...(dir && { dir }) });
  if (Deno.build.os !== "windows") await Deno.chmod(path, 0o755);
  try {
    return await work(join(path, "data"));
  } finally {
    await Deno.remove(path, { recursive: true });
  }
}

/** Copies the files of a checkout, without packages and builds. */
export async function copySources(from: string, to: string): Promise<void> {
  await Deno.mkdir(to, { recursive: true });
  for await (const { name, isDirectory } of Deno.readDir(from)) {
    if (["node_modules", "dist", ".venv", "__pycache__"].includes(name)) continue;
    if (isDirectory) await copySources(join(from, name), join(to, name));
    else await Deno.copyFile(join(from, name), join(to, name));
  }
}
