/**
 * Runs the server that test files share when `deno test FILE` runs them. It ends, and removes its
 * folder, when no test has used it for IDLE_MS.
 *
 * Usage: shared_server.ts FOLDER
 */

import { join } from "node:path";
import { takeFileLock } from "../../apps/server/data_dir/file_lock.ts";
import { writePrivateFile } from "../../apps/server/data_dir/private_file.ts";
import { openConnection } from "../../apps/server/postgres/connection.ts";
import { startServer } from "./scratch_server.ts";
import { createTemplate } from "./test_server.ts";

const IDLE_MS = 10 * 60_000;
const POLL_MS = 15_000;

if (import.meta.main) await main(Deno.args[0]!);

async function main(folder: string): Promise<void> {
  // PostgreSQL can run as another account, which must be able to enter the folder.
  await Deno.chmod(folder, 0o711);
  const lock = takeFileLock(join(folder, "lock"));
  if ("held_by" in lock) return;
  await Deno.remove(join(folder, "data"), { recursive: true }).catch(() => {});
  const server = await startServer(folder);
  try {
    const text = JSON.stringify(await createTemplate({ ...server, folder }, "shared"));
    writePrivateFile(join(folder, "server.json"), text);
    await untilIdle(server.superuser_url);
  } finally {
    await Deno.remove(join(folder, "server.json")).catch(() => {});
    await server.close();
    await Deno.remove(folder, { recursive: true });
    lock.release();
  }
}

async function untilIdle(url: string): Promise<void> {
  await using sql = openConnection(url);
  let used_at = Date.now();
  while (Date.now() - used_at < IDLE_MS) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    const [{ sessions }] = await sql<[{ sessions: number }]>`
      select count(*)::int as sessions from pg_stat_activity
      where starts_with(datname, 'pay_test_')`;
    if (sessions > 0) used_at = Date.now();
  }
}
