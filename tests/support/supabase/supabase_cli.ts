/** Runs the real Supabase CLI in a copy of the project, because it writes into its folder. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { outputOf, runCommand } from "../common/running_command.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const CLI = "supabase@3.1.0";
/** A token in the form that the CLI requires. The CLI sends it only to a stand-in on loopback. */
const ACCESS_TOKEN = `sbp_${"0".repeat(40)}`;
/** A script in place of `npx`. It runs the CLI with a profile that names the stand-ins. */
const NPX = `#!/bin/sh
PATH=$REAL_PATH
[ "$1 $2" = "-y ${CLI}" ] || { echo "not -y ${CLI}: $*" >&2; exit 1; }
shift 2
for arg; do
  shift
  if [ "$arg" = --remote ]; then arg="--remote=$PROJECT_DB_URL"; fi
  set -- "$@" "$arg"
done
exec "$SUPABASE" "$@" --profile "$PROFILE"
`;
/** The reference of a project, in the form that Supabase uses. */
export const PROJECT_REF = "abcdefghijklmnopqrst";

/** Copies the files of a checkout. The test adds `.env` and other files that git ignores. */
export async function copyProject() {
  const path = await Deno.makeTempDir({ prefix: "payments-project-" });
  for (const name of ["supabase", "shared", "packages/client", "examples", "tests/support"]) {
    await copy(join(ROOT, name), join(path, name));
  }
  for (const name of ["deno.json", "deno.lock"]) {
    await Deno.copyFile(join(ROOT, name), join(path, name));
  }
  // npx takes as long as a command of the CLI, so it runs once.
  const find = ["npx", "-y", `--package=${CLI}`, "-c", "command -v supabase"];
  const program = (await outputOf(find, { env: { npm_config_loglevel: "error" } })).trim();
  const run = (args: string[], env: Record<string, string> = {}) => {
    const own = { SUPABASE_ACCESS_TOKEN: ACCESS_TOKEN, DO_NOT_TRACK: "1" };
    return runCommand({ args, cwd: path, env: { ...own, ...env } });
  };
  return {
    path,
    /** Runs a command: `run("db", "push", …)`. */
    run: (...args: string[]) => run([program, "--workdir", path, ...args]),
    /**
     * Runs a script of a document in the copy. The script calls `npx -y supabase@<version>`, which
     * gets the profile of a stand-in, and this database in place of the project's.
     */
    async runScript(script: string, profile: string, database_url: string) {
      const folder = await Deno.makeTempDir({ prefix: "payments-npx-" });
      const PATH = Deno.env.get("PATH") ?? "";
      try {
        await Deno.writeTextFile(join(folder, "npx"), NPX, { mode: 0o755 });
        return await run(["bash", "-e", "-c", script], {
          PATH: `${folder}:${PATH}`,
          REAL_PATH: PATH,
          SUPABASE: program,
          PROFILE: profile,
          PROJECT_DB_URL: database_url,
        });
      } finally {
        await Deno.remove(folder, { recursive: true });
      }
    },
    [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }),
  };
}

async function copy(from: string, to: string): Promise<void> {
  await Deno.mkdir(to, { recursive: true });
  for await (const { name, isDirectory } of Deno.readDir(from)) {
    // Files that a local stack or a deployment writes, and secrets.
    if ([".temp", ".branches", ".env"].includes(name)) continue;
    if (isDirectory) await copy(join(from, name), join(to, name));
    else await Deno.copyFile(join(from, name), join(to, name));
  }
}
