/**
 * The environment of each key, from earlier answers of the database. Queues use it to let tenants
 * take turns, because one tenant can have many keys.
 */

/** Keys whose environment is remembered. */
const KEYS_MAX = 10_000;

/** Environments by the hash of a key. */
export class KnownEnvironments {
  readonly #environments = new Map<string, string>();

  /** The environment of a key; undefined before the first answer that names it. */
  of(key_hash: string): string | undefined {
    return this.#environments.get(key_hash);
  }

  /** Notes the environment that an answer names. A reset gives the key another one. */
  learn(key_hash: string, environment_id: string | null): void {
    if (environment_id === null || this.#environments.get(key_hash) === environment_id) return;
    if (this.#environments.size >= KEYS_MAX) this.#environments.clear();
    this.#environments.set(key_hash, environment_id);
  }
}
