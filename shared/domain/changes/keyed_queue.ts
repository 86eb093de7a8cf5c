/**
 * Runs tasks with the same key one after another, and tasks with different keys concurrently. So
 * the changes of one payment in this isolate do not compete in the database. Changes in other
 * isolates still do, and the database decides.
 */
export class KeyedQueue {
  readonly #tails = new Map<string, Promise<unknown>>();

  /** Runs a task after all earlier tasks with the same key, even if they failed. */
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
