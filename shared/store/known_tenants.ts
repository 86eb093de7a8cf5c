/**
 * A cache of the tenant of each key, from earlier responses of the database. Queues need it to
 * alternate between tenants, because one tenant can have many keys and many sandboxes. The sandboxes
 * of an account are one tenant. Its live environment is another one, so tests never delay payments.
 */

/** Most keys in the cache. */
const KEYS_MAX = 10_000;

/** The members of a response that tell the tenant; null without a valid key. */
interface TenantOfRow {
  account: string | null;
  livemode: boolean | null;
}

/** Names of tenants by the hash of a key. */
export class KnownTenants {
  readonly #tenants = new Map<string, string>();

  /** Returns the tenant of a key, or undefined before the first response to the key. */
  of(key_hash: string): string | undefined {
    return this.#tenants.get(key_hash);
  }

  /** Returns the name under which the requests of a key wait: its tenant, or the key alone. */
  nameOf(key_hash: string): string {
    return this.of(key_hash) ?? key_hash;
  }

  /** Stores the tenant of a response. It never changes. */
  learn(key_hash: string, { account, livemode }: TenantOfRow): void {
    if (!account || this.#tenants.has(key_hash)) return;
    if (this.#tenants.size >= KEYS_MAX) this.#tenants.clear();
    this.#tenants.set(key_hash, `${livemode ? "live" : "test"} ${account}`);
  }
}
