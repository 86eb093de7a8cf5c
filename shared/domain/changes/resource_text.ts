/**
 * The JSON text of a payment or transfer, made member by member: a change makes the text of the
 * changed members only, and the splices that undo it (ADR 0002). Pure.
 */

/** An event with this sequence, or a multiple of it, has the whole text before it. */
const WHOLE_EVERY = 32;
/** Characters that are two units in JavaScript and one in PostgreSQL. */
const SURROGATE = /[\ud800-\udfff]/;

/** A resource, and the JSON text of each of its members. */
interface Written {
  resource: Members;
  names: string[];
  texts: string[];
}

export class ResourceText {
  #written: Written | null;
  #text: string | null = null;

  /** @param resource as it is stored; null: a new one */
  constructor(resource: object | null) {
    this.#written = resource && write(resource as Members, null);
  }

  /** The newest state of the resource as JSON text; empty: there is none. */
  get text(): string {
    return this.#text ??= this.#written === null ? "" : JSON.stringify(this.#written.resource);
  }

  /**
   * Takes the next state of the resource. Returns the splices that turn its text into the text
   * before, as `pay_internal.text_at` reads them; null: there was none.
   */
  next(resource: object, sequence: number): string[] | null {
    const before = this.#written;
    const after = this.#written = write(resource as Members, before);
    this.#text = null;
    return before && splices(before, after, sequence);
  }
}

type Members = Readonly<Record<string, unknown>>;

// A create writes some forty members twice, so the loops make no lists of pairs.

/** Makes the texts of the members; those of unchanged members stay. */
function write(resource: Members, before: Written | null): Written {
  const names: string[] = [];
  const texts: string[] = [];
  for (const name of Object.keys(resource)) {
    const value = resource[name];
    if (value === undefined) continue;
    const i = names.length;
    const stays = before !== null && before.names[i] === name && before.resource[name] === value;
    names.push(name);
    texts.push(stays ? before.texts[i]! : value === null ? "null" : JSON.stringify(value));
  }
  return { resource, names, texts };
}

/**
 * Each splice is "at,length,text": the text that stood there, the last place first. At 0 it is the
 * whole text.
 */
function splices(before: Written, after: Written, sequence: number): string[] {
  const has_same_names = after.names.length === before.names.length &&
    after.names.every((name, i) => name === before.names[i]);
  if (sequence % WHOLE_EVERY === 0 || !has_same_names) return [whole(before)];
  const found: string[] = [];
  // PostgreSQL counts from 1.
  let at = 1;
  for (let i = 0; i < after.texts.length; i++) {
    const text = after.texts[i]!;
    if (SURROGATE.test(text)) return [whole(before)];
    // The comma or brace, the quotation marks and the colon.
    at += after.names[i]!.length + 4;
    if (text !== before.texts[i]) found.push(`${at},${text.length},${before.texts[i]}`);
    at += text.length;
  }
  return found.reverse();
}

function whole({ resource }: Written): string {
  return `0,0,${JSON.stringify(resource)}`;
}
