/**
 * Accepted currencies and the number of decimals of their minor units.
 *
 * The list holds the active codes of ISO 4217 list one with the changes up to January 2026 (XCG
 * replaces ANG, BGN is withdrawn), and two stablecoins. It excludes codes that payments do not use:
 * funds codes (BOV CHE CHW CLF COU MXV USN UYI), index and accounting units (UYW XAD XDR XSU XUA),
 * bond market units (XBA XBB XBC XBD), precious metals (XAG XAU XPD XPT), and the codes for tests
 * and for no currency (XTS XXX).
 */

/** Accepted stablecoins. Their token contracts use 6 decimals (contract §2). */
export const STABLECOINS = ["USDC", "USDT"] as const;

export type Stablecoin = typeof STABLECOINS[number];

export function isStablecoin(currency: string): currency is Stablecoin {
  return (STABLECOINS as readonly string[]).includes(currency);
}

const WITHOUT_MINOR_UNIT = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF";

const WITH_TWO_DECIMALS = `
  AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF
  CNY COP CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL
  HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT
  MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB
  SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH
  USD UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG`;

const WITH_THREE_DECIMALS = "BHD IQD JOD KWD LYD OMR TND";

/** Decimals of the minor unit by currency code, in alphabetic order. Codes are upper case. */
export const CURRENCIES: ReadonlyMap<string, number> = new Map(
  [
    ...codes(WITHOUT_MINOR_UNIT, 0),
    ...codes(WITH_TWO_DECIMALS, 2),
    ...codes(WITH_THREE_DECIMALS, 3),
    ...codes(STABLECOINS.join(" "), 6),
  ].sort(([a], [b]) => a < b ? -1 : 1),
);

/**
 * Converts a code to upper case. Only ASCII letters change, because `toUpperCase` alone would turn
 * the text `uſd`, with a long s, into `USD`.
 */
export function normalizeCurrency(text: string): string {
  return text.replace(/[a-z]+/g, (letters) => letters.toUpperCase());
}

/** Reports whether a text is an accepted code in upper case. */
export function isCurrency(text: string): boolean {
  return CURRENCIES.has(text);
}

/**
 * Returns the number of decimals of a currency's minor unit: 2 for EUR, 0 for JPY, 6 for USDC.
 * Throws `RangeError` if the code is not one of `CURRENCIES`.
 */
export function minorUnitDigits(code: string): number {
  const digits = CURRENCIES.get(code);
  if (digits === undefined) throw new RangeError(`no minor unit for "${code}": unknown currency`);
  return digits;
}

/**
 * Formats an amount for people: 1999 in EUR is `19.99 EUR`, 1999 in JPY is `1999 JPY`.
 *
 * @param code one of `CURRENCIES`
 */
export function formatAmount(amount_minor: number, code: string): string {
  return `${formatDecimal(amount_minor, code)} ${code}`;
}

/**
 * Formats an amount as a decimal text: 1999 in EUR is `19.99`, 1999 in JPY is `1999`.
 *
 * @param code one of `CURRENCIES`
 */
export function formatDecimal(amount_minor: number, code: string): string {
  const digits = minorUnitDigits(code);
  if (digits === 0) return String(amount_minor);
  const text = String(amount_minor).padStart(digits + 1, "0");
  return `${text.slice(0, -digits)}.${text.slice(-digits)}`;
}

/**
 * Converts a decimal text such as `19.99` to minor units without floating point. Returns null if
 * the text is not a decimal number or has more decimals than the currency.
 *
 * @param code one of `CURRENCIES`
 */
export function parseDecimal(text: string, code: string): number | null {
  const [, whole, fraction = ""] = /^(\d{1,13})(?:\.(\d+))?$/.exec(text) ?? [];
  const digits = minorUnitDigits(code);
  if (whole === undefined || /[1-9]/.test(fraction.slice(digits))) return null;
  return Number(whole + fraction.slice(0, digits).padEnd(digits, "0"));
}

function codes(list: string, digits: number): [string, number][] {
  return list.trim().split(/\s+/).map((code) => [code, digits]);
}
