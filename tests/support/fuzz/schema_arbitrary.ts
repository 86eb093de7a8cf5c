/**
 * Generates the values that the fuzz test sends: some match a JSON schema, others almost match. The
 * module supports the parts of JSON Schema that requests in docs/openapi.json use.
 */

import fc from "fast-check";

// deno-lint-ignore no-explicit-any
type Json = any;

/** Valid texts whose form no schema describes, by the member's name. */
export type Known = Readonly<Record<string, fc.Arbitrary<unknown>>>;

/** Generates values of a schema. @param document contains the target of each `$ref` */
export function valueOf(schema: Json, document: Json, known: Known, name = ""): fc.Arbitrary<Json> {
  const inner = (schema: Json, name = "") => valueOf(schema, document, known, name);
  if (known[name]) return known[name];
  if (schema.$ref) return inner(resolve(schema.$ref, document), name);
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  const either = schema.anyOf ?? schema.oneOf;
  if (either) return fc.oneof(...either.map((schema: Json) => inner(schema, name)));
  switch (schema.type) {
    case "integer":
      return fc.integer({ min: schema.minimum ?? 0, max: Math.min(schema.maximum ?? 1e6, 1e12) });
    case "boolean":
      return fc.boolean();
    case "null":
      return fc.constant(null);
    case "array":
      return fc.array(inner(schema.items), {
        minLength: schema.minItems ?? 0,
        maxLength: Math.min(schema.maxItems ?? 4, 4),
      });
    case "object":
      return objectOf(schema, inner);
    case "string":
      return textOf(schema);
  }
  return fc.constant(undefined);
}

/** Generates request bodies that differ from the schema, as text. */
export function brokenText(valid: fc.Arbitrary<Json>): fc.Arbitrary<string> {
  const spoiled = fc.record({ value: valid, at: fc.nat(), by: Odd }).map(({ value, at, by }) =>
    JSON.stringify(replaceAt(value, at, by))
  );
  const torn = fc.record({ value: valid, at: fc.nat(), by: fc.string({ unit: "binary" }) })
    .map(({ value, at, by }) => {
      const text = JSON.stringify(value) ?? "";
      const place = at % (text.length + 1);
      return text.slice(0, place) + by + text.slice(place + by.length);
    });
  return fc.oneof({ weight: 6, arbitrary: spoiled }, { weight: 2, arbitrary: torn }, fc.json());
}

/** Values that no schema expects. */
const Odd: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    0,
    -1,
    0.5,
    1e308,
    2 ** 53,
    "",
    " ",
    "\u0000",
    "\ud800",
    "💶",
    "a".repeat(600),
    [],
    {},
    [[[[]]]],
    { "": "" },
    { constructor: 1 },
    "' or 1=1 --",
  ),
  fc.string({ unit: "binary", maxLength: 30 }),
  fc.integer(),
  fc.jsonValue({ maxDepth: 3 }),
);

function objectOf(schema: Json, inner: (schema: Json, name?: string) => fc.Arbitrary<Json>) {
  const properties: Record<string, Json> = schema.properties ?? {};
  const required: string[] = schema.required ?? [];
  const members = Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [name, inner(schema, name)]),
  );
  if (Object.keys(members).length > 0) {
    return fc.record(members, { requiredKeys: required.filter((name) => name in members) });
  }
  const more = schema.additionalProperties;
  if (!more || more === true) return fc.constant({});
  const key = fc.string({ minLength: 1, maxLength: 10, unit: "grapheme-ascii" })
    .filter((key) => key !== "__proto__");
  return fc.dictionary(key, inner(more), { maxKeys: 3 });
}

function textOf(schema: Json): fc.Arbitrary<string> {
  if (schema.pattern) {
    const { minLength = 0, maxLength = Infinity } = schema;
    return fc.stringMatching(new RegExp(schema.pattern))
      .filter(({ length }) => minLength <= length && length <= maxLength);
  }
  if (schema.format === "idn-email") {
    return fc.constantFrom("ada@example.com", "jörg+1@bücher.example");
  }
  if (schema.format === "date-time") {
    return fc.date({
      min: new Date("2020-01-01"),
      max: new Date("2040-01-01"),
      noInvalidDate: true,
    }).map((date) => date.toISOString());
  }
  return fc.string({
    minLength: schema.minLength ?? 0,
    maxLength: Math.min(schema.maxLength ?? 40, 40),
    unit: "grapheme-ascii",
  });
}

/** Returns a copy of a value in which `by` replaces one part, at any depth. */
function replaceAt(value: Json, at: number, by: unknown): Json {
  const copy = structuredClone(value);
  const places: [holder: Json, key: string | number][] = [];
  const visit = (holder: Json) => {
    if (typeof holder !== "object" || holder === null) return;
    for (const key of Object.keys(holder)) {
      places.push([holder, key]);
      visit(holder[key]);
    }
  };
  visit(copy);
  if (places.length === 0) return by;
  const [holder, key] = places[at % places.length]!;
  // Sometimes the part is removed instead.
  if (at % 7 === 0 && !Array.isArray(holder)) delete holder[key];
  else holder[key] = by;
  return copy;
}

function resolve(ref: string, document: Json): Json {
  return ref.slice(2).split("/").reduce((inner, step) => inner[step], document);
}
