/** The command line of the npm package, run from its sources: in this process, or as a program. */

import { fileURLToPath } from "node:url";
import { runCommand } from "../../../packages/sandbox/run_command.ts";
import { launchCommand, type RunningCommand } from "../common/running_command.ts";
import { type ServedService, withServedService } from "../service/served_service.ts";

const PROJECT_DIR = new URL("../../../", import.meta.url);
/**
 * The arguments of Deno that run the program. Deno would take the package.json beside the program
 * for the configuration of the project.
 */
export const PROGRAM = [
  "run",
  "-A",
  `--config=${fileURLToPath(new URL("deno.json", PROJECT_DIR))}`,
  fileURLToPath(new URL("packages/sandbox/cli.ts", PROJECT_DIR)),
];
/** No service, unless a test names one. */
export const NO_SERVICE = { PAYMENTS_BASE_URL: "", PAYMENTS_API_KEY: "", DATA_DIR: "" };

/** Runs a command until it ends, in this process. */
export async function call(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  cwd = Deno.cwd(),
) {
  const texts = { stdout: "", stderr: "" };
  const code = await runCommand(args, {
    env: (name) => env[name] || undefined,
    cwd,
    print: (text) => void (texts.stdout += text),
    printMessage: (line) => void (texts.stderr += `${line}\n`),
  });
  return { code, ...texts };
}

/** The variables that name a served service. */
export function variablesOf({ base_url, service }: ServedService) {
  return { PAYMENTS_BASE_URL: base_url, PAYMENTS_API_KEY: service.key.text };
}

/** A served product, and its commands. */
function commandsOf(served: ServedService) {
  const env = variablesOf(served);
  return {
    ...served,
    env,
    /** Runs a command at the service, in a folder without a project. */
    command: (...words: string[]) => call(words, env, "/nowhere"),
  };
}

/** Runs a test with commands that call a service. */
export function withCommands(
  run: (commands: ReturnType<typeof commandsOf>) => Promise<void>,
): Promise<void> {
  return withServedService((served) => run(commandsOf(served)));
}

/** Starts a command from its sources. */
export function launch(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  cwd: string,
): RunningCommand {
  const program = [Deno.execPath(), ...PROGRAM];
  const command = { args: [...program, ...args], env: { ...NO_SERVICE, ...env }, cwd };
  return launchCommand({ ...command, input: null });
}

/** The words of an example. Its redirection and what follows belong to the shell. */
export function wordsOf(example: string): string[] {
  const [own] = example.split(" > ");
  return [...own!.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, word]) => quoted ?? word!);
}
