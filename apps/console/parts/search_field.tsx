/** The search field in the head of the console. The key `/` leads to it. */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { hrefOf, isId } from "../data/resource_link.ts";
import { go, route } from "../data/route.ts";

/** Elements in which a slash is text. */
const TEXT_FIELDS =
  'input:not([type="checkbox"], [type="radio"]), select, textarea, [contenteditable]';

/** The field. An id opens the page of its resource, any other text the page of matches. */
export function SearchField() {
  const field = useRef<HTMLInputElement>(null);
  const { steps, query } = route.value;
  const sought = steps[0] === "search" ? query["q"] ?? "" : "";
  const [draft, setDraft] = useState<string | null>(null);
  // A layout effect runs before the browser paints. Later, it could undo what the user types.
  useLayoutEffect(() => setDraft(null), [sought]);
  useEffect(() => {
    const reach = (event: KeyboardEvent) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
      const is_typing = event.target instanceof Element && event.target.matches(TEXT_FIELDS);
      if (is_typing || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      field.current?.select();
    };
    document.addEventListener("keydown", reach);
    return () => document.removeEventListener("keydown", reach);
  }, []);
  return (
    <form
      class="search"
      role="search"
      aria-label="Search the sandbox"
      onSubmit={(event) => {
        event.preventDefault();
        openSearch(field.current!.value);
        setDraft(null);
      }}
    >
      <input
        ref={field}
        type="search"
        aria-label="Search"
        aria-keyshortcuts="/"
        title="An id opens its page. A reference, an e-mail address, a name, an amount or other words list the matches. The key / leads here, and Ctrl K finds pages and actions."
        placeholder="Id, reference, e-mail…"
        autoComplete="off"
        spellcheck={false}
        value={draft ?? sought}
        onInput={(event) => setDraft(event.currentTarget.value)}
      />
      <kbd aria-hidden="true">/</kbd>
    </form>
  );
}

function openSearch(typed: string): void {
  const text = typed.trim();
  if (text === "") return;
  const place = isId(text) ? hrefOf(text) : null;
  if (place !== null) location.hash = place;
  else go(["search"], { q: text });
}
