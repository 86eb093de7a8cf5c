/** The frame of every view: the mark of a test page, a title that takes the focus, and notices. */

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { useWords } from "../data/words.ts";

/** The frame of the whole page. */
export function Frame({ is_test, aside, children }: {
  is_test: boolean;
  /** The price, beside the view. */
  aside?: ComponentChildren;
  children: ComponentChildren;
}) {
  const { say } = useWords();
  useEffect(() => void document.documentElement.classList.toggle("test", is_test), [is_test]);
  return (
    <>
      {is_test && (
        <header class="test-mark">
          <p>{say("test_page")}</p>
        </header>
      )}
      <main class={aside ? "split" : "single"}>
        {aside}
        <div class="view">{children}</div>
      </main>
    </>
  );
}

/** The title of a view. It takes the focus when the view takes the place of another one. */
export function Title({ text, focus = true }: { text: string; focus?: boolean }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => {
    if (focus && titles > 0) heading.current?.focus();
    titles++;
  }, []);
  useEffect(() => {
    document.title = text;
  }, [text]);
  return <h1 tabIndex={-1} ref={heading}>{text}</h1>;
}

/** The titles so far. The first one leaves the focus where the browser has put it. */
let titles = 0;

/** A message about what the payer has done. With `focus` screen readers continue here. */
export function Notice({ tone, title, text, focus = false }: {
  tone: "bad" | "wait";
  title: string;
  text: string;
  focus?: boolean;
}) {
  const box = useRef<HTMLDivElement>(null);
  // Before the payer can type: a later focus takes the keys of a field.
  useLayoutEffect(() => {
    if (focus) box.current?.focus();
  }, []);
  return (
    <div class={`notice ${tone}`} role={focus ? "alert" : "status"} tabIndex={-1} ref={box}>
      <h2>{title}</h2>
      <p>{text}</p>
    </div>
  );
}
