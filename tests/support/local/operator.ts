/** The operator's commands, in the process of a test or as programs without a terminal. */

import type { Env, Shell } from "../../../apps/operator/command_line.ts";
import { runOperatorCommand } from "../../../apps/operator/operator.ts";
import { type Command, runCommand } from "../common/running_command.ts";

/** A command that has ended. */
export interface EndedCommand {
  code: number;
  /** Standard output, for scripts. */
  out: string;
  /** Standard error, for people. */
  said: string;
}

/** Variables that a program would otherwise take from the process of the tests. */
const NONE = { DATABASE_URL: "", API_KEY_PREFIX: "", PUBLIC_BASE_URL: "", SUPABASE_URL: "" };

/** `deno task operator:NAME …` with these variables. */
export function operatorCommand(env: Record<string, string>, ...args: readonly string[]): Command {
  const run = [Deno.execPath(), "run", "-A", "--quiet", "apps/operator/operator.ts"];
  return { args: [...run, ...args], env: { ...NONE, ...env } };
}

/** Runs a command as a program until it exits. */
export async function runOperatorProgram(
  env: Record<string, string>,
  ...args: readonly string[]
): Promise<EndedCommand> {
  const { code, stdout, stderr } = await runCommand(operatorCommand(env, ...args));
  return { code, out: stdout, said: stderr };
}

/** Runs a command in this process, with these variables alone: in a fraction of the time. */
export async function runOperator(
  env: Readonly<Record<string, string>>,
  ...args: readonly string[]
): Promise<EndedCommand> {
  const { shell, out, said } = recordingShell((name) => env[name]);
  const code = await runOperatorCommand(args, shell);
  return { code, out: out.join(""), said: said.map((line) => `${line}\n`).join("") };
}

/** Returns a shell without a terminal, and the texts and lines that a command prints there. */
export function recordingShell(env: Env): { shell: Shell; out: string[]; said: string[] } {
  const [out, said]: [string[], string[]] = [[], []];
  const shell = {
    env,
    print: (text: string) => void out.push(text),
    printMessage: (line: string) => void said.push(line),
    columns: () => null,
    confirm: () => null,
  };
  return { shell, out, said };
}
