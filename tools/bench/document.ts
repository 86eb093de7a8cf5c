/** Writes the tables of docs/benchmarks.md, its chart, and the tables of tools/bench/last_runs.md. */

import { drawChart } from "./chart.ts";
import { PROJECT_DIR } from "./product.ts";

const PATH = `${PROJECT_DIR}docs/benchmarks.md`;
const RUNS_PATH = `${PROJECT_DIR}tools/bench/last_runs.md`;
const CHART_PATH = `${PROJECT_DIR}docs/benchmarks.svg`;

/** Tables in Markdown, by the names in the comments of the two documents. */
type Parts = Record<string, string>;

/** Writes parts into the documents, and draws the chart. The other parts stay unchanged. */
export async function writeDocument(parts: Parts): Promise<void> {
  for (const path of [PATH, RUNS_PATH]) {
    await Deno.writeTextFile(path, replaceParts(await Deno.readTextFile(path), parts));
  }
  const format = new Deno.Command(Deno.execPath(), {
    args: ["fmt", "--quiet", PATH, RUNS_PATH],
    cwd: PROJECT_DIR,
  });
  if (!(await format.output()).success) throw new Error("the documents cannot be formatted");
  await Deno.writeTextFile(CHART_PATH, drawChart(await Deno.readTextFile(PATH)));
}

/** The document with new text between `<!-- bench: name -->` and `<!-- bench: end -->`. */
function replaceParts(document: string, parts: Parts): string {
  return document.replace(
    /(<!-- bench: (\w+) -->\n)[^]*?(<!-- bench: end -->)/g,
    (place, begin, name, end) =>
      parts[name] === undefined ? place : `${begin}\n${parts[name]}\n${end}`,
  );
}
