/**
 * The JSON text of a payment or transfer, and the splices that undo a change in it (ADR 0002).
 * Pure.
 */

/** An event with this sequence, or a multiple of it, has the whole text before it. */
const WHOLE_EVERY = 32;
/** Characters that are two units in JavaScript and one in PostgreSQL. */
const SURROGATE = /[\ud800-\udfff]/;

const QUOTE = 0x22;
const COMMA = 0x2c;
const LIST = 0x5b;
const BACKSLASH = 0x5c;
const LIST_END = 0x5d;
const OBJECT = 0x7b;
const OBJECT_END = 0x7d;

type Members = Readonly<Record<string, unknown>>;

export class ResourceText {
  #resource: Members | null;
  #text: string | null = null;

  /** @param resource as it is stored; null: a new one */
  constructor(resource: object | null) {
    this.#resource = resource as Members | null;
  }

  /** The newest state of the resource as JSON text; empty: there is none. */
  get text(): string {
    return this.#text ??= this.#resource === null ? "" : JSON.stringify(this.#resource);
  }

  /**
   * Takes the next state of the resource. Returns the splices that turn its text into the text
   * before, as `pay_internal.text_at` reads them; null: there was none.
   */
  next(resource: object, sequence: number): string[] | null {
    const before = this.#resource;
    this.#resource = resource as Members;
    this.#text = null;
    if (before === null) return null;
    const is_whole = sequence % WHOLE_EVERY === 0 || SURROGATE.test(this.text);
    const found = is_whole ? null : splices(before, this.#resource, this.text);
    return found ?? [`0,0,${JSON.stringify(before)}`];
  }
}

/**
 * Each splice is "at,length,text": the text that stood there, the last place first. At 0 it is the
 * whole text. Returns null if the members have other names.
 * @param text that of `after`
 */
function splices(before: Members, after: Members, text: string): string[] | null {
  const names = Object.keys(after);
  const earlier = Object.keys(before);
  if (names.length !== earlier.length) return null;
  const found: string[] = [];
  // After the brace and the first quotation mark.
  let at = 2;
  for (let i = 0; i < names.length; i++) {
    const name = names[i]!;
    const now = after[name];
    const stood = before[name];
    if (name !== earlier[i] || (now === undefined) !== (stood === undefined)) return null;
    if (now === undefined) continue;
    const start = at + name.length + 2;
    const end = endOfValue(text, start);
    if (now !== stood) {
      const written = JSON.stringify(stood);
      // PostgreSQL counts from 1.
      if (written !== text.slice(start, end)) found.push(`${start + 1},${end - start},${written}`);
    }
    at = end + 2;
  }
  return found.reverse();
}

/** Returns the place of the comma or bracket after the value that begins at a place of JSON. */
function endOfValue(text: string, start: number): number {
  let depth = 0;
  for (let at = start;; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = endOfText(text, at);
        break;
      case OBJECT:
      case LIST:
        depth++;
        break;
      case COMMA:
        if (depth === 0) return at;
        break;
      case OBJECT_END:
      case LIST_END:
        if (depth-- === 0) return at;
    }
  }
}

/** Returns the place of the quotation mark that ends the text which begins at a place. */
function endOfText(text: string, start: number): number {
  for (let at = start;;) {
    at = text.indexOf('"', at + 1);
    let first = at;
    while (text.charCodeAt(first - 1) === BACKSLASH) first--;
    // After an odd number of backslashes it belongs to the text.
    if ((at - first) % 2 === 0) return at;
  }
}
