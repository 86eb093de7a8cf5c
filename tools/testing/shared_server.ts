/**
 * Runs the server that test files share when `deno test FILE` runs them. It ends, and removes its
 * folder, when no test has used it for IDLE_MS.
 *
 * Usage: shared_server.ts FOLDER
 */

import postgres from "postgres";
import { join } from "node:path";
import { createTemplate, startServer } from "./test_server.ts";

const IDLE_MS = 10 * 60_000;
const POLL_MS = 15_000;

if (import.meta.main) await main(Deno.args[0]!);

async function main(folder: string): Promise<void> {
  // PostgreSQL can run as another account, which must be able to enter the folder.
  await Deno.chmod(folder, 0o711);
  using lock = await Deno.open(join(folder, "lock"), { create: true, write: true });
  if (!await lock.tryLock(true)) return;
  await Deno.remove(join(folder, "data"), { recursive: true }).catch(() => {});
  const server = await startServer(folder);
  try {
    const template = await createTemplate(server.superuser_url, "shared");
    const { superuser_url, programs_home } = server;
    const text = JSON.stringify({ ...template, superuser_url, programs_home, pooler_port: null });
    await Deno.writeTextFile(join(folder, "new.json"), text, { mode: 0o600 });
    await Deno.rename(join(folder, "new.json"), join(folder, "server.json"));
    await untilIdle(superuser_url);
  } finally {
    await Deno.remove(join(folder, "server.json")).catch(() => {});
    await server.close();
    await Deno.remove(folder, { recursive: true });
  }
}

async function untilIdle(url: string): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  let used_at = Date.now();
  while (Date.now() - used_at < IDLE_MS) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    const [{ sessions }] = await sql<[{ sessions: number }]>`
      select count(*)::int as sessions from pg_stat_activity
      where starts_with(datname, 'pay_test_')`;
    if (sessions > 0) used_at = Date.now();
  }
  await sql.end();
}
