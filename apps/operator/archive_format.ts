/**
 * The files of an archive. Each day of a live environment is a folder `<environment_id>/<day>` with
 * its events and deliveries as gzipped lines of JSON, and a manifest with the checksums of these
 * files, the sums of the ledger, and the checksum of the manifest before. `<environment_id>/latest`
 * names the last manifest, so the archive can be checked from there to its beginning.
 */

import { createHash } from "node:crypto";
import * as z from "zod";

const Day = z.iso.date();
const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);
/** An amount in minor units. It can exceed what a number holds. */
const Amount = z.string().regex(/^-?\d+$/);

export const ManifestLink = z.object({ day: Day, sha256: Sha256 });
export type ManifestLink = z.infer<typeof ManifestLink>;

/** A file of a day: its lines, and the checksum of its bytes as stored. */
const ArchivedFile = z.object({
  name: z.string().regex(/^(events|deliveries)-\d{4}\.ndjson\.gz$/),
  lines: z.int().min(1),
  sha256: Sha256,
});
export type ArchivedFile = z.infer<typeof ArchivedFile>;

/** The movements between two accounts: before the day, during it, and until its end. */
const LedgerSum = z.object({
  currency: z.string(),
  debit_account: z.string(),
  credit_account: z.string(),
  opening: Amount,
  moved: Amount,
  closing: Amount,
});
export type LedgerSum = z.infer<typeof LedgerSum>;

/** The movements between two accounts, as `pay.sum_archive` returns them. */
export interface MovedSum {
  currency: string;
  debit_account: string;
  credit_account: string;
  amount_minor: string;
}

export const Manifest = z.object({
  format: z.literal(1),
  environment_id: z.string(),
  account: z.string(),
  day: Day,
  /** Null on the first day of the archive. */
  previous: ManifestLink.nullable(),
  files: z.array(ArchivedFile),
  ledger: z.array(LedgerSum),
});
export type Manifest = z.infer<typeof Manifest>;

export function latestPath(environment_id: string): string {
  return `${environment_id}/latest.json`;
}

export function dayPath(environment_id: string, day: string, name = "manifest.json"): string {
  return `${environment_id}/${day}/${name}`;
}

/** SHA-256 in lower-case hex. */
export function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Returns the sums of a day that follow from those of the day before and the day's movements. */
export function carryForward(
  before: readonly LedgerSum[],
  moved: readonly MovedSum[],
): LedgerSum[] {
  const sums = new Map<string, LedgerSum>();
  const keyOf = (sum: Omit<MovedSum, "amount_minor">) =>
    `${sum.currency} ${sum.debit_account} ${sum.credit_account}`;
  for (const { closing, ...sum } of before) {
    sums.set(keyOf(sum), { ...sum, opening: closing, moved: "0", closing });
  }
  for (const { amount_minor, ...pair } of moved) {
    const opening = sums.get(keyOf(pair))?.opening ?? "0";
    const closing = String(BigInt(opening) + BigInt(amount_minor));
    sums.set(keyOf(pair), { ...pair, opening, moved: amount_minor, closing });
  }
  return [...sums.entries()].sort(([a], [b]) => a < b ? -1 : 1).map(([, sum]) => sum);
}
