/**
 * The text of a QR code from which a banking app fills in a SEPA credit transfer (EPC069-12 of the
 * European Payments Council, version 002).
 */

/** Limits of the guidelines: the largest amount, in cents, and the longest name. */
const AMOUNT_MAX = 99_999_999_999;
const NAME_MAX = 70;

interface RequestedTransfer {
  iban: string;
  bic: string;
  holder_name: string;
  /** ISO 11649. */
  reference: string;
  amount_minor: number;
  currency: string;
}

/** Makes the text. Returns null if such a code cannot ask for the amount or the currency. */
export function epcQr(transfer: RequestedTransfer): string | null {
  const { iban, bic, holder_name, reference, amount_minor, currency } = transfer;
  if (currency !== "EUR" || amount_minor > AMOUNT_MAX) return null;
  const cents = String(amount_minor).padStart(3, "0");
  const amount = `EUR${cents.slice(0, -2)}.${cents.slice(-2)}`;
  const name = [...holder_name].slice(0, NAME_MAX).join("");
  const [utf8, purpose] = ["1", ""];
  return ["BCD", "002", utf8, "SCT", bic, name, iban, amount, purpose, reference].join("\n");
}
