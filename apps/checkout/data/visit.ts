/**
 * The visit of a payer in this tab: the place in the address, and two values that survive a visit
 * to the bank. A token stands in the fragment, so it reaches no log of the page's host.
 */

const TOKEN = "checkout_token";
const ATTEMPT = "checkout_attempt";
const BANK = "bank/";

/** A part of the page: a checkout, or the bank step of a payment. Null: the address names none. */
type Place = { kind: "checkout" | "bank"; token: string } | null;

/** Reads the place. A bank can come back to the page without a fragment. */
export function readPlace(): Place {
  const kept = read(TOKEN);
  const fragment = location.hash.slice(1) || kept || "";
  if (fragment === "") return null;
  if (fragment.startsWith(BANK)) return { kind: "bank", token: fragment.slice(BANK.length) };
  if (kept !== fragment) endVisit();
  write(TOKEN, fragment);
  // The parameters with which a bank has sent the payer back go.
  history.replaceState(null, "", `${location.pathname}#${fragment}`);
  return { kind: "checkout", token: fragment };
}

/** The payer's own attempt in this tab. */
export function ownAttempt(): string | null {
  return read(ATTEMPT);
}

export function keepAttempt(payment_id: string): void {
  write(ATTEMPT, payment_id);
}

/** The checkout from which the payer has come to the bank step of a payment; null: from elsewhere. */
export function checkoutBehind(payment_id: string): string | null {
  const token = read(TOKEN);
  return token !== null && ownAttempt() === payment_id ? `#${token}` : null;
}

/** Forgets the visit, so that the link opens as for a new payer. */
export function endVisit(): void {
  write(TOKEN, null);
  write(ATTEMPT, null);
}

/** The values where the browser keeps none. */
const memory = new Map<string, string>();

function read(name: string): string | null {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return memory.get(name) ?? null;
  }
}

function write(name: string, value: string | null): void {
  try {
    if (value === null) sessionStorage.removeItem(name);
    else sessionStorage.setItem(name, value);
  } catch {
    if (value === null) memory.delete(name);
    else memory.set(name, value);
  }
}
