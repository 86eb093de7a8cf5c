/**
 * Reads the body of a request: limits its size while it streams, lets the caller be admitted before
 * a large one, checks the media type, and parses strict JSON, which must be an object (security §2,
 * bad JSON).
 */

import { Buffer } from "node:buffer";
import type * as z from "zod";
import type { JsonObject } from "../core/canonical_json.ts";
import { ApiError, invalidParameter } from "../core/errors.ts";
import { containsCardNumber } from "../core/card_number.ts";
import { containsSecret } from "../core/masked_secrets.ts";
import { SMALL_BODY_BYTES } from "../schema/limits.ts";
import { parseStrictJson, type StrictJson, StrictJsonError, type Suspect } from "./strict_json.ts";
import { joined } from "./unknown_names.ts";

export interface ReadBody extends StrictJson {
  value: JsonObject;
}

/** Deadline for the arrival of a body. 64 KiB take about a second on a slow line. */
const BODY_DEADLINE_MS = 10_000;
/** Turns of the microtask queue in which the runtime returns a body that has arrived. */
const TURNS = 16;

/**
 * Parses the bytes of a body. Without bytes it is `{}`. Throws `unsupported_media_type` and
 * `invalid_json`.
 * @param schema knows the names of the body
 */
export function parseBytes(bytes: Uint8Array, headers: Headers, schema: z.ZodType): ReadBody {
  if (bytes.length === 0) return { value: {}, literals: new Map(), unknown: null, suspects: [] };
  checkMediaType(headers);
  try {
    const { value, ...noted } = parseStrictJson(bytes, schema);
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw new ApiError("invalid_json", `The body must be a JSON object such as {"amount": 1999}`);
    }
    return { value, ...noted };
  } catch (error) {
    if (!(error instanceof StrictJsonError)) throw error;
    const is_named = error.param !== "" && !containsSecret(error.param);
    throw new ApiError(
      "invalid_json",
      is_named
        ? `The body cannot be read as JSON at "${error.param}": ${error.reason}`
        : `The body cannot be read as JSON: ${error.reason}`,
      is_named ? { param: error.param } : {},
    );
  }
}

interface Reading {
  deadline_ms?: number;
  /** Called before more than `SMALL_BODY_BYTES` are read. Throws if the caller may not send it. */
  admit?: () => Promise<void>;
}

/**
 * Reads the bytes of a body. Throws `payload_too_large`, `invalid_json` if the body does not arrive
 * whole in time, and the errors of `admit`.
 */
export async function readRaw(
  request: Request,
  max_bytes: number,
  { deadline_ms = BODY_DEADLINE_MS, admit }: Reading = {},
): Promise<Uint8Array> {
  const length = Number(request.headers.get("Content-Length") || NaN);
  /** Opens the body, or else the runtime would close the connection after the response. */
  const refuse = (error: unknown): never => {
    request.body?.cancel().catch(() => {});
    throw error;
  };
  if (length > max_bytes) refuse(tooLarge(max_bytes));
  let is_admitted = admit === undefined;
  const admitLarge = async (bytes: number) => {
    if (is_admitted || bytes <= SMALL_BODY_BYTES) return;
    is_admitted = true;
    await admit!();
  };
  if (length >= 0) {
    await admitLarge(length).catch(refuse);
    const bytes = new Uint8Array(await inTime(request.arrayBuffer(), deadline_ms, deadline_ms));
    // Checked again, although servers enforce the announced length.
    if (bytes.length > max_bytes) throw tooLarge(max_bytes);
    return bytes;
  }
  // With an announced length nothing reads it: the runtime would make a stream for it.
  const { body } = request;
  if (!body) return new Uint8Array(0);
  const until = performance.now() + deadline_ms;
  const reader = body.getReader();
  const chunks: Uint8Array[] = [];
  for (let total = 0;;) {
    const { value } = await inTime(reader.read(), until - performance.now(), deadline_ms);
    if (value === undefined) return Buffer.concat(chunks);
    chunks.push(value);
    total += value.length;
    if (total > max_bytes) {
      reader.cancel().catch(() => {});
      throw tooLarge(max_bytes);
    }
    await admitLarge(total);
  }
}

/** Waits for bytes up to a deadline. The read continues until the server closes the connection. */
async function inTime<T>(reading: Promise<T>, left_ms: number, deadline_ms: number): Promise<T> {
  let has_ended = false;
  const end = () => has_ended = true;
  reading.then(end, end);
  // Most bodies have arrived with their head, and a timer takes longer than these turns.
  for (let turns = 0; !has_ended && turns < TURNS; turns++) await null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    if (has_ended) return await reading;
    const late = Promise.withResolvers<never>();
    timer = setTimeout(() => {
      late.reject(
        new ApiError(
          "invalid_json",
          `The body took longer than ${deadline_ms / 1000} seconds to arrive: send it again`,
        ),
      );
    }, left_ms);
    return await Promise.race([reading, late.promise]);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw new ApiError("invalid_json", "The body ended early: send it again");
  } finally {
    clearTimeout(timer);
  }
}

function tooLarge(max_bytes: number): ApiError {
  return new ApiError(
    "payload_too_large",
    `The body is larger than ${max_bytes} bytes, which is the limit: send a smaller body`,
  );
}

function checkMediaType(headers: Headers): void {
  const type = headers.get("Content-Type") ?? "";
  if (!/^application\/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?$/i.test(type)) {
    throw new ApiError(
      "unsupported_media_type",
      'The body must be JSON: send it with the header "Content-Type: application/json"',
    );
  }
  const encoding = headers.get("Content-Encoding") ?? "identity";
  if (encoding.toLowerCase() !== "identity") {
    throw new ApiError(
      "unsupported_media_type",
      'The body must not be compressed: send it without the header "Content-Encoding"',
    );
  }
}

/** An IBAN begins with the letters of its country. */
const IBAN = /^\s*[a-z]{2}/i;
/** An address is one word that is not all digits. */
const WALLET = /^\d*[a-z]\S*$/i;

/**
 * Fields whose valid values can look like a card number, with the form of these values. Their own
 * rules check them.
 */
const PLACES: ReadonlyMap<string, RegExp> = new Map([
  ["card.number", /^/],
  ["iban", IBAN],
  ["iban.iban", IBAN],
  ["wallet", WALLET],
  ["wallet.address", WALLET],
  ["destination.iban", IBAN],
  ["destination.iban.iban", IBAN],
  ["destination.address", WALLET],
  ["destination.address.wallet", WALLET],
  ["destination.wallet", WALLET],
  ["destination.wallet.address", WALLET],
]);

/**
 * Refuses card numbers in all fields of a valid body except `PLACES`, before the body is hashed
 * (ADR 0014). Throws `invalid_parameter`.
 */
export function refuseCardNumbers(suspects: readonly Suspect[]): void {
  for (const { path, text } of suspects) {
    if (PLACES.get(path)?.test(text) !== true && containsCardNumber(text)) throw cardNumberIn(path);
  }
}

function cardNumberIn(path: string): ApiError {
  // Only the names in `metadata` are the merchant's own.
  const [outer = "", ...inner] = path.split(".");
  const param = inner.length === 0 ? outer : joined(outer, inner.join("."));
  const message = 'This looks like a card number, which only "card.number" may contain: remove it';
  return invalidParameter(param, message);
}
