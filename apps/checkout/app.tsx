/** The page for payers: a checkout, or the bank step of a payment, as the address says. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { readPlace } from "./data/visit.ts";
import { WordsContext, wordsFor } from "./data/words.ts";
import { BankPage } from "./pages/bank_page.tsx";
import { CheckoutPage } from "./pages/checkout_page.tsx";
import { Frame, Title } from "./parts/panel.tsx";

export function App() {
  const [place, setPlace] = useState(readPlace);
  const [locale, setLocale] = useState<string | null>(null);
  const words = useMemo(() => wordsFor(locale, navigator.languages), [locale]);
  useEffect(() => {
    const move = () => setPlace(readPlace());
    addEventListener("hashchange", move);
    return () => removeEventListener("hashchange", move);
  }, []);
  useEffect(() => {
    document.documentElement.lang = words.language;
  }, [words]);
  return (
    <WordsContext.Provider value={words}>
      {place === null && (
        <Frame is_test={false}>
          <Title text={words.say("unknown_title")} />
          <p>{words.say("unknown_text")}</p>
        </Frame>
      )}
      {place?.kind === "checkout" && (
        <CheckoutPage key={place.token} token={place.token} onLocale={setLocale} />
      )}
      {place?.kind === "bank" && <BankPage key={place.token} token={place.token} />}
    </WordsContext.Provider>
  );
}
