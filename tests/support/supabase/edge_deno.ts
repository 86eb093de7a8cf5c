/**
 * Finds Deno 2.1.4, which has the language level of Supabase's edge runtime. It uses its own cache
 * and does not read the project's lock file.
 */

import { join } from "node:path";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { cacheDir } from "../../../apps/server/data_dir/cache_dir.ts";
import { outputOf } from "../common/running_command.ts";
import { oncePerRun } from "../database/once_per_run.ts";

const PROJECT = fileURLToPath(new URL("../../../", import.meta.url));
const FUNCTIONS = ["api-v1-payments", "api-v1-sandbox"];
const VERSION = "2.1.4";

/** The program and its environment variables. */
interface EdgeDeno {
  path: string;
  env: Record<string, string>;
}

/**
 * Finds the program. Fetches it and the packages of the functions, so that the output and the time
 * of a function's start do not depend on the cache.
 * @throws {Error} with the message of npm or Deno
 */
export async function edgeDeno(): Promise<EdgeDeno> {
  const env = {
    DENO_DIR: join(cacheFolder(), `payments-deno-${VERSION}`),
    DENO_TLS_CA_STORE: "mozilla,system",
    DENO_NO_UPDATE_CHECK: "1",
    NO_COLOR: "1",
  };
  return { path: await oncePerRun("edge_deno", () => find(env)), env };
}

async function find(env: EdgeDeno["env"]): Promise<string> {
  const show_path = ["eval", "--no-lock", "--no-config", "console.log(Deno.execPath())"];
  const path = (await outputOf(["npx", "-y", `deno@${VERSION}`, ...show_path], { env })).trim();
  for (const name of FUNCTIONS) {
    const folder = join(PROJECT, "supabase/functions", name);
    const modules = [
      join(folder, "index.ts"),
      join(PROJECT, "tests/support/supabase/edge_main.ts"),
    ];
    const cache = ["cache", "--no-lock", "--config", join(folder, "deno.json"), ...modules];
    await outputOf([path, ...cache], { env });
  }
  return path;
}

/** The DENO_DIR of this run if it is set, or else a folder that later runs use again. */
function cacheFolder(): string {
  const env = (name: string) => Deno.env.get(name);
  return env("DENO_DIR") ?? cacheDir(env) ?? tmpdir();
}
