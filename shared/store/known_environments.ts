/**
 * A cache of the environment of each key, from earlier answers of the database. Queues need it to
 * alternate between tenants, because one tenant can have many keys.
 */

/** Most keys in the cache. */
const KEYS_MAX = 10_000;

/** Environments by the hash of a key. */
export class KnownEnvironments {
  readonly #environments = new Map<string, string>();

  /** Returns the environment of a key, or undefined before the first answer to the key. */
  of(key_hash: string): string | undefined {
    return this.#environments.get(key_hash);
  }

  /** Stores the environment of an answer. A reset gives a key a new environment. */
  learn(key_hash: string, environment_id: string | null): void {
    if (environment_id === null || this.#environments.get(key_hash) === environment_id) return;
    if (this.#environments.size >= KEYS_MAX) this.#environments.clear();
    this.#environments.set(key_hash, environment_id);
  }
}
