/** The end of a local start: what was started is ended in reverse order, on whatever signal. */

import { watchLauncher } from "./launcher_watch.ts";

/** Under `deno task` one Ctrl-C may arrive twice; only a later one means "now". */
const SAME_SIGNAL_MS = 500;

/** What has been started, to be ended in reverse order; every step is tried. */
export class Shutdown {
  readonly #steps: (() => unknown)[] = [];
  readonly #abort = new AbortController();

  /** Aborted when the end begins: for what is still starting. */
  readonly signal: AbortSignal = this.#abort.signal;

  add(step: () => unknown): void {
    this.#steps.push(step);
  }

  async run(): Promise<void> {
    this.#abort.abort();
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        await step();
      } catch (error) {
        say(`While stopping: ${error instanceof Error ? error.message : error}`);
      }
    }
  }
}

/** The first signal ends everything in order with code 0, a later one at once. */
export function stopOnSignals(shutdown: Shutdown): void {
  let stopping_since: number | null = null;
  const onSignal = () => {
    if (stopping_since === null) {
      stopping_since = Date.now();
      say("\nStopping");
      shutdown.run().then(() => Deno.exit(0));
    } else if (Date.now() - stopping_since > SAME_SIGNAL_MS) {
      // PostgreSQL ends by itself or is ended by the next start, which recovers its data.
      Deno.exit(130);
    }
  };
  const signals: Deno.Signal[] = ["SIGINT"];
  if (Deno.build.os === "windows") signals.push("SIGBREAK");
  else signals.push("SIGTERM");
  // A closed terminal ends the start; without one, such as under nohup, it goes on.
  if (Deno.build.os !== "windows" && Deno.stdout.isTerminal()) signals.push("SIGHUP");
  for (const signal of signals) Deno.addSignalListener(signal, onSignal);
  watchLauncher(onSignal);
}

/** Prints past `console`, which may lead to the log file. */
export function say(line: string): void {
  try {
    Deno.stdout.writeSync(new TextEncoder().encode(line.endsWith("\n") ? line : `${line}\n`));
  } catch {
    // Nobody reads our output any more; that is no reason to stop serving.
  }
}
