/** The introduction of the reference lists every test value, in the order of docs/errors.md. */

import assert from "node:assert/strict";
import { TEST_CARDS, TEST_IBANS, TEST_WALLETS } from "../../shared/domain/providers/test_values.ts";
import { readProjectFile } from "../support/documents/project_files.ts";
import { codeTexts, tableRows } from "../support/documents/readme_document.ts";

const PATH = "scripts/documents/openapi/introduction.md";
const page = await readProjectFile(PATH);

for (
  const [head, values] of [
    ["Card", TEST_CARDS],
    ["IBAN or wallet", [...TEST_IBANS, ...TEST_WALLETS]],
  ] as const
) {
  Deno.test(`${PATH} lists the test values under "${head}"`, () => {
    const listed = tableRows(page, head).map(([cell]) => codeTexts(cell!)[0]);
    assert.deepEqual(listed, values.map(({ value }) => value));
  });
}
