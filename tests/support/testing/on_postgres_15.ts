/**
 * Runs `scripts/testing/test.ts` with the same arguments on Debian's PostgreSQL 15, set up like
 * Supabase's. Starts the server for this run.
 */

import { fileURLToPath } from "node:url";
import { startSupabaseServer } from "../supabase/supabase_server.ts";

const SCRIPT = fileURLToPath(new URL("../../../scripts/testing/test.ts", import.meta.url));

const server = await startSupabaseServer(15, { max_connections: "300" });
try {
  const { code } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", SCRIPT, ...Deno.args],
    env: { TEST_DATABASE_URL: server.admin_url },
  }).spawn().status;
  Deno.exitCode = code;
} finally {
  await server.close();
}
