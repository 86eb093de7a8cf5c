/** Writes the tables of docs/benchmarks.md and its chart. */

import { drawChart } from "./chart.ts";
import { PROJECT_DIR } from "./product.ts";

const PATH = `${PROJECT_DIR}docs/benchmarks.md`;
const CHART_PATH = `${PROJECT_DIR}docs/benchmarks.svg`;

/** Tables in Markdown, by the names in the comments of the document. */
type Parts = Record<string, string>;

/** Writes parts into the document, and draws the chart. */
export async function writeDocument(parts: Parts): Promise<void> {
  await Deno.writeTextFile(PATH, replaceParts(await Deno.readTextFile(PATH), parts));
  const format = new Deno.Command(Deno.execPath(), {
    args: ["fmt", "--quiet", PATH],
    cwd: PROJECT_DIR,
  });
  if (!(await format.output()).success) throw new Error("the document cannot be formatted");
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
