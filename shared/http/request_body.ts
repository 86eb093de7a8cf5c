/**
 * The body of a request: counted while it streams, of one media type, strict JSON, an object.
 */

import { ApiError, invalidParameter } from "../core/errors.ts";
import { containsCardNumber } from "../core/card_number.ts";
import { parseStrictJson, StrictJsonError } from "../core/strict_json.ts";
import { MAX_BODY_BYTES } from "../schema/limits.ts";

/** A JSON object as it was sent. */
export interface ReadBody {
  value: Record<string, unknown>;
  /** Path → text of numbers that are not written as plain integers. */
  literals: ReadonlyMap<string, string>;
}

/** Time in which a body must arrive; 64 KiB take a second on a slow line. */
const BODY_DEADLINE_MS = 10_000;

const NO_LITERALS: ReadonlyMap<string, string> = new Map();

/**
 * Reads a body; an absent one is `{}`. Throws 413, 415 or 400 `invalid_json`.
 * @param deadline_ms time in which it must arrive
 */
export async function readBody(
  request: Request,
  deadline_ms: number = BODY_DEADLINE_MS,
): Promise<ReadBody> {
  const bytes = await withinDeadline(readBytes(request), deadline_ms).catch((error) => {
    if (error instanceof ApiError) throw error;
    throw new ApiError("invalid_json", "The body ended early: send it again");
  });
  if (bytes.length === 0) return { value: {}, literals: NO_LITERALS };
  checkMediaType(request.headers);
  try {
    const { value, literals } = parseStrictJson(bytes);
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw new ApiError("invalid_json", `The body must be a JSON object such as {"amount": 1999}`);
    }
    refuseCardNumbers(value, "");
    return { value, literals };
  } catch (error) {
    if (!(error instanceof StrictJsonError)) throw error;
    const is_named = error.param !== "" && !containsCardNumber(error.param);
    throw new ApiError(
      "invalid_json",
      is_named
        ? `The body cannot be read as JSON at "${error.param}": ${error.reason}`
        : `The body cannot be read as JSON: ${error.reason}`,
      is_named ? { param: error.param } : {},
    );
  }
}

/** The deadline ends the wait, not the read: the server closes the connection. */
async function withinDeadline<T>(reading: Promise<T>, deadline_ms: number): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    late.reject(
      new ApiError(
        "invalid_json",
        `The body took longer than ${deadline_ms / 1000} seconds to arrive: send it again`,
      ),
    );
  }, deadline_ms);
  try {
    return await Promise.race([reading, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

async function readBytes(request: Request): Promise<Uint8Array> {
  const { body, headers } = request;
  if (!body) return new Uint8Array(0);
  const length = Number(headers.get("Content-Length") || NaN);
  if (length > MAX_BODY_BYTES) throw tooLarge();
  if (length >= 0) {
    const bytes = new Uint8Array(await request.arrayBuffer());
    // Servers hold a client to the length that it announced; we need not rely on it.
    if (bytes.length > MAX_BODY_BYTES) throw tooLarge();
    return bytes;
  }
  const chunks: Uint8Array[] = [];
  let total = 0;
  for await (const chunk of body) {
    total += chunk.length;
    if (total > MAX_BODY_BYTES) throw tooLarge();
    chunks.push(chunk);
  }
  const bytes = new Uint8Array(total);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
  }
  return bytes;
}

function tooLarge(): ApiError {
  return new ApiError(
    "payload_too_large",
    `The body is larger than ${MAX_BODY_BYTES} bytes, which is the limit`,
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

/** Where a number is expected that may look like a card's: judged by rules of their own. */
const PLACES: ReadonlySet<string> = new Set([
  "card.number",
  "iban",
  "iban.iban",
  "wallet",
  "wallet.address",
  "destination.iban",
  "destination.iban.iban",
  "destination.wallet",
  "destination.wallet.address",
]);

/**
 * Refuses a card number anywhere but in its place, known field or not: it is not even hashed.
 * Throws `invalid_parameter`.
 * @param where `in_places` checks only the texts that `elsewhere` skips
 */
export function refuseCardNumbers(
  value: unknown,
  path: string,
  where: "elsewhere" | "in_places" = "elsewhere",
): void {
  if (typeof value === "string" || typeof value === "number") {
    const is_place = typeof value === "string" && PLACES.has(path);
    const is_judged = is_place === (where === "in_places");
    if (is_judged && containsCardNumber(String(value))) throw cardNumberIn(path);
    return;
  }
  if (typeof value !== "object" || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    if (where === "elsewhere" && containsCardNumber(name)) throw cardNumberIn(path);
    refuseCardNumbers(
      member,
      Array.isArray(value) ? `${path}[${name}]` : path === "" ? name : `${path}.${name}`,
      where,
    );
  }
}

function cardNumberIn(path: string): ApiError {
  const message = 'This looks like a card number, which only the field "card.number" may have';
  // The joined names may form a card number as well.
  return path === "" || containsCardNumber(path)
    ? new ApiError("invalid_parameter", message)
    : invalidParameter(path, message);
}
