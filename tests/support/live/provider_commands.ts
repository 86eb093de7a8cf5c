/** `deno task providers` in the process of a test. */

import type postgres from "postgres";
import { connectorsOf } from "../../../apps/operator/operator_database.ts";
import { readProviderCommand } from "../../../apps/operator/providers.ts";
import type { ConnectorFinder } from "../../../shared/domain/providers/connector.ts";

/** The flags of settings. */
export function setFlags(settings: Readonly<Record<string, string>>): string[] {
  return Object.entries(settings).flatMap(([name, value]) => ["--set", `${name}=${value}`]);
}

/**
 * Returns what runs a command and returns its output. `said` has the lines for people.
 * @param variables the environment of the commands
 */
export function providerCommands(
  sql: postgres.Sql,
  variables: Readonly<Record<string, string>> = {},
  findConnector: ConnectorFinder = connectorsOf(sql),
) {
  const said: string[] = [];
  const run = async (...args: readonly string[]): Promise<string> => {
    let printed = "";
    await readProviderCommand(args)({
      ...{ sql, findConnector, env: (name) => variables[name] },
      baseUrl: () => Promise.resolve("https://api.example.com/functions/v1"),
      print: (text) => printed += text,
      printMessage: (line) => said.push(line),
    });
    return printed;
  };
  return { run, said };
}
