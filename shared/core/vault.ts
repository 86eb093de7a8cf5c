/**
 * Sealed texts: bank details that have to be kept as a whole, because a payout or a collection needs
 * them later. AES-256-GCM of the runtime, with a key from the environment and its id beside the text
 * (ADR 0042). A sealed text opens only in its own context, so a row that was changed by hand opens
 * no other one's details.
 */

import { Buffer } from "node:buffer";
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

const ALGORITHM = "aes-256-gcm";
const KEY_BYTES = 32;
/** The nonce that NIST SP 800-38D recommends, and the tag. Nonces are random. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_ID = /^[a-z0-9_-]{1,20}$/;

/** A sealed text. */
export interface Sealed {
  /** The id of the key. */
  key_id: string;
  /** Nonce, ciphertext and tag in base64. */
  sealed: string;
}

/** Seals texts with the first of its keys, and opens those of every key. */
export class Vault {
  /** In the order of the variable. */
  readonly #keys: ReadonlyMap<string, Uint8Array>;
  /** The id of the key that seals. */
  readonly key_id: string;

  /** @param keys keys by id, at least one */
  private constructor(keys: ReadonlyMap<string, Uint8Array>) {
    this.#keys = keys;
    this.key_id = [...keys.keys()][0]!;
  }

  /**
   * Reads keys from `<id>:<base64>,<id>:<base64>`: the first one seals, the others are from before.
   * Throws an error with a message for people, which repeats no key.
   */
  static read(text: string): Vault {
    const keys = new Map<string, Uint8Array>();
    for (const part of text.split(",")) {
      const [id = "", base64 = ""] = part.trim().split(":", 2);
      const key = Buffer.from(base64, "base64");
      if (!KEY_ID.test(id) || keys.has(id) || key.length !== KEY_BYTES) {
        throw new Error(
          `must be keys like "k1:<${KEY_BYTES} bytes in base64>", separated by commas, each with ` +
            'an id of its own. "openssl rand -base64 32" makes one',
        );
      }
      keys.set(id, key);
    }
    return new Vault(keys);
  }

  /** Seals a text. Only the same context opens it. */
  seal(text: string, context: string): Sealed {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#keys.get(this.key_id)!, nonce);
    cipher.setAAD(Buffer.from(context));
    const parts = [nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()];
    return { key_id: this.key_id, sealed: Buffer.concat(parts).toString("base64") };
  }

  /** Opens a text. Throws if its key is missing, or if it was sealed in another context. */
  open({ key_id, sealed }: Sealed, context: string): string {
    const key = this.#keys.get(key_id);
    if (key === undefined) throw new Error(`the key "${key_id}" is missing`);
    const bytes = Buffer.from(sealed, "base64");
    const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, NONCE_BYTES));
    decipher.setAAD(Buffer.from(context));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    const opened = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
    return Buffer.concat([opened, decipher.final()]).toString("utf8");
  }
}
