/**
 * Reads the XML of a bank as a stream, with bounds that hold at any size of the file. Elements are
 * known by their local names, because some banks leave out the namespace or use one of their own.
 *
 * Refused: another encoding than the declared one, a DOCTYPE (and so every entity of the file's
 * own), an element deeper than 40 levels, a text over 10 kB, more than 10 000 elements that have to
 * be read together, XML that is not well-formed, and a file over the limit of the caller. Reading
 * gives way to other work of the process. Sources: XML 1.0, saxes.
 */

import { Buffer } from "node:buffer";
import { SaxesParser } from "saxes";
import { giveWay, isSliceOver } from "../../core/time_slice.ts";
import { BankFileError, type FilePlace } from "./bank_file_error.ts";

/** Levels of elements. The messages of ISO 20022 have fewer than 20. */
const DEPTH_MAX = 40;
/** Elements inside of one that is read whole: a transaction has about 100. */
const ELEMENTS_MAX = 10_000;
/** Length of one text, tag or comment. The longest text of ISO 20022 has 2 000 characters. */
const TEXT_LENGTH_MAX = 10_000;
/**
 * Bytes that are decoded and parsed at a time: some milliseconds at most. Larger pieces need more
 * memory and no less time.
 */
const PIECE_BYTES = 4 * 1024;
const HEAD_BYTES = 1024;

