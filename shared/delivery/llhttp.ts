/**
 * llhttp, the HTTP/1.1 parser of Node.js, for responses.
 *
 * undici publishes llhttp as WebAssembly, because Node.js parses the responses of `fetch` with it.
 * This module connects its C interface with TypeScript. All leniency flags stay off. The parser is
 * loaded with the first response, so a cold start does not pay for it. Source: ADR 0016.
 */

import { Buffer } from "node:buffer";
import { once } from "../core/once.ts";

export interface ResponseHead {
  status: number;
  /** Major HTTP version. */
  major: number;
  /** True if the connection may carry another request after this response. */
  keeps_alive: boolean;
  /** The values of the header `ResponseHandlers.header`, as sent, decoded as Latin-1. */
  values: string[];
}

/** The callbacks of a parser. They must not throw. */
interface ResponseHandlers {
  /** Name of the one header to read, in lower case. */
  header: string;
  /** Called after the head of a response. */
  onHead(head: ResponseHead): void;
  /** Called at the end of a response. Returns true to stop before the bytes that follow. */
  onEnd(): boolean;
}

/**
 * The result of `execute`: it `read` all bytes, `onEnd` `stopped` it, or the bytes are `malformed`.
 */
interface Executed {
  outcome: "read" | "stopped" | "malformed";
  /** Number of bytes that were read. */
  length: number;
}

/** The functions of the WebAssembly module. Pointers are byte offsets into its memory. */
interface Exports {
  memory: WebAssembly.Memory;
  malloc(size: number): number;
  llhttp_alloc(type: number): number;
  llhttp_free(parser: number): void;
  llhttp_execute(parser: number, bytes: number, length: number): number;
  llhttp_get_error_pos(parser: number): number;
  llhttp_get_http_major(parser: number): number;
}

/** Constants of llhttp.h. */
const TYPE_RESPONSE = 2;
const OK = 0;
const PAUSED = 21;
/** Size of the input buffer; `execute` parses longer input in parts. */
const INPUT_BYTES = 16 * 1024;

/** The WebAssembly instance of all parsers of an isolate. `input` points to the input buffer. */
interface Instance {
  exports: Exports;
  input: number;
}

let memory: WebAssembly.Memory | undefined;
/** The parser that runs now. Calls are synchronous, so there is at most one. */
let current: ResponseParser;

/** Parses the bytes of one connection. Call `free` at the end: the parser owns module memory. */
export class ResponseParser {
  readonly #module: Instance;
  readonly #handlers: ResponseHandlers;
  #parser: number;
  /** Matched characters of the current header's name; -1 for another header. */
  #matched = 0;
  #is_in_value = false;
  #value = "";
  #values: string[] = [];

  private constructor(module: Instance, handlers: ResponseHandlers) {
    this.#module = module;
    this.#handlers = handlers;
    this.#parser = module.exports.llhttp_alloc(TYPE_RESPONSE);
  }

  /** Creates a parser for a new connection. */
  static async open(handlers: ResponseHandlers): Promise<ResponseParser> {
    return new ResponseParser(await instance(), handlers);
  }

  /** Memory of the module in bytes. It never shrinks. */
  static get memory_bytes(): number {
    return memory?.buffer.byteLength ?? 0;
  }

  /** Parses bytes. Do not call it after `stopped`, `malformed` or `free`. */
  execute(bytes: Uint8Array): Executed {
    const { exports, input } = this.#module;
    current = this;
    for (let from = 0; from < bytes.length; from += INPUT_BYTES) {
      const part = bytes.subarray(from, from + INPUT_BYTES);
      new Uint8Array(exports.memory.buffer, input, part.length).set(part);
      const code = exports.llhttp_execute(this.#parser, input, part.length);
      if (code === OK) continue;
      const length = from + exports.llhttp_get_error_pos(this.#parser) - input;
      return { outcome: code === PAUSED ? "stopped" : "malformed", length };
    }
    return { outcome: "read", length: bytes.length };
  }

  /** Frees the parser's memory. You may call it more than once. */
  free(): void {
    if (this.#parser !== 0) this.#module.exports.llhttp_free(this.#parser);
    this.#parser = 0;
  }

  /** The functions that the module calls. A name or value may come in several parts. */
  static readonly callbacks = {
    wasm_on_message_begin: () => OK,
    wasm_on_url: () => OK,
    wasm_on_status: () => OK,
    wasm_on_header_field: (_parser: number, at: number, length: number) =>
      current.#readName(at, length),
    wasm_on_header_value: (_parser: number, at: number, length: number) =>
      current.#readValue(at, length),
    wasm_on_headers_complete: (parser: number, status: number, _upgrade: number, keeps: number) =>
      current.#endHead(parser, status, keeps === 1),
    wasm_on_body: () => OK,
    wasm_on_message_complete: () => current.#handlers.onEnd() ? PAUSED : OK,
  };

  #readName(at: number, length: number): number {
    if (this.#is_in_value) this.#endHeader();
    const { header } = this.#handlers;
    const name = new Uint8Array(this.#module.exports.memory.buffer, at, length);
    for (let i = 0; i < length && this.#matched >= 0; i++) {
      // Sets the lower-case bit, which maps no other character to one of a header's name.
      this.#matched = (name[i]! | 0x20) === header.charCodeAt(this.#matched)
        ? this.#matched + 1
        : -1;
    }
    return OK;
  }

  #readValue(at: number, length: number): number {
    this.#is_in_value = true;
    if (this.#matched === this.#handlers.header.length) {
      const { buffer } = this.#module.exports.memory;
      this.#value += Buffer.from(buffer, at, length).toString("latin1");
    }
    return OK;
  }

  #endHeader(): void {
    if (this.#matched === this.#handlers.header.length) this.#values.push(this.#value);
    this.#matched = 0;
    this.#is_in_value = false;
    this.#value = "";
  }

  #endHead(parser: number, status: number, keeps_alive: boolean): number {
    this.#endHeader();
    const values = this.#values;
    this.#values = [];
    const major = this.#module.exports.llhttp_get_http_major(parser);
    this.#handlers.onHead({ status, major, keeps_alive, values });
    return OK;
  }
}

const instance = once(async (): Promise<Instance> => {
  const { default: wasm } = await import("undici/lib/llhttp/llhttp-wasm.js");
  const env = ResponseParser.callbacks;
  const loaded = await WebAssembly.instantiate(wasm as BufferSource, { env });
  const exports = loaded.instance.exports as unknown as Exports;
  memory = exports.memory;
  return { exports, input: exports.malloc(INPUT_BYTES) };
});
