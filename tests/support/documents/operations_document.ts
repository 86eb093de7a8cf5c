/** Reads sections and code blocks of the pages in docs/operations/. */

const FOLDER = new URL("../../../docs/operations/", import.meta.url);

/** The section below a heading of any level, up to the next heading. */
export async function section(heading: string): Promise<string> {
  for await (const { name } of Deno.readDir(FOLDER)) {
    const text = await Deno.readTextFile(new URL(name, FOLDER));
    const found = text.split(/^#+ /m).find((part) => part.startsWith(`${heading}\n`));
    if (found !== undefined) return found;
  }
  throw new Error(`docs/operations/ has no section "${heading}"`);
}

/** The first block of a language below a heading, or a later one. */
export async function block(heading: string, language: string, number = 1): Promise<string> {
  const fence = new RegExp(`^ *\`\`\`${language}\\n(.*?)^ *\`\`\``, "gms");
  const [, code] = [...(await section(heading)).matchAll(fence)][number - 1] ?? [];
  if (code === undefined) throw new Error(`"${heading}" has no ${language} block`);
  return code;
}

/** The shell block below a heading. */
export function shellBlock(heading: string): Promise<string> {
  return block(heading, "sh");
}