/** Beginnings of files that tell the encoding before the declaration does. */
const MARKS: readonly (readonly [bytes: readonly number[], label: string])[] = [
  [[0xef, 0xbb, 0xbf], "utf-8"],
  [[0xfe, 0xff], "utf-16be"],
  [[0xff, 0xfe], "utf-16le"],
  [[0x00, 0x3c, 0x00, 0x3f], "utf-16be"],
  [[0x3c, 0x00, 0x3f, 0x00], "utf-16le"],
];
const DECLARED_ENCODING = /^\s*<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._-]+)["']/;
/** A declaration that does not stand at the start, as XML demands. */
const LATE_DECLARATION = /^\s+<\?xml[^>]*>/;
/** Beginnings of files that are packed: ZIP and gzip. */
const PACKED: readonly (readonly number[])[] = [[0x50, 0x4b], [0x1f, 0x8b]];
/** Characters with which programs of banks fill up the end of a file. */
const PADDING = " \t\r\n\0\x1a";

/** An element with everything inside. */
export interface XmlElement extends FilePlace {
  element: string;
  /** Without white space at both ends. */
  text: string;
  /** The attribute `Ccy`, in upper case. */
  currency: string | null;
  children: XmlElement[];
}

/** What the reader yields: the start and the end of a container, and each other element whole. */
type XmlPart =
  | { part: "start"; place: XmlElement; namespace: string | null }
  | { part: "whole"; element: XmlElement }
  | { part: "end"; place: XmlElement };

export interface XmlReading {
  /** The file in pieces of any size. */
  bytes: AsyncIterable<Uint8Array>;
  /** Larger files are refused. */
  bytes_max: number;
  /**
   * Reports whether an element directly inside of these containers is one too. Its elements are
   * yielded one by one, so that the memory does not grow with their number.
   */
  isContainer(name: string, containers: readonly XmlElement[]): boolean;
}

/**
 * Reads a file. Each piece of the file gives one list of parts. Throws `BankFileError` with the
 * first place that is wrong.
 */
export async function* readXml(
  { bytes, bytes_max, isContainer }: XmlReading,
): AsyncGenerator<XmlPart[]> {
  const parser = new PartParser(isContainer);
  let decoder: TextDecoder | null = null;
  let head: Uint8Array = new Uint8Array();
  let padding = "";
  let size = 0;
  const parse = (piece: Uint8Array) => {
    const text = padding + decode(decoder!, piece, parser);
    const end = endOf(text);
    padding = text.slice(end);
    return parser.parse(text.slice(0, end));
  };
  for await (const chunk of bytes) {
    size += chunk.length;
    if (size > bytes_max) throw parser.refusal(`the file has more than ${bytes_max} bytes`);
    let ready = chunk;
    if (decoder === null) {
      head = ready = Buffer.concat([head, chunk]);
      if (head.length < HEAD_BYTES) continue;
      decoder = decoderOf(head, parser);
    }
    for (let at = 0; at < ready.length; at += PIECE_BYTES) {
      if (isSliceOver()) await giveWay();
      yield parse(ready.subarray(at, at + PIECE_BYTES));
    }
  }
  if (decoder === null) {
    decoder = decoderOf(head, parser);
    yield parse(head);
  }
  yield parser.parse(decode(decoder, null, parser));
  yield parser.close();
}

/** Returns the element at a path inside of another, the first one of each name. */
export function childOf(element: XmlElement, ...path: string[]): XmlElement | null {
  let at: XmlElement | undefined = element;
  for (const name of path) {
    at = at.children.find((child) => child.element === name);
    if (at === undefined) return null;
  }
  return at;
}

/** Returns the elements of a name directly inside of another. */
export function childrenOf(element: XmlElement, name: string): XmlElement[] {
  return element.children.filter((child) => child.element === name);
}

/** Returns the text at a path, or null if it is missing or empty. */
export function textOf(element: XmlElement, ...path: string[]): string | null {
  return childOf(element, ...path)?.text || null;
}

/** Makes parts out of the events of saxes, and holds the bounds. */
class PartParser {
  #saxes = new SaxesParser();
  #isContainer: XmlReading["isContainer"];
  /** The open containers, outermost first. */
  #containers: XmlElement[] = [];
  /** The open elements inside of the innermost container. */
  #open: XmlElement[] = [];
  #open_elements = 0;
  #has_begun = false;
  #parts: XmlPart[] = [];
  /** Characters since the last event: the length of a token that has not ended. */
  #silence = 0;

  constructor(isContainer: XmlReading["isContainer"]) {
    this.#isContainer = isContainer;
    this.#saxes.on("doctype", () => {
      throw this.refusal("the file has a DOCTYPE, which no bank needs");
    });
    this.#saxes.on("opentag", ({ name, attributes }) => this.#start(name, attributes));
    this.#saxes.on("text", (text) => this.#text(text));
    this.#saxes.on("cdata", (text) => this.#text(text));
    this.#saxes.on("comment", () => this.#silence = 0);
    this.#saxes.on("closetag", () => this.#end());
  }

  parse(part: string): XmlPart[] {
    // White space in place of the declaration keeps the places of errors.
    const text = this.#has_begun
      ? part
      : part.replace(LATE_DECLARATION, (found) => found.replace(/\S/g, " "));
    this.#has_begun ||= text !== "";
    this.#silence += text.length;
    this.#run(() => this.#saxes.write(text));
    if (this.#silence > TEXT_LENGTH_MAX) throw this.#tooLong();
    return this.#parts.splice(0);
  }

  close(): XmlPart[] {
    this.#run(() => this.#saxes.close());
    return this.#parts.splice(0);
  }

  /** An error at the place that the parser has reached. */
  refusal(reason: string): BankFileError {
    const { line, column } = this.#saxes;
    const element = this.#open.at(-1) ?? this.#containers.at(-1);
    return new BankFileError(reason, { line, column, element: element?.element ?? null });
  }

  #run(step: () => void): void {
    try {
      step();
    } catch (error) {
      if (error instanceof BankFileError || !(error instanceof Error)) throw error;
      throw this.refusal(`not well-formed XML: ${error.message.replace(/^\d+:\d+: /, "")}`);
    }
  }

  #start(name: string, attributes: Record<string, string>): void {
    this.#silence = 0;
    const element: XmlElement = {
      element: localName(name),
      line: this.#saxes.line,
      column: this.#saxes.column,
      text: "",
      currency: attributes["Ccy"]?.trim().toUpperCase() || null,
      children: [],
    };
    if (this.#containers.length + this.#open.length >= DEPTH_MAX) {
      throw this.refusal(`the file has more than ${DEPTH_MAX} levels of elements`);
    }
    const parent = this.#open.at(-1);
    if (parent === undefined && this.#isContainer(element.element, this.#containers)) {
      this.#containers.push(element);
      this.#parts.push({ part: "start", place: element, namespace: namespaceOf(attributes) });
      return;
    }
    if (++this.#open_elements > ELEMENTS_MAX) {
      throw this.refusal(`an element has more than ${ELEMENTS_MAX} elements`);
    }
    parent?.children.push(element);
    this.#open.push(element);
  }

  #text(text: string): void {
    this.#silence = 0;
    const element = this.#open.at(-1);
    if (element !== undefined) element.text += text;
    if ((element?.text ?? text).length > TEXT_LENGTH_MAX) throw this.#tooLong();
  }

  #end(): void {
    this.#silence = 0;
    const element = this.#open.pop();
    if (element === undefined) {
      this.#parts.push({ part: "end", place: this.#containers.pop()! });
      return;
    }
    element.text = element.text.trim();
    if (this.#open.length > 0) return;
    this.#open_elements = 0;
    this.#parts.push({ part: "whole", element });
  }

  #tooLong(): BankFileError {
    return this.refusal(`a text has more than ${TEXT_LENGTH_MAX} characters`);
  }
}

