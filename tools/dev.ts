/**
 * `deno task dev`: the local start, started again when a file of the service, the console or the
 * documents changes. Its data stay. Arguments and variables are those of `deno task start`.
 */

import { fileURLToPath } from "node:url";
import { START_COMMAND } from "../packages/sandbox/start_command.ts";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const WATCHED = ["apps", "docs", "packages", "shared", "supabase", "tools/site", "tools/generate"];
/** Editors write a file in several steps. */
const QUIET_MS = 300;

if (import.meta.main) await main();

async function main(): Promise<void> {
  using watcher = Deno.watchFs(WATCHED.map((folder) => ROOT + folder));
  let service = start();
  let is_over = false;
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    Deno.addSignalListener(signal, () => {
      is_over = true;
      watcher.close();
      // Ctrl-C in a terminal reaches the service by itself.
      if (signal === "SIGTERM") end(service);
    });
  }
  let timer: ReturnType<typeof setTimeout> | undefined;
  let restarting = false;
  const restart = async () => {
    // The start that follows has the newest files.
    if (restarting) return;
    restarting = true;
    end(service);
    await service.status;
    if (!is_over) service = start();
    restarting = false;
  };
  for await (const { kind } of watcher) {
    if (kind === "access") continue;
    clearTimeout(timer);
    timer = setTimeout(restart, QUIET_MS);
  }
  clearTimeout(timer);
  await service.status;
}

function start(): Deno.ChildProcess {
  return new Deno.Command(Deno.execPath(), {
    args: [...START_COMMAND, ...Deno.args],
    cwd: ROOT,
  }).spawn();
}

function end(service: Deno.ChildProcess): void {
  try {
    service.kill("SIGTERM");
  } catch {
    // It has ended by itself, for example after an error of syntax.
  }
}
