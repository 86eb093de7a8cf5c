/**
 * Our ids in bank files. Banks accept 35 characters and no underscore, and some of them change the
 * case, so `pay_01…` is written as `pay-01…` and found in any case.
 */

/** A prefix and the 26 characters of an id (`shared/core/ids.ts`). */
const WRITTEN = /^([A-Z]{2,4})-([0-9A-HJKMNP-TV-Z]{26})$/i;

/** The id of an order within letters and digits. */
const ORDER = /(?=(PAY|TR|RE)([0-7][0-9A-HJKMNP-TV-Z]{25}))/g;

export function bankIdentifier(id: string): string {
  return id.replace("_", "-");
}

/** Returns the id for which a text in a bank file stands; null if it is not one of ours. */
export function idOfBankIdentifier(text: string): string | null {
  const [, prefix, suffix] = WRITTEN.exec(text.trim()) ?? [];
  return prefix && suffix ? `${prefix}_${suffix}`.toLowerCase() : null;
}

/**
 * Returns the texts for ids of orders that free text can contain, in any case and with any
 * punctuation. Other texts look like one, so only an order that exists tells.
 */
export function identifiersIn(text: string): string[] {
  const characters = text.replace(/[^A-Za-z0-9]+/g, "").toUpperCase();
  return [...characters.matchAll(ORDER)].map(([, prefix, id]) => `${prefix}-${id}`.toLowerCase());
}

export function isFileIdentifier(text: string): boolean {
  return idOfBankIdentifier(text)?.startsWith("bf_") ?? false;
}

/** Reports whether a text in a bank file is the id of a batch in one of our files. */
export function isBatchIdentifier(text: string): boolean {
  const [, file = ""] = /^(.+)-\d+$/.exec(text.trim()) ?? [];
  return isFileIdentifier(file);
}