function localName(name: string): string {
  return name.slice(name.indexOf(":") + 1);
}

/** The namespace of ISO 20022 that an element declares, with whatever prefix. */
function namespaceOf(attributes: Record<string, string>): string | null {
  const [, namespace] =
    Object.entries(attributes).find(([name, value]) =>
      /^xmlns(:|$)/.test(name) && /(camt|pain)\.\d/.test(value)
    ) ?? [];
  return namespace ?? null;
}

function decoderOf(head: Uint8Array, parser: PartParser): TextDecoder {
  if (PACKED.some((bytes) => bytes.every((byte, at) => head[at] === byte))) {
    throw parser.refusal("the file is packed: unpack it first");
  }
  const [, mark] = MARKS.find(([bytes]) => bytes.every((byte, at) => head[at] === byte)) ?? [];
  const start = new TextDecoder("latin1").decode(head.subarray(0, HEAD_BYTES));
  const declared = DECLARED_ENCODING.exec(start)?.[1] ?? "utf-8";
  // The declaration was readable as single bytes.
  if (!mark && /^utf-?16|^ucs/i.test(declared)) {
    throw parser.refusal(`the file declares the encoding ${declared}, but has another one`);
  }
  try {
    return new TextDecoder(mark ?? declared, { fatal: true });
  } catch {
    throw parser.refusal(`the encoding ${declared} is not known`);
  }
}

/** Decodes a piece, or the end of the file if it is null. */
function decode(decoder: TextDecoder, piece: Uint8Array | null, parser: PartParser): string {
  try {
    return piece === null ? decoder.decode() : decoder.decode(piece, { stream: true });
  } catch {
    // The parser goes on to the wrong bytes, so that the error has their place. The first bytes can
    // be the end of a character that began in the piece before.
    const start = piece?.findIndex((byte) => (byte & 0xc0) !== 0x80) ?? 0;
    const text = new TextDecoder(decoder.encoding).decode(piece?.subarray(start));
    parser.parse(text.split("\ufffd", 1)[0]!);
    throw parser.refusal(`the file is not in the encoding ${decoder.encoding.toUpperCase()}`);
  }
}

/** Where the padding at the end of a text begins. Padding without an end is none. */
function endOf(text: string): number {
  let end = text.length;
  while (end > 0 && PADDING.includes(text[end - 1]!)) end--;
  return text.length - end > TEXT_LENGTH_MAX ? text.length : end;
}
