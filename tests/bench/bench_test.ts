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
/** The lines, each with the programs that every machine with PostgreSQL has. */
const ROWS = [
  ...["create", "replay", "get", "list of 10", "create, 1 connection"].flatMap((line) => [
    `${line} \\| this service`,
    `${line} \\| pgbench`,
  ]),
  ...["refund \\| this service", "webhooks \\| this service", "webhooks \\| 16 fetch loops"],
];

Deno.test("deno task bench --quick measures every line", { ignore: waits }, async () => {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "tools/bench/benchmark.ts", "--quick"],
    cwd: ROOT,
    stdin: "null",
  }).output();
  const table = new TextDecoder().decode(stdout);
  const errors = new TextDecoder().decode(stderr);
  assert.equal(code, 0, errors + table);
  for (const skipped of errors.match(/^.*(?:MISSING|NOT MEASURED).*$/gm) ?? []) {
    console.error(`SKIPPED: ${skipped}`);
  }
  for (const row of ROWS) {
    const [, cpu, rate] =
      new RegExp(`^\\| ${row} \\|[^|]+\\|([^|]+)\\|[^|]+\\|[^|]+\\|([^|]+)\\|`, "m")
        .exec(table) ?? [];
    assert.ok(Number(rate) > 0, `${row}: ${table}`);
    if (!row.includes("fetch")) assert.ok(Number(cpu) > 0, `${row}: ${table}`);
  }
  assert.match(table, /^\| create, µs in PostgreSQL \| ≤ 125 \| \d/m);
  assert.match(table, /^\| this service: space of a payment with indexes \| kB \| \d/m);
});

Deno.test("docs/benchmarks.svg is drawn from the table of docs/benchmarks.md", async () => {
  const page = await Deno.readTextFile(`${ROOT}docs/benchmarks.md`);
  assert.equal(await Deno.readTextFile(`${ROOT}docs/benchmarks.svg`), drawChart(page));
});
