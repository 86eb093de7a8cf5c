/** The map of labels to cells that an operator writes. */

import assert from "node:assert/strict";
import { UsageError } from "../../apps/operator/command_line.ts";
import { readMap } from "../../apps/operator/cells_map.ts";
import { readProjectFile } from "../support/documents/project_files.ts";

const MAX_LABELS = 4_096;

/** A map of `count` labels, one a line. */
function labels(count: number): string {
  return Array.from({ length: count }, (_, n) => `l${n} a\n`).join("");
}

Deno.test("readMap() reads the map of the example", async () => {
  const text = await readProjectFile("examples/cells/cells.map");
  assert.deepEqual([...readMap(text)], [["sk7f", "a"], ["sk8q", "b"]]);
});

Deno.test("readMap() reads spaces, tabs, empty lines, comments and both ends of a line", () => {
  const text = "# one\r\n\r\n  sk7f\t a \r\n \t\n#sk7f b\nsk8q   cell-2";
  assert.deepEqual([...readMap(text)], [["sk7f", "a"], ["sk8q", "cell-2"]]);
  assert.deepEqual([...readMap("")], []);
});

const RULE =
  "must be a lower-case letter and up to 9 lower-case letters and digits, and must not " +
  'end with "seeded"';
const CELL_RULE =
  'must be up to 32 lower-case letters, digits and "-", and must not begin with "-"';

const REFUSED: readonly [text: string, message: string][] = [
  ["sk7f a\n# x\nsk7f b", 'Line 3 of the map: the label "sk7f" is in line 1 too'],
  ["sk7f a\nsk7f a", 'Line 2 of the map: the label "sk7f" is in line 1 too'],
  ["sk7f", 'Line 1 of the map: the label "sk7f" has no cell'],
  ["Sk7f a", `Line 1 of the map: the label "Sk7f" ${RULE}`],
  ["7fsk a", `Line 1 of the map: the label "7fsk" ${RULE}`],
  ["skseeded a", `Line 1 of the map: the label "skseeded" ${RULE}`],
  ["sk_live a", `Line 1 of the map: the label "sk_live" ${RULE}`],
  ["abcdefghijk a", `Line 1 of the map: the label "abcdefghijk" ${RULE}`],
  ["\ufeffsk7f a", `Line 1 of the map: the label "\ufeffsk7f" ${RULE}`],
  [" # sk7f a", `Line 1 of the map: the label "#" ${RULE}`],
  [`${"x".repeat(1_000)} a`, `Line 1 of the map: the label "${"x".repeat(40)}…" ${RULE}`],
  ["sk7f A", `Line 1 of the map: the cell "A" ${CELL_RULE}`],
  ["sk7f ../b", `Line 1 of the map: the cell "../b" ${CELL_RULE}`],
  [`sk7f ${"a".repeat(33)}`, `Line 1 of the map: the cell "${"a".repeat(33)}" ${CELL_RULE}`],
  [
    "sk7f a # new",
    'Line 1 of the map: "# new" follows the cell: a comment needs a line of its own',
  ],
  [labels(MAX_LABELS + 1), "Line 4097 of the map: the map has more than 4096 labels"],
  ["#".repeat(1_048_577), "The map is larger than 1 MB"],
];

Deno.test("readMap() refuses a bad line and names it", async (t) => {
  for (const [text, message] of REFUSED) {
    await t.step(message.slice(0, 90), () => {
      assert.throws(() => readMap(text), new UsageError(message));
    });
  }
});

Deno.test("readMap() reads 4096 labels", () => {
  assert.equal(readMap(labels(MAX_LABELS)).size, MAX_LABELS);
});
