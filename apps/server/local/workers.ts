/**
 * The further processes of an instance at its port, for the further processors. Linux distributes
 * the connections (`SO_REUSEPORT`); other systems do not. A worker that dies is replaced. Workers
 * stop when their standard input ends, so also if the first process is killed.
 */

/** The argument of a worker. */
export const WORKER = "--worker";
/** Pause before a worker is replaced, because the next one could die at once. */
const PAUSE_MS = 1_000;
/** Fewest connections of a process: a statement that waits for a lock must not delay another. */
const FEWEST_CONNECTIONS = 2;
/** Connections of a process alone (`DB_POOL_SIZE`). */
const USUAL_CONNECTIONS = 4;

/** The workers of this process. */
export class Workers {
  readonly #command: readonly string[];
  readonly #count: number;
  readonly #children = new Set<Deno.ChildProcess>();
  readonly #stopping = Promise.withResolvers<void>();
  #is_stopping = false;
  #keeping: Promise<unknown> = Promise.resolve();

  /**
   * @param command the arguments of deno with which this process was started; the last one names
   * the program
   * @param instances the processes together with this one
   */
  constructor(command: readonly string[], instances: number) {
    this.#command = [...command.slice(0, -1), Deno.mainModule, WORKER];
    this.#count = instances - 1;
  }

  /** How this process listens at the port. */
  get sharing(): { sharing?: "first" } {
    return this.#count === 0 ? {} : { sharing: "first" };
  }

  /** The size of the pool of each process, so that all together are as large as that of one. */
  poolSize(text: string | undefined): string | undefined {
    const all = Number(text || USUAL_CONNECTIONS);
    if (this.#count === 0 || !(all > 0)) return text;
    return String(Math.max(FEWEST_CONNECTIONS, Math.ceil(all / (this.#count + 1))));
  }

  /** Starts the workers, with these variables beside those of this process. */
  start(env: Record<string, string>): void {
    this.#keeping = Promise.all(Array.from({ length: this.#count }, () => this.#keep(env)));
  }

  /** Stops the workers. Resolves when they have ended. */
  async stop(): Promise<void> {
    this.#is_stopping = true;
    this.#stopping.resolve();
    for (const child of this.#children) child.stdin.close().catch(() => {});
    await this.#keeping;
  }

  async #keep(env: Record<string, string>): Promise<void> {
    while (!this.#is_stopping) {
      const child = new Deno.Command(Deno.execPath(), {
        args: [...this.#command],
        env: { ...env, INSTANCES: "1" },
        stdin: "piped",
        stdout: "inherit",
        stderr: "inherit",
      }).spawn();
      this.#children.add(child);
      const { code, signal } = await child.status;
      this.#children.delete(child);
      if (this.#is_stopping) return;
      console.error(JSON.stringify({ fault: "worker ended", pid: child.pid, code, signal }));
      const pause = new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      await Promise.race([pause, this.#stopping.promise]);
    }
  }
}
