/**
 * The benchmark: a quick run measures its lines, audits the books and prints the tables. The tests
 * judge no speed.
 */

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { drawChart } from "../../tools/bench/chart.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** In CI it runs when nothing else does: beside other tests it would take the processors twice. */
const waits = Deno.env.get("CI") !== undefined && Deno.env.get("IDLE_MACHINE") !== "true";
/** A run that measures too little beside other programs counts if it is repeated and longer. */
const SECONDS = ["0.2", "1"];
/** The rows of the table, with their connections. */
const LINES = [
  ...["create \\| 1", "create \\| 64", "create \\| 128", "replay \\| 64", "get \\| 64"],
  ...["list of 10 \\| 64", "webhooks beside fetch \\| 16"],
  ...["create until every event has arrived \\| 64", "create to arrival, 100/s \\| –"],
];

Deno.test("deno task bench --quick measures every line", { ignore: waits }, async () => {
  let [code, table, errors] = [1, "", ""];
  for (const seconds of SECONDS) {
    const run = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "tools/bench/benchmark.ts", "--quick", "--seconds", seconds],
      cwd: ROOT,
      stdin: "null",
    }).output();
    code = run.code;
    table = new TextDecoder().decode(run.stdout);
    errors = new TextDecoder().decode(run.stderr);
    if (code === 0 || !table.includes("OTHER PROGRAMS took")) break;
  }
  assert.equal(code, 0, errors + table);
  for (const skipped of errors.match(/^.*(?:MISSING|NOT MEASURED).*$/gm) ?? []) {
    console.error(`SKIPPED: ${skipped}`);
  }
  for (const line of LINES) assert.match(table, new RegExp(`^\\| ${line} \\|`, "m"));
  const rates = [...table.matchAll(/^\| [^|]+ \| (?:\d+|–) \| +(\d[\d.]*) /gm)];
  assert.ok(rates.length > 5 && rates.every(([, rate]) => Number(rate) > 0), table);
  assert.match(table, /^\| webhooks × fetch loop of 16 \| ≥ \d/m);
});

Deno.test("docs/benchmarks.svg is drawn from the table of docs/benchmarks.md", async () => {
  const page = await Deno.readTextFile(`${ROOT}docs/benchmarks.md`);
  assert.equal(await Deno.readTextFile(`${ROOT}docs/benchmarks.svg`), drawChart(page));
});
