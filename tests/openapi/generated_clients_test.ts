/**
 * Clients that generators of other languages make from docs/openapi.json compile, and work against
 * a running service: a create, the same create again, a decline, a list and a refund.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";
import { CLIENT_LANGUAGES, isLeftOut, runClient } from "../support/openapi/generated_clients.ts";
import { withServedService } from "../support/service/served_service.ts";

const EXPECTED = [
  "create: completed 1999 EUR",
  "create again: true",
  "decline: payment_declined declined use_another_method",
  "list: 2 declined false",
  "refund: completed 500 partially_refunded",
];

for (const language of CLIENT_LANGUAGES) {
  const name = `docs/openapi.json makes a client for ${language.name} with ${language.generator}`;
  const is_left_out = await isLeftOut(language);
  Deno.test({
    name: is_left_out ? `${name} (needs ${language.generator}, which is not installed)` : name,
    ignore: is_left_out,
    fn: () =>
      withServedService(({ service, base_url }) =>
        withTemporaryFolder(async (folder) => {
          const env = { PAYMENTS_BASE_URL: base_url, PAYMENTS_API_KEY: service.key.text };
          assert.deepEqual(await runClient(language, folder, env), EXPECTED);
          if (language.size === undefined) return;
          const { file, lines_max } = language.size;
          const lines = (await Deno.readTextFile(join(folder, file))).split("\n").length;
          assert.ok(lines <= lines_max, `${file} has ${lines} lines`);
        })
      ),
  });
}

Deno.test("docs/clients.md names the versions of the generators that CI installs", async () => {
  const [page, script] = await Promise.all([
    Deno.readTextFile(new URL("../../docs/clients.md", import.meta.url)),
    Deno.readTextFile(new URL("../../.ci/client_generators", import.meta.url)),
  ]);
  const named = page.match(/[\w.-]+(@v|==|cli:)\d+(\.\d+)+/g)!;
  assert.equal(named.length, 4);
  for (const version of named) assert.ok(script.includes(version), version);
});
