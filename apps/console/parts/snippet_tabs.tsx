/** Texts in tabs, each with a button that copies it: snippets, requests and responses. */

import type { ComponentChildren } from "preact";
import { useId, useRef, useState } from "preact/hooks";
import { CopyButton } from "./text.tsx";

/** The tabs. The arrow keys move between them. `texts` has the text of each tab by its name. */
export function SnippetTabs(props: {
  /** Accessible name of the row of tabs. */
  label: string;
  texts: Readonly<Record<string, string>>;
  /** Below the text of a tab, by its name. */
  note?: (tab: string) => ComponentChildren;
}) {
  const { label, texts } = props;
  const names = Object.keys(texts);
  const [picked, setPicked] = useState(names[0]!);
  const tab = names.includes(picked) ? picked : names[0]!;
  const tabs = useRef<HTMLDivElement>(null);
  const id = useId();
  const move = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = (names.indexOf(tab) + step + names.length) % names.length;
    setPicked(names[next]!);
    tabs.current?.querySelectorAll<HTMLElement>("[role=tab]")[next]?.focus();
  };
  const text = texts[tab]!;
  const note = props.note?.(tab) ?? null;
  return (
    <>
      <div class="tabs">
        <div role="tablist" aria-label={label} ref={tabs} onKeyDown={move}>
          {names.map((name) => (
            <button
              key={name}
              type="button"
              role="tab"
              id={`${id}-${name}`}
              aria-selected={name === tab}
              aria-controls={`${id}-text`}
              tabIndex={name === tab ? 0 : -1}
              onClick={() => setPicked(name)}
            >
              {name}
            </button>
          ))}
        </div>
        <CopyButton text={text} label={`Copy ${tab}`} />
      </div>
      <pre id={`${id}-text`} role="tabpanel" aria-labelledby={`${id}-${tab}`} tabIndex={0}>
        <code>{text}</code>
      </pre>
      {note !== null && <p class="quiet">{note}</p>}
    </>
  );
}
