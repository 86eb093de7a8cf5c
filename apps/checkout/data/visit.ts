/**
 * The visit of a payer in this tab: the place in the address, and two values that survive a visit
 * to the bank. A token stands in the fragment, so it reaches no log of the page's host.
 */

const TOKEN = "checkout_token";
const ATTEMPT = "checkout_attempt";
const BANK = "bank/";

/** A part of the page: a checkout, or the bank step of a payment. Null: the address names none. */
type Place = { kind: "checkout" | "bank"; token: string } | null;

/** The values of the tab; where the browser keeps none, those of the document. */
const kept = openStorage();

function openStorage(): Record<string, string> {
  try {
    return sessionStorage as unknown as Record<string, string>;
  } catch {
    return {};
  }
}

/** Reads the place. A bank can come back to the page without a fragment. */
export function readPlace(): Place {
  const fragment = location.hash.slice(1) || kept[TOKEN] || "";
  if (fragment === "") return null;
  if (fragment.startsWith(BANK)) return { kind: "bank", token: fragment.slice(BANK.length) };
  if (kept[TOKEN] !== fragment) endVisit();
  kept[TOKEN] = fragment;
  // The parameters with which a bank has sent the payer back go.
  history.replaceState(null, "", `${location.pathname}#${fragment}`);
  return { kind: "checkout", token: fragment };
}

/** The payer's own attempt in this tab. */
export function ownAttempt(): string | null {
  return kept[ATTEMPT] ?? null;
}

export function keepAttempt(payment_id: string): void {
  kept[ATTEMPT] = payment_id;
}

/** The checkout from which the payer came to the bank step of a payment; null: from elsewhere. */
export function checkoutBehind(payment_id: string): string | null {
  return kept[TOKEN] && kept[ATTEMPT] === payment_id ? `#${kept[TOKEN]}` : null;
}

/** Forgets the visit, so that the link opens as for a new payer. */
export function endVisit(): void {
  delete kept[TOKEN];
  delete kept[ATTEMPT];
}
