/** The words of the page in the payer's language, with amounts and times as people write them. */

import { createContext } from "preact";
import { useContext, useEffect, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { formatDecimal, isStablecoin, minorUnitDigits } from "../../../shared/core/currency.ts";
import de from "../locales/de.json" with { type: "json" };
import en from "../locales/en.json" with { type: "json" };
import es from "../locales/es.json" with { type: "json" };
import fr from "../locales/fr.json" with { type: "json" };
import it from "../locales/it.json" with { type: "json" };
import nl from "../locales/nl.json" with { type: "json" };
import pl from "../locales/pl.json" with { type: "json" };

/** A text of the page. In a checkout that only saves, that of `pay` is `pay_save`, if present. */
export type Key = Exclude<keyof typeof en, `${string}_save`>;

export const LANGUAGES: Readonly<Record<string, Record<keyof typeof en, string>>> = {
  ...{ en, de, fr, es, it, nl, pl },
};

interface Words {
  /** BCP 47, for the document and for `Intl`. */
  language: string;
  /** Returns a text with its values in place of `{name}`. */
  say(key: Key, values?: Record<string, string>): string;
  money(amount_minor: number, currency: string): string;
  /** A time of day and its date, in the payer's time zone. */
  time(at: string): string;
  /** A time of day alone. */
  clock(at_ms: number): string;
  /** A date without a time, such as `2026-12-14`. */
  day(date: string): string;
}

/** Returns the words of the first language that the page has: the wanted one, or the browser's. */
export function wordsFor(
  wanted: string | null,
  spoken: readonly string[],
  only_saves = false,
): Words {
  const known = [...(wanted === null ? [] : [wanted]), ...spoken]
    .find((tag) => baseOf(tag) in LANGUAGES) ?? "en";
  // The payer's own region decides how to write a date.
  const language = spoken.find((tag) => baseOf(tag) === baseOf(known)) ?? known;
  const texts: Readonly<Record<string, string>> = LANGUAGES[baseOf(known)]!;
  const textOf = (key: Key) => (only_saves ? texts[`${key}_save`] : undefined) ?? texts[key]!;
  const write = (at: number, options: Intl.DateTimeFormatOptions) =>
    new Intl.DateTimeFormat(language, options).format(at);
  return {
    language,
    say: (key, values = {}) => textOf(key).replace(/\{(\w+)\}/g, (_, name) => values[name] ?? ""),
    money: (amount_minor, currency) => moneyText(language, amount_minor, currency),
    time: (at) => write(Date.parse(at), { dateStyle: "long", timeStyle: "short" }),
    clock: (at_ms) => write(at_ms, { timeStyle: "short" }),
    day: (date) => write(Date.parse(date), { dateStyle: "long", timeZone: "UTC" }),
  };
}

function baseOf(tag: string): string {
  return tag.toLowerCase().split("-")[0]!;
}

function moneyText(language: string, amount_minor: number, currency: string): string {
  const decimal = formatDecimal(amount_minor, currency) as Intl.StringNumericLiteral;
  const digits = minorUnitDigits(currency);
  if (isStablecoin(currency)) {
    const options = { minimumFractionDigits: 2, maximumFractionDigits: digits };
    return `${new Intl.NumberFormat(language, options).format(decimal)}\u00a0${currency}`;
  }
  const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return new Intl.NumberFormat(language, { style: "currency", currency, ...options })
    .format(decimal);
}

/** A checkout or a payment, which decides the words: 0 only saves. */
interface Subject {
  locale: string | null;
  amount_minor: number;
}

export const WordsContext = createContext<{ words: Words; follow(subject: Subject): void }>({
  words: wordsFor(null, []),
  follow() {},
});

export function useWords(): Words {
  return useContext(WordsContext).words;
}

/** Sets the words of the document to those of a subject, as soon as it is known. */
export function useWordsOf(subject: Subject | null): void {
  const { follow } = useContext(WordsContext);
  useLayoutEffect(() => subject ? follow(subject) : undefined, [
    subject?.locale,
    subject?.amount_minor,
  ]);
}

/** The words of a document, whose language they set. */
export function useDocumentWords() {
  const [{ locale, amount_minor }, follow] = useState<Subject>({ locale: null, amount_minor: 1 });
  const words = useMemo(() => wordsFor(locale, navigator.languages, amount_minor === 0), [
    locale,
    amount_minor,
  ]);
  useEffect(() => {
    document.documentElement.lang = words.language;
  }, [words]);
  return { words, follow };
}
