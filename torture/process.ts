/**
 * A Deno process of the run: launched with its settings as one JSON text, ready when it has printed a
 * first line of JSON. Lines after that go to whoever listens; lines can be sent to it.
 */

import { fileURLToPath } from "node:url";

/** A process of the run. */
export interface RunProcess<Ready> {
  readonly pid: number;
  /** What it printed first. */
  readonly ready: Ready;
  /** Resolves when it has ended, with its code. */
  readonly ended: Promise<number>;
  send(line: unknown): Promise<void>;
  kill(signal?: Deno.Signal): void;
}

/**
 * Launches `torture/<file>`.
 * @param onLine told what it prints after its first line
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
        // It has ended.
      }
    },
  };
}

/** The settings that a process was launched with. */
export function settingsOf<T>(): T {
  return JSON.parse(Deno.args[0]!) as T;
}

/** Prints a line to whoever launched this process. */
export function tell(value: unknown): void {
  const bytes = new TextEncoder().encode(JSON.stringify(value) + "\n");
  for (let sent = 0; sent < bytes.length;) sent += Deno.stdout.writeSync(bytes.subarray(sent));
}

/** The lines that are sent to this process; it ends when its launcher does. */
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
