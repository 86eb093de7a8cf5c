/**
 * A service without lasting data, as a child process. It ends when its standard input closes, so it
 * cannot outlive this process: the operating system closes the pipe, also after SIGKILL.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { serviceCommand } from "./programs.ts";

/** A running service. */
export interface ServiceProcess {
  /** URL of the functions: `http://127.0.0.1:<port>/functions/v1`. */
  readonly base_url: string;
  readonly test_key: string;
  /** Ends the service. Resolves when its data is deleted. */
  stop(): Promise<void>;
}

/** Lines of standard error that an error shows. */
const SHOWN_LINES = 20;

/**
 * Starts a service and resolves when it responds.
 * @param timeout_ms time for the start; the first one on a machine prepares the cache
 * @param onProgress receives what the service prints before it is ready
 * @throws {Error} if the service ends or does not respond in time
 */
export async function startServiceProcess(
  env: Readonly<Record<string, string>>,
  timeout_ms: number,
  onProgress?: (line: string) => void,
): Promise<ServiceProcess> {
  const command = serviceCommand(["--temporary", "--name=PORT=port"]);
  const child = spawn(command.program, command.args, {
    env: { ...process.env, ...command.env, ...env },
    stdio: ["pipe", "pipe", "pipe"],
    // In a process group of its own the service does not get the signal of Ctrl-C. It ends after
    // this process, so that a test can still clean up.
    detached: process.platform !== "win32",
    windowsHide: true,
  });
  const errors: string[] = [];
  createInterface({ input: child.stderr! }).on("line", (line) => {
    errors.push(line);
    errors.splice(0, errors.length - SHOWN_LINES);
    onProgress?.(line);
  });
  // The service ends before its reaper, which holds both outputs until the data is deleted.
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const ended = new Promise<never>((_, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) =>
      reject(
        new Error(`The sandbox ended with ${signal ?? `exit code ${code}`}:\n${errors.join("\n")}`),
      ));
  });
  ended.catch(() => {});
  const started = new AbortController();
  const late = pause(timeout_ms, undefined, { signal: started.signal }).then(() => {
    throw new Error(`The sandbox was not ready after ${timeout_ms} ms:\n${errors.join("\n")}`);
  });
  late.catch(() => {});
  try {
    const line = await Promise.race([firstLine(child), ended, late]);
    const { base_url, test_key } = JSON.parse(line) as { base_url: string; test_key: string };
    keepAlive(child, false);
    return {
      base_url,
      test_key,
      stop: async () => {
        keepAlive(child, true);
        child.stdin!.end();
        await closed;
      },
    };
  } catch (error) {
    child.stdin!.end();
    throw error;
  } finally {
    started.abort();
  }
}

/**
 * Whether the child keeps this process alive. A test that does not call `stop` must end all the
 * same.
 */
function keepAlive(child: ChildProcess, is_wanted: boolean): void {
  const method = is_wanted ? "ref" : "unref";
  child[method]();
  for (const stream of child.stdio) {
    // Pipes are sockets, which have these methods; the type of a stream does not.
    (stream as Partial<Pick<ChildProcess, "ref" | "unref">> | null)?.[method]?.();
  }
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    createInterface({ input: child.stdout! }).once("line", resolve);
  });
}
