/** The page for payers: a checkout, or the bank step of a payment, as the address says. */

import { useEffect, useState } from "preact/hooks";
import { readPlace } from "./data/visit.ts";
import { useDocumentWords, WordsContext } from "./data/words.ts";
import { BankPage } from "./pages/bank_page.tsx";
import { CheckoutPage, NoPage } from "./pages/checkout_page.tsx";

export function App() {
  const [place, setPlace] = useState(readPlace);
  const words = useDocumentWords();
  useEffect(() => {
    const move = () => setPlace(readPlace());
    addEventListener("hashchange", move);
    return () => removeEventListener("hashchange", move);
  }, []);
  return (
    <WordsContext.Provider value={words}>
      {place === null && <NoPage trouble={{ kind: "unknown" }} />}
      {place?.kind === "checkout" && <CheckoutPage key={place.token} token={place.token} />}
      {place?.kind === "bank" && <BankPage key={place.token} token={place.token} />}
    </WordsContext.Provider>
  );
}
