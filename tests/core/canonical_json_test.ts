/** `canonicalJson` with the vectors of RFC 8785; `fingerprint` with known responses. */

import assert from "node:assert/strict";
import fc from "fast-check";
import { canonicalJson, fingerprint, type JsonValue } from "../../shared/core/canonical_json.ts";
import vectors from "../vectors/canonical_json.json" with { type: "json" };

const values: { name: string; input: string; canonical: string; utf8_hex?: string }[] =
  vectors.values;

for (const { name, input, canonical, utf8_hex } of values) {
  Deno.test(`canonicalJson() agrees with RFC 8785: ${name}`, () => {
    const text = canonicalJson(JSON.parse(input));
    assert.equal(text, canonical);
    if (utf8_hex !== undefined) assert.equal(hexOf(text), utf8_hex);
  });
}

for (const { ieee754, canonical } of vectors.numbers) {
  Deno.test(`canonicalJson() agrees with RFC 8785: ${ieee754} is ${canonical}`, () => {
    assert.equal(canonicalJson(doubleOf(ieee754)), canonical);
  });
}

Deno.test("canonicalJson() does not depend on the order of members", () => {
  fc.assert(fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (members) => {
    const entries = Object.entries(members) as [string, JsonValue][];
    const reversed = Object.fromEntries(entries.toReversed());
    const text = canonicalJson(reversed);
    assert.equal(text, canonicalJson(Object.fromEntries(entries)));
    assert.equal(canonicalJson(JSON.parse(text)), text);
  }));
});

const PATH = "/v1/payments";

Deno.test("fingerprint() is SHA-256 of method, path and canonical body", () => {
  // printf 'POST /v1/payments\n{"amount":100,"currency":"EUR"}' | sha256sum
  assert.equal(
    fingerprint("POST", PATH, { currency: "EUR", amount: 100 }),
    "5a21631061c23d3c6421d5f18e024117c5ed54d4a1d5cb359a78593c1a1e0c81",
  );
  // printf 'POST /v1/payments\n{}' | sha256sum
  assert.equal(
    fingerprint("POST", PATH, {}),
    "8d601849e503052ebf55e18538a17a9cc241f99bff8d664f84726bb58f513ebd",
  );
});

const PAIRS: [difference: string, a: string, b: string, same: boolean][] = [
  ["order of members", '{"a":1,"b":2}', '{"b":2,"a":1}', true],
  ["white space", '{ "a" : 1 }', '{"a":1}', true],
  ["spelling of a number", '{"a":1.0}', '{"a":1}', true],
  ["sign of zero", '{"a":-0}', '{"a":0}', true],
  ["escapes", '{"a":"\\u0041"}', '{"a":"A"}', true],
  ["a value", '{"a":1}', '{"a":2}', false],
  ["the type of a value", '{"a":1}', '{"a":"1"}', false],
  ["null or an absent member", '{"a":null}', "{}", false],
  ["order of elements", "[1,2]", "[2,1]", false],
  ["normal form of text", '"\\u00e9"', '"e\\u0301"', false],
];

for (const [difference, a, b, same] of PAIRS) {
  Deno.test(`fingerprint() ${same ? "ignores" : "depends on"} ${difference}`, () => {
    const prints = [a, b].map((text) => fingerprint("POST", PATH, JSON.parse(text)));
    assert.equal(prints[0] === prints[1], same);
  });
}

Deno.test("fingerprint() depends on the method and the path", () => {
  const prints = [
    fingerprint("POST", PATH, {}),
    fingerprint("PUT", PATH, {}),
    fingerprint("POST", "/v1/transfers", {}),
  ];
  assert.equal(new Set(prints).size, prints.length);
});

function doubleOf(hex: string): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, BigInt(`0x${hex}`));
  return view.getFloat64(0);
}

function hexOf(text: string): string {
  return Array.from(
    new TextEncoder().encode(text),
    (byte) => byte.toString(16).padStart(2, "0"),
  ).join("");
}
