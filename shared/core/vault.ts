/**
 * Sealed texts: bank details that have to be kept as a whole, because a payout or a collection
 * needs them later. AES-256-GCM of the runtime, with a key from the environment and its id beside
 * the text (ADR 0021). A sealed text opens only in its own context, so a row that was changed by
 * hand opens no other one's details.
 */

import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";

const ALGORITHM = "AES-GCM";
const KEY_BYTES = 32;
/** The nonce that NIST SP 800-38D recommends. Nonces are random. */
const NONCE_BYTES = 12;
/** Makes the key of fingerprints another one than that of sealed texts. */
const FINGERPRINT = "fingerprint";
const KEY_ID = /^[a-z0-9_-]{1,20}$/;

export interface Sealed {
  key_id: string;
  /** Nonce, ciphertext and tag in base64. */
  sealed: string;
}

/** Seals texts with the first of its keys, and opens those of every key. */
export class Vault {
  readonly #keys: ReadonlyMap<string, Uint8Array>;
  readonly key_id: string;
  /** The ids of the other keys, which only open. */
  readonly older_key_ids: readonly string[];

  /** @param keys keys by id, at least one */
  private constructor(keys: ReadonlyMap<string, Uint8Array>) {
    this.#keys = keys;
    const [key_id, ...older] = keys.keys();
    this.key_id = key_id!;
    this.older_key_ids = older;
  }

  /**
   * Reads keys from the text of BANK_DETAILS_KEYS, `<id>:<base64>,<id>:<base64>`: the first one
   * seals, the others are from before. Throws an error with a message for people, which repeats no
   * key.
   */
  static read(text: string): Vault {
    const keys = new Map<string, Uint8Array>();
    for (const part of text.split(",")) {
      const [id = "", base64 = ""] = part.trim().split(":", 2);
      const key = new Uint8Array(Buffer.from(base64, "base64"));
      if (!KEY_ID.test(id) || keys.has(id) || key.length !== KEY_BYTES) {
        throw new Error(
          `BANK_DETAILS_KEYS must be keys like "k1:<${KEY_BYTES} bytes in base64>", separated by ` +
            'commas, each with an id of its own. "openssl rand -base64 32" makes one',
        );
      }
      keys.set(id, key);
    }
    return new Vault(keys);
  }

  has(key_id: string): boolean {
    return this.#keys.has(key_id);
  }

  /** Seals a text. Only the same context opens it. */
  async seal(text: string, context: string): Promise<Sealed> {
    const nonce = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
    const key = await cryptoKey(this.#keys.get(this.key_id)!);
    const sealed = await crypto.subtle.encrypt(
      algorithmOf(nonce, context),
      key,
      new TextEncoder().encode(text),
    );
    const bytes = Buffer.concat([nonce, new Uint8Array(sealed)]);
    return { key_id: this.key_id, sealed: bytes.toString("base64") };
  }

  /**
   * Returns fingerprints of a text, one of each key with that of the first key first, each as
   * `<key id>:<HMAC-SHA-256 in base64>`. Only equal texts of one context have equal ones, and
   * nobody without the keys can try texts.
   */
  fingerprints(text: string, context: string): string[] {
    return [...this.#keys].map(([key_id, key]) => {
      const own_key = createHmac("sha256", key).update(FINGERPRINT).digest();
      return `${key_id}:${
        createHmac("sha256", own_key).update(`${context}\n${text}`).digest("base64")
      }`;
    });
  }

  /** Opens a text. Throws if its key is missing, or if it was sealed in another context. */
  async open({ key_id, sealed }: Sealed, context: string): Promise<string> {
    const key = this.#keys.get(key_id);
    if (key === undefined) throw new Error(`the key "${key_id}" is missing`);
    const bytes = new Uint8Array(Buffer.from(sealed, "base64"));
    const opened = await crypto.subtle.decrypt(
      algorithmOf(bytes.subarray(0, NONCE_BYTES), context),
      await cryptoKey(key),
      bytes.subarray(NONCE_BYTES),
    );
    return new TextDecoder().decode(opened);
  }
}

/** The tag at the end of a sealed text has 16 bytes, the default. */
function algorithmOf(iv: Uint8Array, context: string) {
  return {
    name: ALGORITHM,
    iv: new Uint8Array(iv),
    additionalData: new TextEncoder().encode(context),
  };
}

function cryptoKey(bytes: Uint8Array): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", new Uint8Array(bytes), ALGORITHM, false, [
    "encrypt",
    "decrypt",
  ]);
}
