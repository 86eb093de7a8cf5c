/** The operator's commands as child processes without a terminal. */

import { type Command, runCommand } from "../common/running_command.ts";

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
export function operatorCommand(env: Record<string, string>, ...args: readonly string[]): Command {
  const run = [Deno.execPath(), "run", "-A", "--quiet", "apps/operator/operator.ts"];
  return { args: [...run, ...args], env: { ...NONE, ...env } };
}

/** Runs a command until it exits. */
export async function runOperator(
  env: Record<string, string>,
  ...args: readonly string[]
): Promise<EndedCommand> {
  const { code, stdout, stderr } = await runCommand(operatorCommand(env, ...args));
  return { code, out: stdout, said: stderr };
}
