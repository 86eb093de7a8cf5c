/** The filters of lists that the user has saved. They are links, and stay in the browser. */

import { signal } from "@preact/signals";
import { showFlash } from "../data/flash.ts";
import { openShelf } from "../data/shelf.ts";

const LIMITS = { values: 20, characters: 2_000 };

const shelf = openShelf<string>(() => localStorage, "payments-console-filters", LIMITS);
export const saved_filters = signal(shelf.read());

function save(link: string, name: string): void {
  // Another tab can have saved some.
  saved_filters.value = shelf.read();
  if (saved_filters.value.size >= LIMITS.values) {
    showFlash(`${LIMITS.values} filters are saved, which is the maximum. Delete one first.`, "bad");
  } else if (!shelf.put(link, name)) {
    showFlash(
      "This filter is too long or contains a card number or a key: it is not saved.",
      "bad",
    );
  }
  saved_filters.value = shelf.read();
}

function remove(link: string): void {
  shelf.remove(link);
  saved_filters.value = shelf.read();
}

/** The saved filters of a list. `link` is the present one, and `name` tells it; empty: none. */
export function SavedFilters({ list, link, name }: { list: string; link: string; name: string }) {
  const saved = [...saved_filters.value].filter(([saved]) => saved.startsWith(`${list}?`));
  const can_save = name !== "" && !saved_filters.value.has(link);
  if (saved.length === 0 && !can_save) return null;
  return (
    <ul class="saved" aria-label="Saved filters">
      {saved.map(([saved, name]) => (
        <li key={saved}>
          <a href={saved} aria-current={saved === link ? "true" : undefined}>{name}</a>
          <button
            type="button"
            class="copy"
            aria-label={`Delete the saved filter ${name}`}
            onClick={() => remove(saved)}
          >
            ×
          </button>
        </li>
      ))}
      {can_save && (
        <li>
          <button type="button" class="plain" onClick={() => save(link, name)}>Save filter</button>
        </li>
      )}
    </ul>
  );
}
