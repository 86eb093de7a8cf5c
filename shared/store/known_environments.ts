/**
 * The environment of each key, as the database told it with an earlier answer. Queues that take turns
 * by tenant go by it: one tenant may have many keys.
 */

/** Keys whose environment is remembered. */
const KEYS_MAX = 10_000;

/** Environments by the hash of a key. */
export class KnownEnvironments {
  readonly #environments = new Map<string, string>();

  /** The environment of a key; undefined while no answer has told it. */
  of(key_hash: string): string | undefined {
    return this.#environments.get(key_hash);
  }

  /** Takes the environment from an answer. A reset gives a key another one. */
  learn(key_hash: string, environment_id: string | null): void {
    if (environment_id === null || this.#environments.get(key_hash) === environment_id) return;
    if (this.#environments.size >= KEYS_MAX) this.#environments.clear();
    this.#environments.set(key_hash, environment_id);
  }
}
