/**
 * The reader of request bodies. It refuses JSON that `JSON.parse` accepts: duplicate names, numbers
 * beyond 2^53 - 1, text that Postgres cannot store (U+0000, lone surrogates), the name `__proto__`,
 * deep nesting, and more values than any request has. It notes the first unknown name, and the
 * texts in which a card number can be.
 *
 * It takes one pass over the text and linear time, and the depth limit bounds its recursion.
 * `request_body.ts` checks size, media type and absent bodies; the schemas check fields.
 * Source: RFC 8259, RFC 7493 (I-JSON), security §2, bad JSON.
 */

import type * as z from "zod";
import type { JsonObject, JsonValue } from "../core/canonical_json.ts";
import { mayHoldNumber, MIN_CARD_DIGITS } from "../core/card_number.ts";
import { memberOf, takesMembersOf } from "../schema/requirement.ts";
import { joined } from "./unknown_names.ts";

/** Deepest nesting of objects and lists. Requests need three levels (security §2, bad JSON). */
export const MAX_JSON_DEPTH = 16;

/**
 * Most values: members of objects and items of lists. A request needs a hundred, and the work after
 * the parser grows with their number (security §2, bad JSON).
 */
export const MAX_JSON_VALUES = 500;

/** Characters of one name. Those of metadata have 40. */
const MAX_NAME_LENGTH = 256;

/** Characters of one number. No double needs more than 24 to be written exactly. */
const MAX_NUMBER_LENGTH = 40;

/** Greatest magnitude of a number: above 2^53 - 1 different texts can give the same value. */
export const MAX_NUMBER = Number.MAX_SAFE_INTEGER;

/** Characters of one name in a path, so that a long name does not make an error or a map grow. */
const MAX_KEY_SHOWN = 64;

interface UnknownName {
  schema: z.ZodType;
  name: string;
  /** Path of the object, as an error shows it. */
  path: string;
}

/** A text, number or name in which a card number can be, and its path. */
export interface Suspect {
  path: string;
  text: string;
}

/** A parsed body, and what the reader has noted on the way. */
export interface StrictJson {
  value: JsonValue;
  /**
   * The text of each number that is not written as a plain integer (`1.0`, `1e3`, `-0`), by its
   * path. The check of amounts needs the text. A path looks like `destination.parts[2]`.
   */
  literals: ReadonlyMap<string, string>;
  /** The first name that the schema does not have; null: it has all. */
  unknown: UnknownName | null;
  suspects: readonly Suspect[];
}

/** A refused body: the reason and the path. It repeats no input except shortened names. */
export class StrictJsonError extends Error {
  override readonly name = "StrictJsonError";

  /**
   * @param param path of the fault, such as `metadata.a[2]`; empty at the root
   * @param reason the fault, as the end of a sentence
   */
  constructor(readonly param: string, readonly reason: string) {
    super(param === "" ? `invalid JSON: ${reason}` : `invalid JSON at ${param}: ${reason}`);
  }
}

/**
 * Parses one JSON text in UTF-8.
 *
 * @param bytes the whole body
 * @param schema knows the names of the body; null: every name is known
 * @throws {StrictJsonError} for every input that is not accepted; it throws no other error
 */
export function parseStrictJson(bytes: Uint8Array, schema: z.ZodType | null = null): StrictJson {
  let text: string;
  try {
    text = UTF_8.decode(bytes);
  } catch {
    throw new StrictJsonError("", "it is not UTF-8 text");
  }
  if (text.length === 0) throw new StrictJsonError("", "it is empty");
  if (text.charCodeAt(0) === BYTE_ORDER_MARK) {
    throw new StrictJsonError(
      "",
      "it begins with a byte order mark (BOM): save it as UTF-8 without one",
    );
  }
  return new Parser(text).parse(schema);
}

const UTF_8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const BYTE_ORDER_MARK = 0xfeff;
const FOUR_HEX_DIGITS = /^[0-9a-fA-F]{4}$/;
const SIMPLE_ESCAPES: ReadonlyMap<string, string> = new Map([
  ['"', '"'],
  ["\\", "\\"],
  ["/", "/"],
  ["b", "\b"],
  ["f", "\f"],
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"],
]);

const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const LIST = 0x5b;
const BACKSLASH = 0x5c;
const LIST_END = 0x5d;
const OBJECT = 0x7b;
const OBJECT_END = 0x7d;
/** The first letters of `false`, `null` and `true`. */
const F = 0x66;
const N = 0x6e;
const T = 0x74;

const ENDS_EARLY = "it ends too early: a quote or bracket is missing";

