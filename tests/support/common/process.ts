/**
 * Launches programs as processes, for the chaos test and the benchmark. A program gets its settings
 * as JSON in an argument, and is ready when it has printed its first line. Then both sides can send
 * lines of JSON.
 */

import { fileURLToPath } from "node:url";

/** A launched process. */
interface RunProcess<Ready> {
  readonly pid: number;
  /** The first line of the process. */
  readonly ready: Ready;
  /** Resolves with the exit code when the process has ended. */
  readonly ended: Promise<number>;
  send(line: unknown): Promise<void>;
  /** Ends the process with SIGKILL. */
  kill(): Promise<number>;
}

/**
 * Launches a program and waits until it is ready.
 * @param program its URL, from `import.meta.resolve`
 * @param onLine gets the lines after the first one
 * @param env further variables of its environment
 * @throws {Error} if the program ends before it is ready
 */
export async function launch<Ready>(
  program: string,
  settings: unknown,
  onLine: (line: unknown) => void = () => {},
  env: Record<string, string> = {},
): Promise<RunProcess<Ready>> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", fileURLToPath(program), JSON.stringify(settings)],
    env,
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const lines = linesOf(child.stdout);
  const first = await lines.next();
  if (first.done) throw new Error(`${program} ended before it was ready`);
  const reading = (async () => {
    for await (const line of lines) onLine(line);
  })().catch(() => {});
  const input = child.stdin.getWriter();
  const ended = Promise.all([child.status, reading]).then(async ([{ code }]) => {
    await input.close().catch(() => {});
    return code;
  });
  return {
    pid: child.pid,
    ready: first.value as Ready,
    ended,
    send: (line) => input.write(encode(line)),
    kill() {
      try {
        child.kill("SIGKILL");
      } catch {
        // The process has ended.
      }
      return ended;
    },
  };
}

/** The settings of this process. */
export function settingsOf<T>(): T {
  return JSON.parse(Deno.args[0]!) as T;
}

/** Prints a line for the launcher of this process. */
export function tell(value: unknown): void {
  const bytes = encode(value);
  for (let sent = 0; sent < bytes.length;) sent += Deno.stdout.writeSync(bytes.subarray(sent));
}

/** Handles the lines that the launcher sends. This process ends when its launcher ends. */
export async function onLines(handle: (line: unknown) => void): Promise<void> {
  for await (const line of linesOf(Deno.stdin.readable)) handle(line);
  Deno.exit(0);
}

function encode(value: unknown) {
  return new TextEncoder().encode(JSON.stringify(value) + "\n");
}

async function* linesOf(stream: ReadableStream): AsyncGenerator<unknown, void> {
  let text = "";
  for await (const chunk of stream.pipeThrough(new TextDecoderStream())) {
    const lines = (text + chunk).split("\n");
    text = lines.pop()!;
    for (const line of lines) yield JSON.parse(line);
  }
}
