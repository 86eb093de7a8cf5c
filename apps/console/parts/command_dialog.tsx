/** The dialog of Ctrl-K: it finds pages, saved filters and actions of the page by their names. */

import type { TargetedKeyboardEvent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { creatableSections } from "../data/permissions.ts";
import { hrefOf, isId } from "../data/resource_link.ts";
import { href } from "../data/route.ts";
import { createName, sectionName } from "../data/titles.ts";
import { Dialog } from "./dialog.tsx";
import { saved_filters } from "./saved_filters.tsx";

/** Most entries that are shown. */
const SHOWN = 50;
/** The links of the navigation to pages of the console. */
const SECTIONS = 'nav[aria-label="Sections"] a[href^="#/"]';
/** The buttons of the page and of the side. Copies and tabs are no actions. */
const ACTIONS = "main :is(button, a.button), .account button";
const NO_ACTIONS = '.copy, [role="tab"], [aria-disabled="true"]';

/** A name with its link, or with the element that is clicked. */
interface Command {
  name: string;
  kind: "Page" | "Saved filter" | "Action";
  target: string | HTMLElement;
}

export function CommandKey() {
  const [commands, setCommands] = useState<readonly Command[] | null>(null);
  useEffect(() => {
    const open = (event: KeyboardEvent) => {
      const is_wanted = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) &&
        !event.altKey && !event.shiftKey;
      if (!is_wanted) return;
      // The browser has a search of its own at this key.
      event.preventDefault();
      const is_free = document.querySelector("dialog[open]") === null;
      if (is_free) setCommands([...pages(), ...savedFilters(), ...actions()]);
    };
    addEventListener("keydown", open);
    return () => removeEventListener("keydown", open);
  }, []);
  return commands && <CommandDialog commands={commands} close={() => setCommands(null)} />;
}

/** Returns the pages that the key may read, and those that make an item. */
function pages(): Command[] {
  const sections = [...document.querySelectorAll<HTMLElement>(SECTIONS)];
  return [
    ...sections.map((link) => [link.textContent, link.getAttribute("href")!] as const),
    ...creatableSections().map((name) => [createName(name), href([name, "new"])] as const),
    [sectionName("compare"), href(["compare"])] as const,
  ].map(([name, target]) => ({ name, kind: "Page", target }));
}

function savedFilters(): Command[] {
  return [...saved_filters.value].map(([target, name]) => {
    const section = /^#\/(\w*)/.exec(target)![1]!;
    return { name: `${sectionName(section)}: ${name}`, kind: "Saved filter", target };
  });
}

/** Returns the actions that the page shows, each name once. */
function actions(): Command[] {
  const found = new Map<string, HTMLElement>();
  for (const element of document.querySelectorAll<HTMLElement>(ACTIONS)) {
    if (element.matches(NO_ACTIONS) || !element.checkVisibility()) continue;
    const name = (element.ariaLabel ?? element.innerText).replaceAll(/\s+/g, " ").trim();
    if (name !== "" && !found.has(name)) found.set(name, element);
  }
  return [...found].map(([name, target]) => ({ name, kind: "Action", target }));
}

/** Returns the commands with all words of a text. Names that begin with it come first. */
function matches(commands: readonly Command[], text: string): Command[] {
  const words = text.toLowerCase().split(/\s+/);
  const begins = ({ name }: Command) => name.toLowerCase().startsWith(words[0]!) ? 0 : 1;
  return commands
    .filter(({ name }) => words.every((word) => name.toLowerCase().includes(word)))
    .sort((a, b) => begins(a) - begins(b));
}

function CommandDialog({ commands, close }: { commands: readonly Command[]; close: () => void }) {
  const [typed, setTyped] = useState("");
  const text = typed.trim();
  const page = isId(text) ? hrefOf(text) : null;
  const found = matches(commands, text).slice(0, SHOWN);
  if (text !== "") {
    const target = page ?? href(["search"], { q: text });
    found.push({ name: page ? `Open ${text}` : `Search for “${text}”`, kind: "Page", target });
  }
  const run = ({ target }: Command) => {
    close();
    if (typeof target === "string") location.hash = target;
    // The dialog first returns the focus. A dialog of the action then returns it to the button.
    else {
      setTimeout(() => {
        target.focus();
        target.click();
      });
    }
  };
  return (
    <Dialog title="Go to a page or an action" close={close}>
      <div class="commands" onKeyDown={moveFocus}>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (found[0]) run(found[0]);
          }}
        >
          <input
            type="text"
            aria-label="Page or action"
            placeholder="Name, id or text"
            autoComplete="off"
            spellcheck={false}
            autoFocus
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </form>
        <ul aria-label="Pages and actions">
          {found.map((command) => (
            <li key={`${command.kind} ${command.name}`}>
              {typeof command.target === "string"
                ? (
                  <a href={command.target} onClick={close}>
                    {command.name} <span class="quiet">{command.kind}</span>
                  </a>
                )
                : (
                  <button type="button" onClick={() => run(command)}>
                    {command.name} <span class="quiet">{command.kind}</span>
                  </button>
                )}
            </li>
          ))}
        </ul>
      </div>
    </Dialog>
  );
}

/** Moves the focus with the arrow keys between the field and the entries. */
function moveFocus(event: TargetedKeyboardEvent<HTMLElement>): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const stops = [...event.currentTarget.querySelectorAll<HTMLElement>("input, a, button")];
  stops.at((stops.indexOf(document.activeElement as HTMLElement) + step) % stops.length)?.focus();
}
