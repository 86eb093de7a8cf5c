/** Writes the tables of docs/benchmarks.md, and its chart. Its text is written by hand. */

import { drawChart } from "./chart.ts";
import { PROJECT_DIR } from "./product.ts";

const PATH = `${PROJECT_DIR}docs/benchmarks.md`;
const CHART_PATH = `${PROJECT_DIR}docs/benchmarks.svg`;

/** Tables in Markdown, by the names in the comments of the document. */
type Parts = Record<string, string>;

/** Writes parts into the document, and draws its chart. The other parts stay unchanged. */
export async function writeDocument(parts: Parts): Promise<void> {
  await Deno.writeTextFile(PATH, replaceParts(await Deno.readTextFile(PATH), parts));
  const format = new Deno.Command(Deno.execPath(), {
    args: ["fmt", "--quiet", PATH],
    cwd: PROJECT_DIR,
  });
  if (!(await format.output()).success) throw new Error(`${PATH} cannot be formatted`);
  await Deno.writeTextFile(CHART_PATH, drawChart(await Deno.readTextFile(PATH)));
}

/** The document with new text between `<!-- bench: name -->` and `<!-- bench: end -->`. */
export function replaceParts(document: string, parts: Parts): string {
  return Object.entries(parts).reduce((text, [name, part]) => {
    const place = new RegExp(`(<!-- bench: ${name} -->\n)[^]*?(<!-- bench: end -->)`);
    if (!place.test(text)) throw new Error(`docs/benchmarks.md has no part "${name}"`);
    return text.replace(place, (_, begin, end) => `${begin}\n${part}\n${end}`);
  }, document);
}
