/**
 * The durable state of the double: an append-only file with one line for each acknowledged change.
 * The line is written before the response leaves, so `kill -9` loses nothing that a client has
 * read. A torn last line was never acknowledged and is cut off. The file is not synced to the disk.
 */

/** The kinds of objects. Each has a resource with its plural. */
export const KINDS = [
  ...["payment_intent", "charge", "refund", "dispute", "payout", "balance_transaction"] as const,
  ...["event", "customer", "payment_method", "setup_intent"] as const,
];

/** An object as Stripe shows it. Names that begin with `_` are the double's own. */
export interface StripeObject {
  id: string;
  object: string;
  created: number;
  // deno-lint-ignore no-explicit-any -- objects of many kinds, read by tests
  [field: string]: any;
}

/** The response that is stored under an idempotency key. */
export interface StoredResponse {
  fingerprint: string;
  status: number;
  body: string;
}

/** One change. Its parts become visible together. */
interface Entry {
  /** The owner of the objects: the secret key and the connected account. */
  owner?: string;
  objects?: readonly StripeObject[];
  key?: { name: string; stored: StoredResponse };
  /** An event that the receiver has accepted. */
  notified?: string;
  /** New settings of the notifications. */
  notifications?: object;
}

/** The state, and the file that holds it. */
export class Journal {
  /** Responses by owner and idempotency key. */
  readonly keys = new Map<string, StoredResponse>();
  readonly notified = new Set<string>();
  notifications: object = {};
  /** Objects by owner and kind, then by id. */
  readonly #objects = new Map<string, Map<string, StripeObject>>();
  readonly #owners = new Map<string, string>();
  readonly #file: Deno.FsFile;

  constructor(path: string) {
    this.#file = Deno.openSync(path, { read: true, write: true, create: true });
    const text = Deno.readTextFileSync(path);
    const whole = text.slice(0, text.lastIndexOf("\n") + 1);
    for (const line of whole.split("\n")) if (line) this.#apply(JSON.parse(line));
    const size = new TextEncoder().encode(whole).length;
    this.#file.truncateSync(size);
    this.#file.seekSync(size, Deno.SeekMode.Start);
  }

  /** Writes a change, then shows it. */
  commit(entry: Entry): void {
    const line = JSON.stringify(entry);
    const bytes = new TextEncoder().encode(`${line}\n`);
    for (let at = 0; at < bytes.length;) at += this.#file.writeSync(bytes.subarray(at));
    this.#apply(JSON.parse(line));
  }

  /** Returns a copy of an object of this owner. */
  find(owner: string, kind: string, id: unknown): StripeObject | undefined {
    return structuredClone(this.#objects.get(`${owner} ${kind}`)?.get(String(id)));
  }

  /** Returns all objects of a kind, the oldest first; without an owner those of every owner. */
  list(owner: string | null, kind: string): StripeObject[] {
    return [...this.#objects].filter(([name]) =>
      owner === null ? name.endsWith(` ${kind}`) : name === `${owner} ${kind}`
    ).flatMap(([, objects]) => [...objects.values()]);
  }

  /** Returns the owner of an object. */
  ownerOf(id: string): string | undefined {
    return this.#owners.get(id);
  }

  #apply({ owner = "", objects = [], key, notified, notifications }: Entry): void {
    for (const object of objects) {
      const name = `${owner} ${object.object}`;
      const kind = this.#objects.get(name) ?? new Map<string, StripeObject>();
      this.#objects.set(name, kind.set(object.id, object));
      this.#owners.set(object.id, owner);
    }
    if (key) this.keys.set(key.name, key.stored);
    if (notified) this.notified.add(notified);
    if (notifications) this.notifications = notifications;
  }
}
