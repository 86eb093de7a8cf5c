/** Runs a program of this project as a process, as an operator does, and collects what it prints. */

import { fileURLToPath } from "node:url";

const PROJECT_DIR = fileURLToPath(new URL("../../..", import.meta.url));

/** A program that has ended. */
export interface EndedProgram {
  code: number;
  signal: string | null;
  /** Standard output and standard error together. */
  output: string;
}

/** A program under way. */
export interface RunningProgram {
  pid: number;
  /** The output so far. */
  output(): string;
  /** Resolves with the match when the output has one. Throws if the program ends before. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  /** Sends a signal, unless the program has ended. */
  kill(signal: Deno.Signal): void;
  ended: Promise<EndedProgram>;
}

/**
 * Starts Deno with these arguments.
 * @param onLine gets each line that it prints
 * @param options.program another Deno than that of the tests
 * @param options.clearEnv whether it has no other variables than `env`
 */
export function runProgram(
  args: readonly string[],
  env: Record<string, string>,
  onLine: (line: string) => void = () => {},
  { program = Deno.execPath(), clearEnv = false } = {},
): RunningProgram {
  const child = new Deno.Command(program, {
    args: [...args],
    cwd: PROJECT_DIR,
    env,
    clearEnv,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  let output = "";
  let grown = Promise.withResolvers<void>();
  const read = async (stream: ReadableStream<Uint8Array<ArrayBuffer>>) => {
    let line = "";
    for await (const text of stream.pipeThrough(new TextDecoderStream())) {
      output += text;
      const lines = (line + text).split("\n");
      line = lines.pop()!;
      lines.forEach(onLine);
      grown.resolve();
      grown = Promise.withResolvers();
    }
  };
  const reading = Promise.all([read(child.stdout), read(child.stderr)]);
  let has_ended = false;
  const ended = (async (): Promise<EndedProgram> => {
    const { code, signal } = await child.status;
    has_ended = true;
    await reading;
    return { code, signal, output };
  })();
  return {
    pid: child.pid,
    output: () => output,
    async printed(pattern) {
      for (;;) {
        const match = pattern.exec(output);
        if (match) return match;
        const early = await Promise.race([grown.promise, ended]);
        if (early && !pattern.test(output)) {
          throw new Error(`The program ended with ${early.code}:\n${output}`);
        }
      }
    },
    kill: (signal) => void (has_ended || child.kill(signal)),
    ended,
  };
}
