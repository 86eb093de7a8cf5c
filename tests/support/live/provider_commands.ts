/** The operator's commands in the process of a test. */

import type postgres from "postgres";
import type { Surroundings } from "../../../apps/operator/command_line.ts";
import { readCommand } from "../../../apps/operator/operator.ts";
import { connectorsOf } from "../../../apps/operator/operator_database.ts";
import { recordingShell } from "../local/operator.ts";

/** The flags of settings. */
export function setFlags(settings: Readonly<Record<string, string>>): string[] {
  return Object.entries(settings).flatMap(([name, value]) => ["--set", `${name}=${value}`]);
}

/**
 * Runs a command. `out` is its output, and `said` has the lines for people.
 * @param variables the environment of the command
 */
export async function operate(
  sql: postgres.Sql,
  args: readonly string[],
  variables: Readonly<Record<string, string>> = {},
  given: Partial<Surroundings> = {},
): Promise<{ code: number; out: string; said: string[] }> {
  const [name, ...own] = args;
  const all = { PUBLIC_BASE_URL: "https://api.example.com/functions/v1", ...variables };
  const { shell, out, said } = recordingShell((name) => (all as Record<string, string>)[name]);
  const work = await readCommand(name!, own, shell.env);
  const code = await work({
    ...shell,
    sql,
    settings: { data_dir: "", database_url: "" },
    now_ms: Date.now,
    findConnector: connectorsOf(sql),
    ...given,
  });
  return { code: code ?? 0, out: out.join(""), said };
}

/** Returns what runs `deno task providers` for its output. `said` has the lines for people. */
export function providerCommands(
  sql: postgres.Sql,
  variables: Readonly<Record<string, string>> = {},
  given: Partial<Surroundings> = {},
) {
  const said: string[] = [];
  const run = async (...args: readonly string[]): Promise<string> => {
    const ended = await operate(sql, ["providers", ...args], variables, given);
    said.push(...ended.said);
    return ended.out;
  };
  return { run, said };
}
