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
    if (code === 0) break;
  }
  assert.equal(code, 0, errors + table);
  for (const skipped of errors.match(/^.*(?:MISSING|NOT MEASURED).*$/gm) ?? []) {
    console.error(`SKIPPED: ${skipped}`);
  }
  assert.match(table, /^\| create \| 64 \|/m);
  const rates = [...table.matchAll(/^\| [^|]+ \| (?:\d+|–) \| +(\d[\d.]*) /gm)];
  assert.ok(rates.length > 5 && rates.every(([, rate]) => Number(rate) > 0), table);
  assert.match(table, /^\| webhooks × fetch loop of 16 \| ≥ \d/m);
});

Deno.test("docs/benchmarks.svg is drawn from the table of docs/benchmarks.md", async () => {
  const page = await Deno.readTextFile(`${ROOT}docs/benchmarks.md`);
  assert.equal(await Deno.readTextFile(`${ROOT}docs/benchmarks.svg`), drawChart(page));
});
