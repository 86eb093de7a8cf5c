/**
 * The size of the code that each function loads at its start: minified entry and static imports.
 */

import { join } from "node:path";
import { PROJECT_DIR } from "./product.ts";
import type { Figure } from "./program.ts";

const FUNCTIONS = ["api-v1-payments", "api-v1-sandbox"];
/** The file of a bundle that the runtime imports. */
const ENTRY = "index.js";
/** An import of another file of the bundle. Dynamic imports have a parenthesis. */
const STATIC_IMPORT = /\b(?:from|import)"\.\/([^"]+)"/g;

/** Bundles both functions. */
export async function measureFootprint(): Promise<Figure[]> {
  const folder = await Deno.makeTempDir({ prefix: "payments-bundle-" });
  try {
    return await Promise.all(FUNCTIONS.map(async (name): Promise<Figure> => {
      const out = join(folder, name);
      const built = await new Deno.Command(Deno.execPath(), {
        args: [
          ...["bundle", "--quiet", "--no-lock", "--minify", "--code-splitting"],
          ...["--platform", "deno", "--config", `supabase/functions/${name}/deno.json`],
          ...["--outdir", out, `supabase/functions/${name}/index.ts`],
        ],
        cwd: PROJECT_DIR,
      }).output();
      const kb = built.success ? await readStartKb(out) : NaN;
      if (!built.success) console.error(`NOT MEASURED: the bundle of ${name}`);
      return { name: `code of a start of ${name}`, unit: "kB", value: kb };
    }));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function readStartKb(folder: string): Promise<number> {
  const loaded = new Map<string, number>();
  const load = async (name: string) => {
    if (loaded.has(name)) return;
    loaded.set(name, 0);
    const text = await Deno.readTextFile(join(folder, name));
    loaded.set(name, text.length);
    for (const [, imported] of text.matchAll(STATIC_IMPORT)) await load(imported!);
  };
  await load(ENTRY);
  return loaded.values().reduce((sum, length) => sum + length, 0) / 1000;
}
