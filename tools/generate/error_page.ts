/**
 * Writes the parts of docs/errors.md that follow from the code: the status and type of each code,
 * and the values that messages refer to. `doc_url` of every error leads to the heading of its code.
 */

import { ERROR_CATALOGUE } from "../../shared/core/errors.ts";
import { EVENT_PATTERNS, EVENT_TYPES } from "../../shared/core/vocabulary.ts";
import { ERROR_CODES } from "../../shared/schema/error.ts";
import { VALUE_TABLES } from "./test_value_tables.ts";
import { wrapped } from "./wrapped.ts";

/** Sections of the page after those of the codes. */
const OTHERS = ["Test values", "Event types"];

export function renderErrorPage(committed: string): string {
  const titles = [...ERROR_CODES, ...OTHERS];
  const present = [...committed.matchAll(/^## (.*)$/gm)].map(([, title]) => title);
  if (String(present) !== String(titles)) {
    throw new Error(
      `docs/errors.md must have these sections, in their order: ${titles.join(", ")}`,
    );
  }
  const codes = ERROR_CODES.map((code): [place: RegExp, text: string] => {
    const { status, type } = ERROR_CATALOGUE[code];
    if (!new RegExp(`^## ${code}\n\n.+(?:\n.+)*\n\n[^#\n]`, "m").test(committed)) {
      throw new Error(`docs/errors.md has no remedy for ${code}`);
    }
    const place = new RegExp(`(?<=^## ${code}\n\n)HTTP \\d+, type \`\\w+\`(?=: )`, "m");
    return [place, `HTTP ${status}, type \`${type}\``];
  });
  const tables = VALUE_TABLES.map((lines): [place: RegExp, text: string] => {
    const [, first] = lines[0]!.split("|");
    const place = new RegExp(`^\\| ${RegExp.escape(first!.trim())} +\\|(?:.*\n\\|)*.*$`, "m");
    return [place, lines.join("\n")];
  });
  const events: [place: RegExp, text: string][] = [
    [/(?<=patterns:\n)[^]*?\.$/m, listOf(EVENT_PATTERNS.slice(1))],
    [/^`payment\.created`[^]*?\.$/m, listOf(EVENT_TYPES)],
  ];
  return [...codes, ...tables, ...events].reduce((page, [place, text]) => {
    if (!place.test(page)) throw new Error(`docs/errors.md has no place for: ${text}`);
    return page.replace(place, () => text);
  }, committed);
}

/** Names as code, in lines of at most 100 characters. */
function listOf(names: readonly string[]): string {
  const words = `${names.map((name) => `\`${name}\``).join(", ")}.`.split(" ");
  return wrapped(words, 100).join("\n");
}
