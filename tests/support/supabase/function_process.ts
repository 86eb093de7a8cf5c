/**
 * Runs functions as the edge runtime does: a process of Deno 2.1.4 with their `deno.json`. Its
 * settings are environment variables, and its log is its standard output.
 */

import { fileURLToPath } from "node:url";
import type { LogLine } from "../../../shared/http/log_line.ts";
import { edgeDeno } from "./edge_deno.ts";

const PROJECT = fileURLToPath(new URL("../../../", import.meta.url));
const MAIN = fileURLToPath(new URL("edge_main.ts", import.meta.url));
/** Longest wait for a process to listen, and for the log line of a response. */
const WAIT_MS = 20_000;

/** The environment variables of functions, besides those that every process has. */
type FunctionEnvironment = Readonly<Record<string, string>>;

/** A process of one function or several. */
export interface FunctionProcess {
  /** `http://127.0.0.1:<port>`. The paths of a function begin with its name. */
  origin: string;
  /** Resolves when a function has logged the line of this request. */
  logged(request_id: string): Promise<void>;
  /** Returns the number of promises that the functions have passed to `EdgeRuntime.waitUntil`. */
  handedOver(): number;
  /** Whether the process has ended by itself. */
  hasEnded(): boolean;
  /** Lines of output that are not log lines, such as uncaught errors. */
  complaints: readonly string[];
  /** Ends the process. Throws if it has ended before. */
  close(): Promise<void>;
}

/**
 * Starts functions with the same packages in one process, and resolves when it listens.
 * @param on_line receives each log line
 * @param root the folder that contains `supabase/` and `shared/`
 */
export async function startFunctions(
  names: readonly string[],
  environment: FunctionEnvironment,
  on_line: (line: LogLine) => void = () => {},
  root: string = PROJECT,
): Promise<FunctionProcess> {
  const { path, env } = await edgeDeno();
  const name = names.join(" and ");
  const functions = new URL("supabase/functions/", `file://${root.replace(/\/*$/, "/")}`);
  const child = new Deno.Command(path, {
    args: [
      "run",
      "--allow-all",
      "--no-lock",
      `--config=${fileURLToPath(new URL(`${names[0]}/deno.json`, functions))}`,
      MAIN,
      ...names.map((name) => new URL(`${name}/index.ts`, functions).href),
    ],
    clearEnv: true,
    env: {
      ...env,
      PATH: Deno.env.get("PATH") ?? "",
      HOME: Deno.env.get("HOME") ?? "/",
      ...environment,
    },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  let has_ended = false;
  const ended = child.status.then(() => has_ended = true);
  let handed_over = 0;
  const complaints: string[] = [];
  const seen = new Set<string>();
  const waiting = new Map<string, () => void>();
  let hearPort: (port: string) => void;
  const listening = new Promise<string>((resolve) => hearPort = resolve);
  const read = readLines(child.stdout, (line) => {
    if (line.startsWith("listening on ")) return hearPort(line.slice("listening on ".length));
    if (line === "handed over") return void handed_over++;
    if (!line.startsWith("{")) return void complaints.push(line);
    const entry = JSON.parse(line) as LogLine;
    on_line(entry);
    if (entry.request_id === null) return;
    seen.add(entry.request_id);
    waiting.get(entry.request_id)?.();
  });
  const heard = readLines(child.stderr, (line) => void complaints.push(line));
  const close = async () => {
    const was_dead = has_ended;
    if (!was_dead) child.kill("SIGKILL");
    await Promise.all([ended, read, heard]);
    if (was_dead) throw new Error(`${name} ended by itself: ${complaints.join("\n")}`);
  };
  const port = await Promise.race([listening, ended.then(() => null), pause(WAIT_MS)]);
  if (!port) {
    if (!has_ended) child.kill("SIGKILL");
    await Promise.all([read, heard]);
    throw new Error(`${name} did not start: ${complaints.join("\n")}`);
  }
  return {
    origin: `http://127.0.0.1:${port}`,
    async logged(request_id) {
      if (seen.has(request_id)) return;
      await Promise.race([
        new Promise<void>((resolve) => waiting.set(request_id, resolve)),
        ended,
        pause(WAIT_MS),
      ]);
      if (!seen.has(request_id)) throw new Error(`${name} logged nothing of ${request_id}`);
    },
    handedOver: () => handed_over,
    hasEnded: () => has_ended,
    complaints,
    close,
  };
}

async function readLines(
  stream: ReadableStream<Uint8Array>,
  take: (line: string) => void,
): Promise<void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of stream) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop()!;
    lines.filter((line) => line !== "").forEach(take);
  }
}

/** Resolves with null after a delay, and does not keep the test running. */
function pause(delay_ms: number): Promise<null> {
  return new Promise((resolve) => Deno.unrefTimer(setTimeout(() => resolve(null), delay_ms)));
}
