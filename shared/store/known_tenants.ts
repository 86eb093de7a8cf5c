/**
 * The tenants of the keys that the database has admitted. Queues need them to alternate between
 * tenants, because one tenant can have many keys and many sandboxes. The sandboxes of an account
 * are one tenant. Its live environment is another one, so tests never delay payments.
 */

import { RecentMap } from "../core/recent_map.ts";

/** Most keys in the cache: those that were used last. */
const KEYS_MAX = 10_000;

/** The tenant of all keys that this isolate does not know. They share its turns. */
const UNKNOWN_KEYS = "unknown keys";

/** The members of a response that tell the tenant; null without a valid key. */
interface TenantOfRow {
  account: string | null;
  livemode: boolean | null;
}

export class KnownTenants {
  readonly #tenants = new RecentMap<string, string>(KEYS_MAX);

  /** Returns the tenant of a key, or undefined before the database has admitted it. */
  of(key_hash: string): string | undefined {
    return this.#tenants.get(key_hash);
  }

  /** Returns the name under which the statements of a key take turns. */
  nameOf(key_hash: string): string {
    return this.of(key_hash) ?? UNKNOWN_KEYS;
  }

  /** Stores the tenant of a response. It never changes. */
  learn(key_hash: string, { account, livemode }: TenantOfRow): void {
    if (account) this.#tenants.set(key_hash, `${livemode ? "live" : "test"} ${account}`);
  }

  forget(key_hash: string): void {
    this.#tenants.delete(key_hash);
  }
}
