/**
 * Runs functions as the edge runtime does: a process of Deno 2.1.4 with their `deno.json`. Its
 * settings are environment variables, and its log is its standard output.
 */

import { fileURLToPath } from "node:url";
import type { LogLine } from "../../../shared/http/log_line.ts";
import { launchCommand } from "../common/running_command.ts";
import { edgeDeno } from "./edge_deno.ts";

const PROJECT = fileURLToPath(new URL("../../../", import.meta.url));
const MAIN = fileURLToPath(new URL("edge_main.ts", import.meta.url));
const LISTENING = /^listening on (\d+)$/m;

/** A process of one function or several. */
export type FunctionProcess = Awaited<ReturnType<typeof startFunctions>>;

/**
 * Starts functions with the same packages in one process, and resolves when it listens.
 * @param environment variables besides those that every process has
 * @param on_line receives each log line
 * @param root the folder that contains `supabase/` and `shared/`
 */
export async function startFunctions(
  names: readonly string[],
  environment: Readonly<Record<string, string>>,
  on_line: (line: LogLine) => void = () => {},
  root: string = PROJECT,
) {
  const { path, env } = await edgeDeno();
  const name = names.join(" and ");
  const functions = new URL("supabase/functions/", `file://${root.replace(/\/*$/, "/")}`);
  let handed_over = 0;
  const complaints: string[] = [];
  const seen = new Set<string>();
  const program = launchCommand({
    args: [
      ...[path, "run", "--allow-all", "--no-lock"],
      `--config=${fileURLToPath(new URL(`${names[0]}/deno.json`, functions))}`,
      MAIN,
      ...names.map((name) => new URL(`${name}/index.ts`, functions).href),
    ],
    env: {
      ...env,
      PATH: Deno.env.get("PATH") ?? "",
      HOME: Deno.env.get("HOME") ?? "/",
      ...environment,
    },
    clearEnv: true,
  }, (line) => {
    if (line === "" || LISTENING.test(line)) return;
    if (line === "handed over") return void handed_over++;
    if (!line.startsWith("{")) return void complaints.push(line);
    const entry = JSON.parse(line) as LogLine;
    on_line(entry);
    if (entry.request_id !== null) seen.add(entry.request_id);
  });
  const [, port] = await program.printed(LISTENING);
  /** Ends the process. Throws if it has ended before. */
  const close = async () => {
    if (program.hasEnded()) throw new Error(`${name} ended by itself: ${complaints.join("\n")}`);
    await program.end("SIGKILL");
  };
  return {
    /** The paths of a function begin with its name. */
    origin: `http://127.0.0.1:${port}`,
    /** Whether a function has logged the line of this request. Throws if the process has ended. */
    hasLogged: (request_id: string) => {
      if (program.hasEnded()) throw new Error(`${name} has ended: ${complaints.join("\n")}`);
      return seen.has(request_id);
    },
    /** The number of promises that the functions have passed to `EdgeRuntime.waitUntil`. */
    handedOver: () => handed_over,
    /** Whether the process has ended by itself. */
    hasEnded: program.hasEnded,
    /** Lines of output that are not log lines, such as uncaught errors. */
    complaints,
    close,
    [Symbol.asyncDispose]: close,
  };
}
