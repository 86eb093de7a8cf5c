/**
 * Launches Deno processes for the chaos test and the benchmark. A process gets its settings as JSON
 * in an argument. It is ready when it has printed its first line. Both sides can then send lines of
 * JSON.
 */

import { fileURLToPath } from "node:url";

/** A launched process. */
export interface RunProcess<Ready> {
  readonly pid: number;
  /** The first line of the process. */
  readonly ready: Ready;
  /** Resolves with the exit code when the process has ended. */
  readonly ended: Promise<number>;
  send(line: unknown): Promise<void>;
  kill(signal?: Deno.Signal): void;
}

/**
 * Launches a program and waits until it is ready.
 * @param file in this folder, or the URL of a program elsewhere
 * @param onLine gets the lines after the first one
 */
export async function launch<Ready>(
  file: string,
  settings: unknown,
  onLine: (line: unknown) => void = () => {},
): Promise<RunProcess<Ready>> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", fileURLToPath(new URL(file, import.meta.url)), JSON.stringify(settings)],
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const first = Promise.withResolvers<Ready>();
  let is_ready = false;
  const reading = (async () => {
    let text = "";
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      const lines = text.split("\n");
      text = lines.pop()!;
      for (const line of lines) {
        const value = JSON.parse(line);
        if (is_ready) onLine(value);
        else first.resolve(value);
        is_ready = true;
      }
    }
    first.reject(new Error(`${file} ended before it was ready`));
  })();
  const input = child.stdin.getWriter();
  const encoder = new TextEncoder();
  const ready = await first.promise;
  return {
    pid: child.pid,
    ready,
    ended: Promise.all([child.status, reading.catch(() => {})]).then(async ([{ code }]) => {
      await input.close().catch(() => {});
      return code;
    }),
    send: (line) => input.write(encoder.encode(JSON.stringify(line) + "\n")),
    kill(signal = "SIGKILL") {
      try {
        child.kill(signal);
      } catch {
        // The process has ended.
      }
    },
  };
}

/** The settings of this process. */
export function settingsOf<T>(): T {
  return JSON.parse(Deno.args[0]!) as T;
}

/** Prints a line for the launcher of this process. */
export function tell(value: unknown): void {
  const bytes = new TextEncoder().encode(JSON.stringify(value) + "\n");
  for (let sent = 0; sent < bytes.length;) sent += Deno.stdout.writeSync(bytes.subarray(sent));
}

/** Handles the lines that the launcher sends. This process ends when its launcher ends. */
export async function onLines(handle: (line: unknown) => void): Promise<void> {
  let text = "";
  for await (const chunk of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const lines = text.split("\n");
    text = lines.pop()!;
    for (const line of lines) handle(JSON.parse(line));
  }
  Deno.exit(0);
}
