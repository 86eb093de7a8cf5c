/**
 * What the browser keeps for the user by name, in one item of a storage. It has a maximum of values
 * and of characters, and takes no text that contains a card number, a key or a secret
 * (security §2, browser).
 */

import { containsCardNumber } from "../../../shared/core/card_number.ts";
import { withoutKeys } from "../../../shared/core/masked_secrets.ts";

/** Values by name, the oldest one first. */
interface Shelf<V> {
  read(): ReadonlyMap<string, V>;
  /** Stores a value as the newest one. Reports whether it may be stored. */
  put(name: string, value: V): boolean;
  remove(name: string): void;
  clear(): void;
}

/** Whether the text must not be stored. */
export function isSecret(text: string): boolean {
  return containsCardNumber(text) || withoutKeys(text) !== text;
}

/**
 * Opens an item of a storage.
 * @param limits.values most values. One more takes the place of the oldest one
 * @param limits.characters most characters of a value in JSON
 */
export function openShelf<V>(
  storage: () => Storage,
  item: string,
  limits: { values: number; characters: number },
): Shelf<V> {
  const read = (): Map<string, V> => {
    try {
      return new Map(JSON.parse(storage().getItem(item) ?? "[]"));
    } catch {
      return new Map();
    }
  };
  const write = (values: ReadonlyMap<string, V>) => {
    try {
      if (values.size === 0) return storage().removeItem(item);
      storage().setItem(item, JSON.stringify([...values].slice(-limits.values)));
    } catch {
      // A browser can forbid the storage, or it is full. Then the page keeps nothing.
    }
  };
  const without = (name: string) => {
    const values = read();
    values.delete(name);
    return values;
  };
  return {
    read,
    put(name, value) {
      const text = JSON.stringify([name, value]);
      const may_be = text.length <= limits.characters && !isSecret(text);
      if (may_be) write(without(name).set(name, value));
      return may_be;
    },
    remove(name) {
      if (read().has(name)) write(without(name));
    },
    clear: () => write(new Map()),
  };
}
