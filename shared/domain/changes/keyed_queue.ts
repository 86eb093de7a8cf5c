/**
 * Runs tasks of one key one after the other and those of different keys at once. Changes of one
 * payment queue here instead of racing each other in the database; those of other isolates still
 * race, and the database decides.
 */
export class KeyedQueue {
  readonly #tails = new Map<string, Promise<unknown>>();

  /** Runs a task once those before it with the same key have ended, however they ended. */
  run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key);
    const mine = before ? before.then(task, task) : task();
    this.#tails.set(key, mine);
    const leave = () => {
      if (this.#tails.get(key) === mine) this.#tails.delete(key);
    };
    mine.then(leave, leave);
    return mine;
  }
}
