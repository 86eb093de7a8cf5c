/**
 * The server of test files that `deno test FILE` runs. The first file starts it, the next ones find
 * it, and it ends when no test has used it for some minutes (tools/testing/shared_server.ts).
 */

import { createHash } from "node:crypto";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import postgres from "postgres";

const PROGRAM = fileURLToPath(new URL("../../../tools/testing/shared_server.ts", import.meta.url));
const SUPABASE = fileURLToPath(new URL("../../../supabase/", import.meta.url));
/** Begins the error of a test that needs a database where there is none. */
export const NO_SERVER = "These tests need a database";
/** A first start fetches PostgreSQL. */
const PATIENCE_MS = 120_000;
const POLL_MS = 100;

/**
 * Returns the content of TEST_SERVER of the shared server of this user and these migrations.
 * @throws {Error} with the command that starts it, if it does not start
 */
export async function sharedServer(): Promise<string> {
  const folder = join(tmpdir(), `payments-test-${userInfo().username}-${await digest()}`);
  const file = join(folder, "server.json");
  const found = await readServer(file);
  if (found !== null) return found;
  await Deno.mkdir(folder, { recursive: true });
  // A second one ends by itself, because the first one has the lock of the folder.
  new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", PROGRAM, folder],
    env: { TEST_SERVER: "" },
    stdin: "null",
    stdout: "null",
    stderr: "null",
    detached: true,
  }).spawn().unref();
  for (let waited_ms = 0; waited_ms < PATIENCE_MS; waited_ms += POLL_MS) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    const server = await readServer(file);
    if (server !== null) return server;
  }
  throw new Error(`No server after ${PATIENCE_MS} ms: run "deno run -A ${PROGRAM} ${folder}"`);
}

/** Returns the text if the server that it names responds, or null. */
async function readServer(file: string): Promise<string | null> {
  const text = await Deno.readTextFile(file).catch(() => null);
  if (text === null) return null;
  const sql = postgres(JSON.parse(text).superuser_url, { max: 1, onnotice: () => {} });
  try {
    await sql`select 1`;
    return text;
  } catch {
    return null;
  } finally {
    await sql.end();
  }
}

/** A template belongs to its migrations and schema files, and to this form of TestServer. */
async function digest(): Promise<string> {
  const hash = createHash("sha256").update("2");
  for (const part of ["migrations", "schemas"]) {
    const names: string[] = [];
    for await (const { name } of Deno.readDir(join(SUPABASE, part))) {
      // The start writes this file from the schema files.
      if (!name.endsWith("_functions.sql")) names.push(name);
    }
    for (const name of names.sort()) hash.update(await Deno.readFile(join(SUPABASE, part, name)));
  }
  return hash.digest("hex").slice(0, 12);
}
