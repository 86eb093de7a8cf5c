/**
 * Properties of docs/openapi.json that readers and generators of clients need.
 */

import assert from "node:assert/strict";

const FILE = new URL("../../docs/openapi.json", import.meta.url);
/** Bytes of the document at most, so that the page and generators read it quickly (ADR 0012). */
const MAX_BYTES = 425_000;
/** The largest integer of 32 bits. */
const MAX_INT32 = 2_147_483_647;

// deno-lint-ignore no-explicit-any
type Json = any;

const text = await Deno.readTextFile(FILE);
const document: Json = JSON.parse(text);

/** Every object of the document with the path to it, such as `components.schemas.Payment`. */
const OBJECTS: [path: string, value: Json][] = [];
collect("", document);

Deno.test("docs/openapi.json has less than 425 kB", () => {
  assert.ok(text.length < MAX_BYTES, `it has ${text.length} bytes`);
});

Deno.test("docs/openapi.json has each response header once, in components/headers", () => {
  const written = OBJECTS.filter(([path, value]) =>
    path.includes(".responses.") && path.endsWith(".headers") && !path.includes(".examples.") &&
    Object.values(value).some((header: Json) => header.$ref === undefined)
  );
  assert.deepEqual(written.map(([path]) => path), []);
});

Deno.test("webhooks refer to no component that only they use, which oapi-codegen leaves out", () => {
  const { webhooks, ...rest } = document;
  const used = new Set(refsIn(rest));
  const own = refsIn(webhooks).filter((ref) => !used.has(ref) && !ref.includes("/examples/"));
  // oapi-codegen keeps schemas.
  assert.deepEqual(own.filter((ref) => !ref.includes("/schemas/")), []);
});

Deno.test("every schema and every member of a schema has a text that explains it", () => {
  const schemas = OBJECTS.filter(([path]) => path.startsWith("components.schemas."));
  const empty = schemas.flatMap(([path, { properties = {} }]) =>
    path.endsWith(".properties") ? [] : Object.entries<Json>(properties)
      .filter(([, member]) => !explains(member))
      .map(([name]) => `${path}.${name}`)
  );
  const nameless = Object.entries<Json>(document.components.schemas)
    .filter(([, schema]) => !schema.description).map(([name]) => name);
  assert.deepEqual([...nameless, ...empty], [], "describe them in shared/schema");
});

Deno.test("every object of a request has no other members", () => {
  const prefix = "#/components/schemas/";
  const sent = OBJECTS.filter(([path]) => /^paths\..*\.requestBody\./.test(path));
  const names = new Set(sent.flatMap(([, value]) => refsIn(value)));
  // A set also shows what is added to it meanwhile.
  for (const ref of names) {
    assert.ok(ref.startsWith(prefix), ref);
    for (const inner of refsIn(document.components.schemas[ref.slice(prefix.length)])) {
      names.add(inner);
    }
  }
  assert.ok(names.size > 20, String(names.size));
  const open = OBJECTS.filter(([path, value]) =>
    names.has(prefix + path.split(".")[2]) && path.startsWith("components.schemas.") &&
    typeof value.properties === "object" && value.type === "object" &&
    value.additionalProperties !== false
  );
  assert.deepEqual(open.map(([path]) => path), []);
});

Deno.test("amounts are integers of 64 bits, also in languages with smaller integers", () => {
  const wide = OBJECTS.filter(([path, { type, maximum }]) =>
    path.startsWith("components.schemas.") && type === "integer" && maximum > MAX_INT32
  );
  assert.ok(wide.length > 10);
  for (const [path, { format }] of wide) assert.equal(format, "int64", path);
});

Deno.test("the page /docs has no heading twice: tags and headings of the introduction differ", () => {
  const headings = [
    ...document.info.description.matchAll(/^#+ (.*)$/gm).map(([, heading]: string[]) => heading),
    ...document.tags.map(({ name }: Json) => name),
    ...Object.values<Json>(document.paths).flatMap((item) =>
      Object.values<Json>(item).map(({ summary }) => summary)
    ),
    ...Object.keys(document.webhooks),
  ];
  assert.deepEqual(headings, [...new Set(headings)]);
});

/** A constant explains itself, and a reference has the text of its component. */
function explains(member: Json): boolean {
  if (member.const !== undefined || JSON.stringify(member).includes('"$ref"')) return true;
  return member.description !== undefined && !/^The same (as|value)/.test(member.description);
}

function refsIn(value: Json): string[] {
  return [...JSON.stringify(value).matchAll(/"\$ref":"([^"]+)"/g)].map(([, ref]) => ref!);
}

function collect(path: string, value: Json): void {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value)) OBJECTS.push([path, value]);
  for (const [name, member] of Object.entries(value)) {
    collect(path === "" ? name : `${path}.${name}`, member);
  }
}
