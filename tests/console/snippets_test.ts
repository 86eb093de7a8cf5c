/**
 * Copied snippets: values with quotes, commands or line breaks stay values in the shell and in
 * TypeScript.
 */

import assert from "node:assert/strict";
import { curlOf, typescriptOf } from "../../apps/console/data/snippets.ts";

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
    const { stdout } = await new Deno.Command("sh", {
      args: ["-c", `curl() { printf '%s\\0' "$@"; }\n${command}`],
      env: { PAYMENTS_API_KEY: "the key" },
    }).output();
    assert.deepEqual(new TextDecoder().decode(stdout).split("\0"), [
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
