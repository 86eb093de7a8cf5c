/** `parseStrictJson` with a list of texts, compared with `JSON.parse`, and with random bytes. */

import assert from "node:assert/strict";
import fc from "fast-check";
import {
  MAX_JSON_DEPTH,
  MAX_JSON_VALUES,
  MAX_NUMBER,
  parseStrictJson,
  type StrictJson,
  StrictJsonError,
} from "../../shared/http/strict_json.ts";
import { bytesOf, JSON_VECTORS } from "../support/core/vectors.ts";

function parseText(text: string): StrictJson {
  return parseStrictJson(new TextEncoder().encode(text));
}

function errorOf(bytes: Uint8Array): StrictJsonError {
  try {
    parseStrictJson(bytes);
  } catch (error) {
    assert.ok(error instanceof StrictJsonError, `another error: ${error}`);
    return error;
  }
  throw new assert.AssertionError({ message: "was accepted" });
}

Deno.test("the vectors are at least 120 texts with distinct names", () => {
  assert.ok(JSON_VECTORS.length >= 120);
  assert.equal(new Set(JSON_VECTORS.map((vector) => vector.name)).size, JSON_VECTORS.length);
});

for (const vector of JSON_VECTORS) {
  Deno.test(`parseStrictJson() ${vector.expect}s: ${vector.name}`, () => {
    const bytes = bytesOf(vector);
    if (vector.expect === "refuse") {
      assert.equal(errorOf(bytes).param, vector.param);
    } else {
      const { value, literals } = parseStrictJson(bytes);
      assert.deepEqual(value, JSON.parse(new TextDecoder().decode(bytes)));
      assert.deepEqual(Object.fromEntries(literals), vector.literals);
    }
  });
}

Deno.test(`parseStrictJson() accepts ${MAX_JSON_VALUES} values`, () => {
  const { value } = parseText(`[${"1,".repeat(MAX_JSON_VALUES - 2)}1]`);
  assert.equal((value as unknown[]).length, MAX_JSON_VALUES - 1);
});

const REASONS: [text: string, reason: RegExp][] = [
  ["", /^it is empty$/],
  ["\ufeff{}", /byte order mark/],
  ["[".repeat(MAX_JSON_DEPTH + 1), /deeper than 16/],
  [`{"${"x".repeat(257)}":1}`, /^this name has more than 256 characters$/],
  // The list is a value as well.
  [`[${"1,".repeat(MAX_JSON_VALUES - 1)}1]`, /^it has more than 500 values$/],
  ['{"a":1,"a":2}', /^this name occurs twice: send it once$/],
  ['{"__proto__":1}', /__proto__/],
  ['"\\u0000"', /U\+0000/],
  ['"\0"', /U\+0000/],
  ['"\\ud800"', /half of a surrogate pair/],
  ['"\n"', /line break/],
  ['"\\x"', /backslash/],
  ['"\\u12"', /hex/],
  ["1".repeat(41), /more than 40/],
  ["9007199254740992", /beyond ±9007199254740991$/],
  ["1e999", /beyond ±9007199254740991$/],
  ["[1", /^it ends too early/],
  [" \n", /^it is empty$/],
  [" a=1", /^it must begin with "{"$/],
  ["[1;", /line 1, column 3 /],
  ['{"a":\n  x}', /line 2, column 3 /],
  ['{"a": 1, }', /^remove the comma before "}"$/],
  ["[1,]", /^remove the comma before "]"$/],
  ["{'a': 1}", /double quotes/],
  ["1 2", /^remove the text after the end/],
];

for (const [text, reason] of REASONS) {
  Deno.test(`parseStrictJson() gives ${reason} for ${JSON.stringify(text.slice(0, 20))}`, () => {
    assert.match(errorOf(new TextEncoder().encode(text)).reason, reason);
  });
}

/** Texts, and the paths at which a card number can be. */
const SUSPECTS: [text: string, ...paths: string[]][] = [
  ['{"a":"123456789012","b":123456789012,"c":"\\u0031","123456789012":""}'],
  ['{"a":"1234567890123","b":["1 234567890123"]}', "a", "b[0]"],
  ['{"a":"\\u0031234567890123"}', "a"],
  ['{"a":"٤"}', "a"],
  ['{"a":1234567890123,"b":1e12,"c":0.1}', "a", "b", "c"],
  ['{"a":{"1234567890123":1}}', "a"],
];
for (const [text, ...paths] of SUSPECTS) {
  Deno.test(`parseStrictJson() notes ${paths.join(" and ") || "nothing"} of ${text}`, () => {
    assert.deepEqual(parseText(text).suspects.map(({ path }) => path), paths);
  });
}

