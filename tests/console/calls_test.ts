/**
 * Calls of the console: every operation of the API that a test key can call, with every member of
 * its body. In a copied snippet, values with quotes, commands or line breaks stay values.
 */

import assert from "node:assert/strict";
import { scopeOf } from "../../apps/console/data/permissions.ts";
import { curlOf, typescriptOf } from "../../tools/generate/code_samples/snippets.ts";
import { CLIENT_METHODS } from "../../tools/generate/code_samples/client_methods.ts";
import { ADDRESSES } from "../../tools/generate/openapi/operations.ts";
import { outputOf } from "../support/common/running_command.ts";
import { projectFiles, readProjectFile } from "../support/documents/project_files.ts";

/** Operations without a place of their own, and the reason. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  advanceSandboxPayment: "an alias of advancePayment",
  getPaymentsHealth: "needs no key",
  getSandboxHealth: "needs no key",
  getOpenapiDocument: "the link to the reference leads to it",
  wakeDispatcher: "for operators",
  purgeOutlivedData: "for operators",
  getMetrics: "for operators",
  getOwnApiKey: "the page asks it when it is opened",
  eraseCustomer: "a person is erased by the merchant's own program",
  eraseCustomerByEmail: "a person is erased by the merchant's own program",
};

/** The code of the console. */
const CODE = (await Promise.all(
  (await projectFiles([".ts", ".tsx"], ["apps/console/"])).map(readProjectFile),
)).join("\n");

/** A schema of the OpenAPI document. */
interface Schema {
  $ref?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
  allOf?: Schema[];
  anyOf?: Schema[];
  oneOf?: Schema[];
}

/** The names of the members of a schema, and of the schemas in it. */
function membersOf(schema: Schema, named: Readonly<Record<string, Schema>>): string[] {
  if (schema.$ref) return membersOf(named[schema.$ref.split("/").at(-1)!]!, named);
  const { properties = {}, items, allOf = [], anyOf = [], oneOf = [] } = schema;
  const parts = [...Object.values(properties), ...allOf, ...anyOf, ...oneOf, items ?? []].flat();
  return [...Object.keys(properties), ...parts.flatMap((part) => membersOf(part, named))];
}

const DOCUMENT = JSON.parse(await readProjectFile("docs/openapi.json"));

Deno.test("the console can do every operation of docs/openapi.json", () => {
  const operations = Object.values<Record<string, { operationId?: string }>>(DOCUMENT.paths)
    .flatMap((path) => Object.values(path).flatMap(({ operationId }) => operationId ?? []))
    // The paths with /v1 are aliases.
    .filter((id) => !id.endsWith("V1"));
  const calls = new Set(
    [...CODE.matchAll(/\bcall\(\s*"(\w+)",\s*"(\w+)"/g)]
      .map(([, resource, method]) => `${resource}.${method}`),
  );
  const missing = operations.filter((id) =>
    !(id in ELSEWHERE) && !calls.has(CLIENT_METHODS[id] ?? "")
  );
  assert.deepEqual(missing, []);
  const gone = Object.keys(ELSEWHERE).filter((id) => !operations.includes(id));
  assert.deepEqual(gone, [], "operations that the document does not have");
});

Deno.test("scopeOf() has the scope of every call", () => {
  const calls = Object.entries(CLIENT_METHODS).map(([id, call]) => {
    const { scope } = ADDRESSES.find((address) => address.id === id)!.operation;
    return [call, scope];
  });
  assert.deepEqual(
    calls.map(([call]) => [call, scopeOf(call as Parameters<typeof scopeOf>[0])]),
    calls,
  );
});

Deno.test("the console has every member of the bodies in docs/openapi.json", () => {
  const { paths, components } = DOCUMENT;
  type Operation = { operationId?: string; requestBody?: { content: object } };
  const members = Object.values<Record<string, Operation>>(paths)
    .flatMap((path) => Object.values(path))
    .filter(({ operationId = "" }) => !(operationId.replace(/V1$/, "") in ELSEWHERE))
    .flatMap(({ requestBody }) => Object.values(requestBody?.content ?? {}))
    .flatMap(({ schema }) => membersOf(schema, components.schemas));
  assert.ok(members.includes("postal_code"));
  const missing = members.filter((name) => !new RegExp(`\\b${name}\\b`).test(CODE));
  assert.deepEqual([...new Set(missing)], []);
});

/** Texts with characters that a shell or a compiler interprets. */
const HOSTILE = [
  `it's`,
  `'; touch /tmp/taken; '`,
  "$(touch taken) `touch taken` $PAYMENTS_API_KEY",
  `"double" \\ back\\slash`,
  "line\nbreak\u2028separator",
  "${'${'}template}",
  "</script>",
];

for (const text of HOSTILE) {
  Deno.test(`curlOf() quotes ${JSON.stringify(text)} as one argument`, async () => {
    const command = curlOf({
      method: "POST",
      url: "http://127.0.0.1/v1/payments",
      headers: { Authorization: "Bearer sk_test_…", "Content-Type": "application/json" },
      body: JSON.stringify({ text }),
    });
    // The shell prints the arguments that it reads from the command.
    const script = `curl() { printf '%s\\0' "$@"; }\n${command}`;
    const printed = await outputOf(["sh", "-c", script], { env: { PAYMENTS_API_KEY: "the key" } });
    assert.deepEqual(printed.split("\0"), [
      "-X",
      "POST",
      "http://127.0.0.1/v1/payments",
      "-H",
      "Authorization: Bearer the key",
      "-H",
      "Content-Type: application/json",
      "-d",
      JSON.stringify({ text }),
      "",
    ]);
  });

  Deno.test(`typescriptOf() quotes ${JSON.stringify(text)} as one string`, () => {
    const call = { resource: "payments", method: "create", args: [{ [text]: text, list: [text] }] };
    const code = typescriptOf(call, "http://127.0.0.1");
    const argument = /create\(([\s\S]*)\);\nconsole/.exec(code)![1]!;
    assert.deepEqual(new Function(`return ${argument}`)(), call.args[0]);
  });
}

Deno.test("typescriptOf() omits undefined members, and no name can set a prototype", () => {
  const args = ["pay_1", JSON.parse('{"__proto__": "x"}'), { idempotencyKey: undefined }];
  const code = typescriptOf({ resource: "payments", method: "refund", args }, "http://127.0.0.1");
  assert.match(code, /refund\("pay_1", \{\n {2}\["__proto__"\]: "x",\n\}, \{\}\);/);
});
