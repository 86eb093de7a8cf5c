/** The operator's commands as child processes without a terminal. */

import { PROJECT_DIR } from "./local_start.ts";

/** A command that has ended. */
export interface EndedCommand {
  code: number;
  /** Standard output, for scripts. */
  out: string;
  /** Standard error, for people. */
  said: string;
}

/** Variables that a command would otherwise take from the process of the tests. */
const NONE = { DATABASE_URL: "", API_KEY_PREFIX: "", PUBLIC_BASE_URL: "", SUPABASE_URL: "" };

/** `deno task operator:NAME …` with these variables. */
export function operatorCommand(
  env: Record<string, string>,
  ...args: readonly string[]
): Deno.Command {
  return new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--quiet", "apps/operator/operator.ts", ...args],
    cwd: PROJECT_DIR,
    env: { ...NONE, ...env },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  });
}

/** Runs a command until it exits. */
export async function runOperator(
  env: Record<string, string>,
  ...args: readonly string[]
): Promise<EndedCommand> {
  const { code, stdout, stderr } = await operatorCommand(env, ...args).output();
  const [out, said] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  return { code, out: out!, said: said! };
}
