/**
 * The JSON text of a payment or transfer, made member by member: a change makes the text of the
 * changed members only, and the splices that undo it (ADR 0043). Pure.
 */

/** An event with this sequence, or a multiple of it, has the whole text before it. */
const WHOLE_EVERY = 32;
/** Characters that are two units in JavaScript and one in PostgreSQL. */
const SURROGATE = /[\ud800-\udfff]/;

/** A resource and the text of each of its members. */
interface Written {
  names: string[];
  values: unknown[];
  /** JSON text. */
  texts: string[];
}

/** The text of a resource, and the one before it. */
export class ResourceText {
  #written: Written | null;

  /** @param resource as it is stored; null: a new one */
  constructor(resource: object | null) {
    this.#written = resource && write(resource, null);
  }

  /**
   * Takes the next state of the resource. Returns its text, and the splices that turn it into the
   * text before, as `pay_internal.text_at` reads them; null: there was none.
   */
  next(resource: object, sequence: number): { text: string; before: string[] | null } {
    const before = this.#written;
    const after = this.#written = write(resource, before);
    const text = textOf(after);
    return { text, before: before && splices(before, after, text, sequence) };
  }
}

/** Makes the texts of the members; those of unchanged members stay. */
function write(resource: object, before: Written | null): Written {
  const written: Written = { names: [], values: [], texts: [] };
  for (const [name, value] of Object.entries(resource)) {
    if (value === undefined) continue;
    const i = written.names.length;
    const stays = before?.names[i] === name && before.values[i] === value;
    written.names.push(name);
    written.values.push(value);
    written.texts.push(stays ? before.texts[i]! : JSON.stringify(value));
  }
  return written;
}

function textOf({ names, texts }: Written): string {
  return `{${names.map((name, i) => `"${name}":${texts[i]}`).join(",")}}`;
}

/**
 * Each splice is "at,length,text": the text that stood there, the last place first. At 0 it is the
 * whole text.
 */
function splices(before: Written, after: Written, text: string, sequence: number): string[] {
  const has_same_names = after.names.length === before.names.length &&
    after.names.every((name, i) => name === before.names[i]);
  if (sequence % WHOLE_EVERY === 0 || !has_same_names || SURROGATE.test(text)) {
    return [`0,0,${textOf(before)}`];
  }
  const found: string[] = [];
  // PostgreSQL counts from 1.
  let at = 1;
  for (const [i, value] of after.texts.entries()) {
    at += `,"${after.names[i]}":`.length;
    if (value !== before.texts[i]) found.unshift(`${at},${value.length},${before.texts[i]}`);
    at += value.length;
  }
  return found;
}
