/**
 * Ends a local start: on a signal, or when its launcher has ended, everything that was started is
 * stopped in reverse order.
 */

import { watchLauncher } from "./launcher_watch.ts";

/**
 * Under `deno task` one Ctrl-C can arrive as two signals. Only a second signal that comes later
 * than this is a request to exit at once.
 */
const SAME_SIGNAL_MS = 500;

/** The steps that end a start. They run in reverse order; a failed step does not stop the next. */
export class Shutdown {
  readonly #steps: (() => unknown)[] = [];
  readonly #abort = new AbortController();

  /** Aborted when `run` begins, so that parts that are still starting give up. */
  readonly signal: AbortSignal = this.#abort.signal;

  /** Adds a step, which runs before all earlier ones. */
  add(step: () => unknown): void {
    this.#steps.push(step);
  }

  /** Runs the steps. Errors of steps are printed. */
  async run(): Promise<void> {
    this.#abort.abort();
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        await step();
      } catch (error) {
        say(`Error while stopping: ${error instanceof Error ? error.message : error}`);
      }
    }
  }
}

/** On the first signal, runs the shutdown and exits with 0. On a later one, exits at once. */
export function stopOnSignals(shutdown: Shutdown): void {
  let stopping_since: number | null = null;
  const onSignal = () => {
    if (stopping_since === null) {
      stopping_since = Date.now();
      say("\nStopping");
      shutdown.run().then(() => Deno.exit(0));
    } else if (Date.now() - stopping_since > SAME_SIGNAL_MS) {
      // If PostgreSQL is still running, the next start ends it and recovers its data.
      Deno.exit(130);
    }
  };
  const signals: Deno.Signal[] = ["SIGINT"];
  if (Deno.build.os === "windows") signals.push("SIGBREAK");
  else signals.push("SIGTERM");
  // A closed terminal ends the start. A start without a terminal, as under nohup, continues.
  if (Deno.build.os !== "windows" && Deno.stdout.isTerminal()) signals.push("SIGHUP");
  for (const signal of signals) Deno.addSignalListener(signal, onSignal);
  watchLauncher(() => {
    // A launcher that the same signal has ended is no second request.
    if (stopping_since === null) onSignal();
  });
}

/** Calls `end` when standard input closes, and at each of these signals. */
export function endWithInput(end: () => void, signals: readonly Deno.Signal[]): void {
  Deno.stdin.readable.pipeTo(new WritableStream()).then(end, end);
  for (const signal of signals) Deno.addSignalListener(signal, end);
}

/** Prints a line to standard output, even if `console` is redirected to the log file. */
export function say(line: string): void {
  try {
    Deno.stdout.writeSync(new TextEncoder().encode(line.endsWith("\n") ? line : `${line}\n`));
  } catch {
    // The reader of the output has gone. The service continues.
  }
}
