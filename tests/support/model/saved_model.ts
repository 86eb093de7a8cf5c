/**
 * A model of instruments that payments save, written like payment_model.ts from the contract (§2).
 * An instrument belongs to the payment that saves it, which gives it its result.
 */

import { OPEN } from "./statuses.ts";

/** An instrument in the model. */
export interface Saved {
  /** Its name in INSTRUMENTS. */
  name: string;
  status: "pending" | "active" | "failed" | "ended";
  usage: string;
  /** False: a mandate whose IBAN comes with each payment. */
  is_kept: boolean;
  /** Why it has ended; null: it has not. */
  reason: string | null;
  sequence: number;
}

type Payment = Readonly<{ status: string; kind: string }>;

/** The instrument that a new payment saves. */
export function newSaved(name: string, usage: string, payment: Payment): Saved {
  const saved = { name, status: "pending", usage, is_kept: true, reason: null } as const;
  return { ...settleSaved({ ...saved, sequence: 1 }, payment)!, sequence: 1 };
}

/** The instrument after a change of its payment. Only the first result counts. */
export function settleSaved(saved: Saved | null, { status, kind }: Payment): Saved | null {
  if (saved?.status !== "pending") return saved;
  const is_collected = status === "processing" && kind === "sepa";
  if (OPEN.includes(status) && !is_collected) return saved;
  const has_failed = ["declined", "failed", "cancelled"].includes(status);
  return { ...saved, status: has_failed ? "failed" : "active", sequence: saved.sequence + 1 };
}

/** The instrument after its end, which only an active one has. */
export function endSaved(saved: Saved, reason: string): Saved {
  return saved.status === "active"
    ? { ...saved, status: "ended", reason, sequence: saved.sequence + 1 }
    : saved;
}
