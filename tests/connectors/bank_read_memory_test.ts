/** The memory of reading a bank file does not grow with the file. */

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";

const PROGRAM = fileURLToPath(
  new URL("../support/connectors/read_large_file.ts", import.meta.url),
);
/** Enough to see 1.3 kB that stay in memory for each. */
const MANY = 30_000;
/** The bound of an import. */
const GROWTH_MB_MAX = 40;
/** A peak also has what the collector had not freed yet, so the least of some runs counts. */
const RUNS_MAX = 4;

async function measure(many: string, count: number): Promise<{ records: number; peak_mb: number }> {
  // The flags are those of the service (deno.json).
  const { stdout, stderr, success } = await new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "-A",
      "--no-check",
      "--v8-flags=--max-semi-space-size=8,--heap-growing-percent=200",
      PROGRAM,
      many,
      `${count}`,
    ],
  }).output();
  assert.ok(success, new TextDecoder().decode(stderr));
  return JSON.parse(new TextDecoder().decode(stdout));
}

for (
  const [many, records] of [["entries", 2 * MANY + 3], ["details", MANY + 5], [
    "statuses",
    MANY + 1,
  ]] as const
) {
  Deno.test(`readBankFile() needs little memory for ${MANY} ${many}`, async () => {
    const one = await measure(many, 1);
    const peaks: number[] = [];
    do {
      const all = await measure(many, MANY);
      assert.equal(all.records, records);
      peaks.push(all.peak_mb);
    } while (Math.min(...peaks) - one.peak_mb >= GROWTH_MB_MAX && peaks.length < RUNS_MAX);
    assert.ok(Math.min(...peaks) - one.peak_mb < GROWTH_MB_MAX, `${one.peak_mb} to ${peaks} MB`);
  });
}