Deno.test("parseStrictJson() gives a reason for invalid UTF-8", () => {
  assert.equal(errorOf(Uint8Array.of(0x22, 0xff, 0x22)).reason, "it is not UTF-8 text");
});

Deno.test("parseStrictJson() repeats no value", () => {
  for (const tail of ["x", "\\x", "\\ud800", "\n", ""]) {
    const error = errorOf(new TextEncoder().encode(`{"number":"4242424242424242${tail}`));
    assert.equal(error.param, "number");
    assert.doesNotMatch(`${error.message} ${error.reason}`, /4242/);
  }
});

Deno.test("parseStrictJson() only makes own members and leaves Object.prototype alone", () => {
  const { value } = parseText('{"constructor":{"prototype":{"polluted":1}},"toString":"own"}');
  assert.equal(Object.getPrototypeOf(value), Object.prototype);
  assert.ok(Object.hasOwn(value as object, "constructor"));
  assert.equal(({} as Record<string, unknown>).polluted, undefined);
  assert.deepEqual(Object.getOwnPropertyDescriptor(value, "toString"), {
    value: "own",
    writable: true,
    enumerable: true,
    configurable: true,
  });
});

Deno.test("parseStrictJson() reads a view into a larger buffer", () => {
  const bytes = new TextEncoder().encode('xx{"a":1}xx');
  assert.deepEqual(parseStrictJson(bytes.subarray(2, 9)).value, { a: 1 });
});

Deno.test("parseStrictJson() equals JSON.parse for output of JSON.stringify", () => {
  const value = fc.jsonValue({ maxDepth: 6, stringUnit: "binary" }).filter(isAcceptable);
  fc.assert(fc.property(value, fc.constantFrom(undefined, 1, "\t"), (value, indent) => {
    const text = JSON.stringify(value, null, indent);
    assert.deepEqual(parseText(text).value, JSON.parse(text));
  }));
});

Deno.test("parseStrictJson() keeps every double up to 2^53 - 1", () => {
  fc.assert(fc.property(fc.double({ min: -MAX_NUMBER, max: MAX_NUMBER, noNaN: true }), (value) => {
    const text = JSON.stringify(value);
    const { value: read, literals } = parseText(text);
    assert.equal(read, JSON.parse(text));
    assert.equal(literals.get(""), /^(0|-?[1-9]\d*)$/.test(text) ? undefined : text);
  }));
});

Deno.test("parseStrictJson() throws only StrictJsonError, for any bytes", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 64 }), onlyThrowsItsError));
});

Deno.test("parseStrictJson() refuses every text that JSON.parse refuses", () => {
  const pieces = '{ } [ ] , : " \\ \\u d83d de00 0000 0 1 - . e E + a b true null __proto__ é 😀';
  const piece = fc.constantFrom(...pieces.split(" "), '"a"', '"b":', " ", "\n", "\0");
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 24 }), (parts) => {
      onlyThrowsItsError(new TextEncoder().encode(parts.join("")));
    }),
    { numRuns: 5000 },
  );
});

/**
 * False if a key is `__proto__`, a text has U+0000 or half a surrogate pair, or a number is too
 * large.
 */
function isAcceptable(value: unknown): boolean {
  if (typeof value === "string") return !value.includes("\0") && value.isWellFormed();
  if (typeof value === "number") return Math.abs(value) <= MAX_NUMBER;
  if (typeof value !== "object" || value === null) return true;
  return Object.entries(value).every(([key, member]) =>
    key !== "__proto__" && isAcceptable(key) && isAcceptable(member)
  );
}

function onlyThrowsItsError(bytes: Uint8Array): void {
  let value;
  try {
    value = parseStrictJson(bytes).value;
  } catch (error) {
    assert.ok(error instanceof StrictJsonError, `another error: ${error}`);
    return;
  }
  assert.deepEqual(value, JSON.parse(new TextDecoder().decode(bytes)));
}
