/**
 * Deno 2.1.4, the language level of Supabase's edge runtime: its program, and how it is run. It has
 * a cache of its own and reads no lock file of ours.
 */

import { join } from "node:path";
import { tmpdir } from "node:os";

const VERSION = "2.1.4";
/** Names the program where it has been looked up already; set by `deno task test` for its files. */
export const EDGE_DENO = "TEST_EDGE_DENO";

/** How a function is run. */
export interface EdgeDeno {
  path: string;
  env: Record<string, string>;
}

let found: Promise<EdgeDeno> | undefined;

/** Finds the program, fetching it from npm when it is not there. Errors: npm's own words. */
export function edgeDeno(): Promise<EdgeDeno> {
  return found ??= find();
}

async function find(): Promise<EdgeDeno> {
  const env = {
    DENO_DIR: join(tmpdir(), `payments-deno-${VERSION}`),
    DENO_TLS_CA_STORE: "mozilla,system",
    DENO_NO_UPDATE_CHECK: "1",
    NO_COLOR: "1",
  };
  const path = Deno.env.get(EDGE_DENO) ?? await pathOf(env);
  return { path, env };
}

async function pathOf(env: Record<string, string>): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command("npx", {
    args: [
      "-y",
      `deno@${VERSION}`,
      "eval",
      "--no-lock",
      "--no-config",
      "console.log(Deno.execPath())",
    ],
    env,
  }).output();
  if (!success) throw new Error(`No Deno ${VERSION}: ${new TextDecoder().decode(stderr)}`);
  return new TextDecoder().decode(stdout).trim();
}
