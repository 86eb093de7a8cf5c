/**
 * The script of a page of the documentation: the search, the choice of light or dark, and a button
 * that copies a block of code. Without it everything else works.
 */
/// <reference lib="dom" />
/// <reference lib="dom.iterable" />

import MiniSearch, { type SearchResult } from "minisearch";
import { SEARCH_OPTIONS, type SearchedSection } from "./search_options.ts";

const MAX_RESULTS = 12;
/** Name of the stored choice of light or dark; `theme.js` reads it before the first paint. */
const THEME = "payments-docs-theme";
/** Time for which a button says that it has copied. */
const COPIED_MS = 1_500;

/** The address of the folder of the documentation, relative to the page. */
const root = document.documentElement.dataset["root"] ?? "";

enableTheme(document.querySelector<HTMLButtonElement>("#theme")!);
enableSearch(
  document.querySelector<HTMLButtonElement>("#search")!,
  document.querySelector<HTMLDialogElement>("#results")!,
);
for (const block of document.querySelectorAll<HTMLElement>(".code")) addCopyButton(block);

function enableTheme(button: HTMLButtonElement): void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () =>
    (document.documentElement.dataset["theme"] ?? "") === ""
      ? system.matches
      : document.documentElement.dataset["theme"] === "dark";
  const show = () => {
    const label = isDark() ? "Use light colours" : "Use dark colours";
    button.setAttribute("aria-label", label);
    button.title = label;
  };
  button.addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset["theme"] = theme;
    try {
      localStorage.setItem(THEME, theme);
    } catch {
      // A browser can forbid the storage. Then the choice lasts until the next page.
    }
    show();
  });
  system.addEventListener("change", show);
  show();
  button.hidden = false;
}

function enableSearch(button: HTMLButtonElement, dialog: HTMLDialogElement): void {
  const input = dialog.querySelector("input")!;
  const list = dialog.querySelector("ul")!;
  const status = dialog.querySelector<HTMLElement>("[role=status]")!;
  let loading: Promise<MiniSearch<SearchedSection>> | undefined;
  const load = () => loading ??= loadIndex();

  const search = async () => {
    const query = input.value.trim();
    let results: SearchResult[];
    try {
      results = query === "" ? [] : (await load()).search(query).slice(0, MAX_RESULTS);
    } catch {
      loading = undefined;
      status.textContent = "The search cannot be loaded: check the connection and type again";
      return;
    }
    // Another letter can have been typed while the index was loaded.
    if (query !== input.value.trim()) return;
    list.replaceChildren(...results.map(resultItem));
    status.textContent = query === ""
      ? ""
      : results.length === 0
      ? `Nothing contains “${query}”`
      : `${results.length === MAX_RESULTS ? "The first " : ""}${results.length} results`;
  };
  const open = () => {
    if (dialog.open) return;
    dialog.showModal();
    input.select();
    load().catch(() => loading = undefined);
  };
  const links = () => [...list.querySelectorAll("a")];

  button.hidden = false;
  button.addEventListener("click", open);
  input.addEventListener("input", search);
  dialog.querySelector("button")!.addEventListener("click", () => dialog.close());
  // A click outside the box is one on the dialog itself.
  dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
  list.addEventListener("click", () => dialog.close());
  document.addEventListener("keydown", (event) => {
    const is_typing = event.target instanceof HTMLElement &&
      event.target.matches("input, textarea");
    const is_shortcut = event.key === "/" && !is_typing ||
      event.key === "k" && (event.ctrlKey || event.metaKey);
    if (is_shortcut) {
      event.preventDefault();
      open();
    }
  });
  dialog.addEventListener("keydown", (event) => {
    const all = links();
    const at = all.indexOf(document.activeElement as HTMLAnchorElement);
    if (event.key === "ArrowDown") (all[at + 1] ?? all.at(-1))?.focus();
    else if (event.key === "ArrowUp") (at > 0 ? all[at - 1] : input)?.focus();
    else if (event.key === "Enter" && event.target === input) all[0]?.click();
    // A browser would only empty the field.
    else if (event.key === "Escape") dialog.close();
    else return;
    event.preventDefault();
  });
}

async function loadIndex(): Promise<MiniSearch<SearchedSection>> {
  const response = await fetch(`${root}search.json`);
  if (!response.ok) throw new Error(`search.json: ${response.status}`);
  return MiniSearch.loadJSON(await response.text(), SEARCH_OPTIONS);
}

function resultItem({ id, page, heading, excerpt }: SearchResult): HTMLElement {
  const link = element("a", "", "");
  (link as HTMLAnchorElement).href = root + id;
  link.append(
    element("span", "title", heading === "" || heading === page ? page : heading),
    ...(heading === "" || heading === page ? [] : [element("span", "page", page)]),
    element("span", "excerpt", excerpt),
  );
  const item = element("li", "", "");
  item.append(link);
  return item;
}

function addCopyButton(block: HTMLElement): void {
  const button = element("button", "copy", "Copy") as HTMLButtonElement;
  button.type = "button";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.querySelector("code")!.textContent ?? "");
    button.textContent = "Copied";
    setTimeout(() => button.textContent = "Copy", COPIED_MS);
  });
  // Browsers give pages without encryption no clipboard, except on this machine.
  if (isSecureContext) block.append(button);
}

function element(name: string, class_name: string, text: string): HTMLElement {
  const made = document.createElement(name);
  if (class_name !== "") made.className = class_name;
  made.textContent = text;
  return made;
}
