/** The real Supabase CLI, run in a copy of the project: it writes into the folder that it works in. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const CLI = "supabase@3.1.0";
/** A token of the form that the CLI wants; it is shown to nobody but a stand-in on loopback. */
const ACCESS_TOKEN = `sbp_${"0".repeat(40)}`;
/** A project's reference, as they look. */
export const PROJECT_REF = "abcdefghijklmnopqrst";

/** What a command said. */
export interface Said {
  code: number;
  stdout: string;
  stderr: string;
}

/** A copy of the project for the CLI. */
export interface CliProject {
  path: string;
  /** Runs a command: `run("db", "push", …)`. */
  run(...args: string[]): Promise<Said>;
  close(): Promise<void>;
}

/** Copies what a checkout holds; `.env` files and what else git ignores are planted by the test. */
export async function copyProject(): Promise<CliProject> {
  const path = await Deno.makeTempDir({ prefix: "payments-project-" });
  for (const name of ["supabase", "shared", "client", "tests/support"]) {
    await copy(join(ROOT, name), join(path, name));
  }
  for (const name of ["deno.json", "deno.lock"]) {
    await Deno.copyFile(join(ROOT, name), join(path, name));
  }
  return {
    path,
    async run(...args) {
      const { code, stdout, stderr } = await new Deno.Command("npx", {
        args: ["-y", CLI, "--workdir", path, ...args],
        cwd: path,
        env: {
          SUPABASE_ACCESS_TOKEN: ACCESS_TOKEN,
          DO_NOT_TRACK: "1",
          NO_COLOR: "1",
          npm_config_update_notifier: "false",
        },
        stdin: "null",
      }).output();
      const [out, err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
      return { code, stdout: out!, stderr: err! };
    },
    close: () => Deno.remove(path, { recursive: true }),
  };
}

async function copy(from: string, to: string): Promise<void> {
  await Deno.mkdir(to, { recursive: true });
  for await (const { name, isDirectory } of Deno.readDir(from)) {
    // What a local stack or a deployment leaves there, and secrets.
    if ([".temp", ".branches", ".env"].includes(name)) continue;
    if (isDirectory) await copy(join(from, name), join(to, name));
    else await Deno.copyFile(join(from, name), join(to, name));
  }
}
