/** Runs programs as processes, as an operator or a user does, and collects what they print. */

import { fileURLToPath } from "node:url";

const PROJECT_DIR = fileURLToPath(new URL("../../..", import.meta.url));
/** The end of a program's output that the message of a failure shows. */
const SHOWN = 5_000;

/** A program and its surroundings. */
export interface Command {
  /** The program and its arguments. */
  args: readonly string[];
  /** By default the folder of the project. */
  cwd?: string;
  env?: Readonly<Record<string, string>>;
  /** Whether it has no other variables than `env`. */
  clearEnv?: boolean;
  /** The text of its standard input. By default it has none; null: it stays open. */
  input?: string | null;
  /** The account that runs it. By default that of the tests. */
  account?: { uid?: number; gid?: number };
  /** Whether it leads a process group, so that one signal ends the programs that it starts too. */
  detached?: boolean;
}

/** A command that has ended. */
export interface EndedCommand {
  code: number;
  signal: string | null;
  stdout: string;
  stderr: string;
  /** Both together. */
  output: string;
}

/** A command under way. */
export interface RunningCommand {
  pid: number;
  /** The output so far. */
  stdout(): string;
  stderr(): string;
  output(): string;
  /**
   * Resolves with the match when standard output or standard error has one. Throws if the command
   * ends before.
   */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  /** Sends a signal, unless the command has ended. */
  kill(signal: Deno.Signal): void;
  /** Sends a signal, and waits for the end. */
  end(signal?: Deno.Signal): Promise<EndedCommand>;
  hasEnded(): boolean;
  ended: Promise<EndedCommand>;
}

/** Runs a command until it ends. */
export function runCommand(command: Command): Promise<EndedCommand> {
  return launchCommand(command).ended;
}

/** Runs a program and returns its standard output. Throws with all its output if it fails. */
export async function outputOf(
  args: readonly string[],
  surroundings: Omit<Command, "args"> = {},
): Promise<string> {
  const { code, stdout, output } = await runCommand({ ...surroundings, args });
  if (code !== 0) throw new Error(`${args[0]} failed:\n${output.slice(-SHOWN)}`);
  return stdout;
}

/**
 * Starts a command.
 * @param onLine gets each line that it prints
 */
export function launchCommand(
  { args: [program, ...args], input, account, env, ...options }: Command,
  onLine: (line: string) => void = () => {},
): RunningCommand {
  const child = new Deno.Command(program!, {
    args,
    cwd: PROJECT_DIR,
    ...options,
    env: { npm_config_update_notifier: "false", NO_COLOR: "1", ...env },
    stdin: input === undefined ? "null" : "piped",
    stdout: "piped",
    stderr: "piped",
    ...account,
  }).spawn();
  const texts = { stdout: "", stderr: "", output: "" };
  let grown = Promise.withResolvers<void>();
  const readings = (["stdout", "stderr"] as const).map(async (name) => {
    let line = "";
    for await (const text of child[name].pipeThrough(new TextDecoderStream())) {
      texts[name] += text;
      texts.output += text;
      const lines = (line + text).split("\n");
      line = lines.pop()!;
      lines.forEach(onLine);
      grown.resolve();
      grown = Promise.withResolvers();
    }
  });
  if (typeof input === "string") {
    // A program that ends before it has read everything is judged by its exit code.
    new Response(input).body!.pipeTo(child.stdin).catch(() => {});
  }
  let has_ended = false;
  const ended = (async (): Promise<EndedCommand> => {
    const { code, signal } = await child.status;
    has_ended = true;
    await Promise.all(readings);
    if (input === null) await child.stdin.close().catch(() => {});
    return { code, signal, ...texts };
  })();
  const kill = (signal: Deno.Signal) => void (has_ended || child.kill(signal));
  return {
    pid: child.pid,
    stdout: () => texts.stdout,
    stderr: () => texts.stderr,
    output: () => texts.output,
    async printed(pattern) {
      const find = () => pattern.exec(texts.stdout) ?? pattern.exec(texts.stderr);
      for (;;) {
        const match = find();
        if (match) return match;
        const early = await Promise.race([grown.promise, ended]);
        if (early && !find()) throw new Error(`Ended with ${early.code}:\n${early.output}`);
      }
    },
    kill,
    end(signal = "SIGTERM") {
      kill(signal);
      return ended;
    },
    hasEnded: () => has_ended,
    ended,
  };
}
