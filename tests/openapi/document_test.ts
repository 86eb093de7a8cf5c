/**
 * Properties of docs/openapi.json that readers and generators of clients need.
 */

import assert from "node:assert/strict";

const FILE = new URL("../../docs/openapi.json", import.meta.url);
/** The largest integer of 32 bits. */
const MAX_INT32 = 2_147_483_647;

// deno-lint-ignore no-explicit-any
type Json = any;

const document: Json = JSON.parse(await Deno.readTextFile(FILE));

/** Every object of the document with the path to it, such as `components.schemas.Payment`. */
const OBJECTS: [path: string, value: Json][] = [];
collect("", document);

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
