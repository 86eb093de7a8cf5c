/**
 * The identity of an entry: the same in camt.052, .054 and .053, so that an entry is booked once.
 *
 * The three kinds agree about the amount, the direction as it is written, the day of
 * booking, and whatever the payer wrote. They differ in the status, the day of value, the bank's
 * own text, and in whether the transactions of a batch are listed. Only members that agree are part
 * of the identity. The account is none: a file can have its IBAN and another one its number. Equal
 * entries of a day are counted: whatever tells them apart is no part of a
 * payment, so it does not matter which of them is which. `pay_internal.number_bank_entries` counts
 * those of all files.
 */

import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { idOfBankIdentifier } from "./bank_identifier.ts";
import type { Counts } from "./identity_counts.ts";
import type { DetailRecord, Direction, EntryRecord } from "./read_records.ts";

/** A shorter reference can be a number that begins again each day. */
const UNIQUE_REFERENCE_LENGTH = 8;

/** Members of an entry that its identity is made of. */
interface IdentitySource
  extends
    Pick<EntryRecord, "account" | "amount_minor" | "currency" | "booked_on" | "value_on">,
    Pick<EntryRecord, "batch" | "bank_reference" | "status"> {
  written_direction: Direction;
  /** The only detail, or the first one of a batch. */
  detail: DetailRecord | null;
  is_batch: boolean;
}

/**
 * Returns the identity of an entry: a hash, and its number among the entries of the file with this
 * hash and day, from the second on. The counts know the entries of the file before it.
 */
export function identityOf(entry: IdentitySource, counts: Counts): string {
  const { account, amount_minor, currency, written_direction, bank_reference } = entry;
  const day = entry.booked_on ?? entry.value_on ?? "";
  const members = isReference(bank_reference)
    ? [bank_reference, withoutZeros(bank_reference).length < UNIQUE_REFERENCE_LENGTH ? day : ""]
    : [day, ...contentOf(entry)];
  const hash = hashOf([currency, amount_minor, written_direction, ...members]);
  // Only booked entries are counted: in a report, a pending one and the booked one that follows are
  // the same.
  const count = entry.status === "booked" ? counts.add(hashOf([account, hash, day])) : 1;
  return count === 1 ? hash : `${hash}-${count}`;
}

/**
 * Returns 128 bits of the SHA-256 of some values, in hexadecimal digits. The hash objects of the
 * runtime would wait outside of the heap for a collection: 12 MB in a file of 100 000 entries.
 */
export function hashOf(values: readonly (string | number | null)[]): string {
  return bytesToHex(sha256(utf8ToBytes(JSON.stringify(values)))).slice(0, 32);
}

/** Reports whether `AcctSvcrRef` is a reference. NONREF and zeros are none. */
export function isReference(text: string | null): text is string {
  return text !== null && /[1-9]/.test(text);
}

function withoutZeros(text: string): string {
  return text.replace(/^0+/, "");
}

/**
 * The id of our order, or whatever the payer wrote into a single transaction. A batch has only the
 * id that it got from us.
 */
function contentOf({ batch, detail, is_batch }: IdentitySource): (string | null)[] {
  const is_single = detail !== null && !is_batch;
  const id = is_single
    ? detail.end_to_end_id
    : batch?.payment_information_id ?? detail?.payment_information_id ?? null;
  const order_id = idOfBankIdentifier(id ?? "");
  if (order_id !== null || !is_single) return [order_id ?? id];
  const { end_to_end_id, references, remittance, counterparty, transaction_id } = detail;
  const texts = [end_to_end_id, ...references.map(({ reference }) => reference), remittance];
  const text = texts.join("").replace(/\s+/g, "").toUpperCase();
  return [text || transaction_id, counterparty.iban];
}