/** Parses one text, once. `charCodeAt` beyond the end is NaN, which makes comparisons false. */
class Parser {
  #position = 0;
  #values = 0;
  /** True: the last text can contain a card number. */
  #is_suspect = false;
  #unknown: UnknownName | null = null;
  /** The names and indexes that lead to the current value. */
  readonly #place: (string | number)[] = [];
  readonly #literals = new Map<string, string>();
  readonly #suspects: Suspect[] = [];

  constructor(readonly text: string) {}

  parse(schema: z.ZodType | null): StrictJson {
    const value = this.#value(schema);
    if (!Number.isNaN(this.#next())) this.#fail("remove the text after the end of the JSON");
    return { value, literals: this.#literals, unknown: this.#unknown, suspects: this.#suspects };
  }

  /** @param schema of the value; null: every name is known */
  #value(schema: z.ZodType | null): JsonValue {
    if (++this.#values > MAX_JSON_VALUES) this.#fail(`it has more than ${MAX_JSON_VALUES} values`);
    switch (this.#next()) {
      case QUOTE: {
        const text = this.#string();
        if (this.#is_suspect) this.#suspects.push({ path: this.#param(), text });
        return text;
      }
      case OBJECT:
        return this.#object(schema);
      case LIST:
        return this.#list(schema);
      case T:
        return this.#word("true", true);
      case F:
        return this.#word("false", false);
      case N:
        return this.#word("null", null);
      default:
        return this.#number();
    }
  }

  #object(schema: z.ZodType | null): JsonObject {
    this.#enter();
    const object: JsonObject = {};
    if (this.#accept(OBJECT_END)) return object;
    // The schema refuses a value of another kind.
    const known = schema && takesMembersOf(schema, object) ? schema : null;
    do {
      if (this.#next() !== QUOTE) this.#failUnexpected();
      const name = this.#string();
      if (this.#is_suspect) this.#suspects.push({ path: this.#param(), text: name });
      const member = known && memberOf(known, name);
      if (member === undefined) {
        this.#unknown ??= { schema: known!, name, path: this.#place.reduce(joined, "") };
      }
      this.#place.push(name);
      if (name.length > MAX_NAME_LENGTH) {
        this.#fail(`this name has more than ${MAX_NAME_LENGTH} characters`);
      }
      // An assignment to this name would change the prototype and store nothing.
      if (name === "__proto__") this.#fail('the name "__proto__" is not accepted');
      if (Object.hasOwn(object, name)) this.#fail("this name occurs twice: send it once");
      if (!this.#accept(COLON)) this.#failUnexpected();
      object[name] = this.#value(member ?? null);
      this.#place.pop();
    } while (this.#accept(COMMA));
    if (!this.#accept(OBJECT_END)) this.#failUnexpected();
    return object;
  }

  #list(schema: z.ZodType | null): JsonValue[] {
    this.#enter();
    const list: JsonValue[] = [];
    if (this.#accept(LIST_END)) return list;
    const item = schema && takesMembersOf(schema, list) ? memberOf(schema, 0)! : null;
    do {
      this.#place.push(list.length);
      list.push(this.#value(item));
      this.#place.pop();
    } while (this.#accept(COMMA));
    if (!this.#accept(LIST_END)) this.#failUnexpected();
    return list;
  }

  /** Consumes an opening bracket. `#place` has one entry for each open object or list. */
  #enter(): void {
    if (this.#place.length >= MAX_JSON_DEPTH) {
      this.#fail(`it is nested deeper than ${MAX_JSON_DEPTH} levels`);
    }
    this.#position++;
  }

  /** Consumes a text in quotes, and notes whether it can contain a card number. */
  #string(): string {
    const { text } = this;
    const start = this.#position + 1;
    let digits = 0;
    for (let at = start;; at++) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) {
        this.#position = at + 1;
        this.#is_suspect = digits >= MIN_CARD_DIGITS;
        return text.slice(start, at);
      }
      // The slow path handles backslashes, control characters and the end of the text.
      if (!(code >= 0x20) || code === BACKSLASH) return this.#stringWithEscapes(start, at);
      if (code <= NINE ? code >= ZERO : code >= 0x80) digits += code < 0x80 ? 1 : MIN_CARD_DIGITS;
    }
  }

  #stringWithEscapes(start: number, firstOddity: number): string {
    let result = "";
    let from = start;
    for (let at = firstOddity;; at++) {
      const code = this.text.charCodeAt(at);
      if (code === QUOTE) {
        result += this.text.slice(from, at);
        this.#position = at + 1;
        break;
      }
      if (code === BACKSLASH) {
        result += this.text.slice(from, at) + this.#escape(at);
        at += this.text[at + 1] === "u" ? 5 : 1;
        from = at + 1;
      } else if (code === 0) {
        this.#fail("text cannot contain the character U+0000");
      } else if (code < 0x20) {
        this.#fail("write a line break in text as \\n, and a tab as \\t");
      } else if (Number.isNaN(code)) {
        this.#fail(ENDS_EARLY);
      }
    }
    // Only an escape can produce half of a pair, because the UTF-8 decoder refuses it.
    if (!result.isWellFormed()) {
      this.#fail("text contains half of a surrogate pair, such as \\ud800 alone");
    }
    this.#is_suspect = mayHoldNumber(result);
    return result;
  }

  /** Decodes the escape at `at` to its character. */
  #escape(at: number): string {
    const letter = this.text.charAt(at + 1);
    if (letter === "u") {
      const hex = this.text.slice(at + 2, at + 6);
      if (!FOUR_HEX_DIGITS.test(hex)) this.#fail("\\u in text must be followed by four hex digits");
      if (hex === "0000") this.#fail("text cannot contain the character U+0000");
      return String.fromCharCode(parseInt(hex, 16));
    }
    return SIMPLE_ESCAPES.get(letter) ?? this.#fail("text contains a backslash: write it as \\\\");
  }

  #number(): number {
    const { text } = this;
    const start = this.#position;
    if (text.charCodeAt(start) === MINUS) this.#position++;
    if (text.charCodeAt(this.#position) === ZERO) this.#position++;
    else this.#digits();
    const integer_end = this.#position;
    if (text.charCodeAt(this.#position) === POINT) {
      this.#position++;
      this.#digits();
    }
    const exponent = text[this.#position];
    if (exponent === "e" || exponent === "E") {
      const sign = text[++this.#position];
      if (sign === "+" || sign === "-") this.#position++;
      this.#digits();
    }
    const length = this.#position - start;
    if (length > MAX_NUMBER_LENGTH) {
      this.#fail(`this number has more than ${MAX_NUMBER_LENGTH} characters`);
    }
    const literal = text.slice(start, this.#position);
    const value = Number(literal);
    if (!(Math.abs(value) <= MAX_NUMBER)) this.#fail(`this number is beyond ±${MAX_NUMBER}`);
    const is_plain = this.#position === integer_end && !Object.is(value, -0);
    if (!is_plain) this.#literals.set(this.#param(), literal);
    if (!is_plain || length >= MIN_CARD_DIGITS) {
      this.#suspects.push({ path: this.#param(), text: String(value) });
    }
    return value;
  }

  /** Consumes one or more digits. */
  #digits(): void {
    const start = this.#position;
    let code = this.text.charCodeAt(start);
    while (code >= ZERO && code <= NINE) code = this.text.charCodeAt(++this.#position);
    if (this.#position === start) this.#failUnexpected();
  }

  #word<Value extends boolean | null>(word: string, value: Value): Value {
    if (!this.text.startsWith(word, this.#position)) this.#failUnexpected();
    this.#position += word.length;
    return value;
  }

  /** Consumes white space and then the character, if it follows. Returns true if it did. */
  #accept(code: number): boolean {
    if (this.#next() !== code) return false;
    this.#position++;
    return true;
  }

  /** Consumes white space. Returns the code of the next character; NaN: there is none. */
  #next(): number {
    let code = this.text.charCodeAt(this.#position);
    while (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) {
      code = this.text.charCodeAt(++this.#position);
    }
    return code;
  }

  #param(): string {
    let path = "";
    for (const step of this.#place) {
      if (typeof step === "number") path += `[${step}]`;
      else path += (path === "" ? "" : ".") + shorten(step);
    }
    return path;
  }

  /** Throws a message for the common mistakes, and otherwise one with the character's position. */
  #failUnexpected(): never {
    const character = this.text[this.#position];
    const before = this.text.slice(0, this.#position);
    const is_start = before.trim() === "";
    if (character === undefined) this.#fail(is_start ? "it is empty" : ENDS_EARLY);
    if ((character === "}" || character === "]") && before.trimEnd().endsWith(",")) {
      this.#fail(`remove the comma before "${character}"`);
    }
    if (character === "'") this.#fail("write text in double quotes, not in single quotes");
    if (is_start) this.#fail('it must begin with "{"');
    const lines = before.split("\n");
    this.#fail(
      `the character in line ${lines.length}, column ${
        lines.at(-1)!.length + 1
      } is not allowed there`,
    );
  }

  #fail(reason: string): never {
    throw new StrictJsonError(this.#param(), reason);
  }
}

function shorten(key: string): string {
  // The cut can split a surrogate pair, and half a pair cannot be encoded as UTF-8.
  return key.length <= MAX_KEY_SHOWN ? key : key.slice(0, MAX_KEY_SHOWN).toWellFormed();
}
