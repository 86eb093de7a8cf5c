/**
 * The entry point of the card step of live checkouts. It is a document of its own, because only its
 * policy names the provider's hosts. It shows the fields; every other view is on the page for
 * payers.
 */
/// <reference lib="dom" />
/// <reference lib="dom.iterable" />

import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useFlow } from "../data/flow.ts";
import { readPlace } from "../data/visit.ts";
import { useDocumentWords, useWordsOf, WordsContext } from "../data/words.ts";
import { FormView, NoPage } from "../pages/checkout_page.tsx";
import { Frame } from "../parts/panel.tsx";
import { Summary } from "../parts/summary.tsx";
import { CardForm } from "./card_form.tsx";

/** The page for payers, with the token of this visit. */
const place = readPlace();
const PAGE = `../#${place?.token ?? ""}`;
// The provider's script reads the address of the document, and must not get the token.
history.replaceState(null, "", location.pathname);

function CardStep({ token }: { token: string }) {
  const flow = useFlow(token);
  const paid = useRef(false);
  const { page, trouble } = flow;
  useWordsOf(page);
  const has_fields = page?.view === "form" && page.publishable_key !== null;
  // After an attempt that its bank asks about, the flow itself leads there.
  const leaves = trouble?.kind === "unknown" ||
    page !== null && !has_fields && !(page.view === "action" && paid.current);
  useEffect(() => {
    if (leaves) location.replace(PAGE);
  }, [leaves]);
  if (!has_fields) return <NoPage trouble={trouble} onRead={flow.read} />;
  return (
    <Frame is_test={false} aside={<Summary page={page} />}>
      <FormView flow={flow} page={page}>
        <CardForm
          page={page}
          is_busy={flow.is_busy}
          otherwise={PAGE}
          onPay={(body) => {
            paid.current = true;
            return flow.pay(body);
          }}
        />
      </FormView>
    </Frame>
  );
}

function App() {
  const words = useDocumentWords();
  if (place?.kind !== "checkout") return location.replace(PAGE), null;
  return (
    <WordsContext.Provider value={words}>
      <CardStep token={place.token} />
    </WordsContext.Provider>
  );
}

render(<App />, document.querySelector("#checkout")!);
