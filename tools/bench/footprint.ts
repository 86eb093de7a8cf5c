/**
 * The size of each function's minified bundle, with and without the parts that load later, and the
 * CPU time of its import and first response on Deno 2.1.4, the language level of the edge runtime.
 */

import { join } from "node:path";
import type { Figure } from "./measurement.ts";
import { PROJECT_DIR } from "./product.ts";

const FUNCTIONS = ["api-v1-payments", "api-v1-sandbox"];
const EDGE_VERSION = "2.1.4";
/** The file of a bundle that the runtime imports. */
const ENTRY = "index.js";
/** An import of another file of the bundle. Dynamic imports have a parenthesis. */
const STATIC_IMPORT = /\b(?:from|import)"\.\/([^"]+)"/g;
/** Prints the CPU time of import and first response, in milliseconds. */
const PROBE = "cold_start_probe.ts";

/** Figures of both functions. */
interface Footprint {
  figures: Figure[];
  /** Reasons for missing figures. */
  problems: string[];
}

/** Bundles both functions, and imports each `imports` times in a new process. */
export async function measureFootprint(imports: number): Promise<Footprint> {
  const folder = await Deno.makeTempDir({ prefix: "payments-bundle-" });
  const footprint: Footprint = { figures: [], problems: [] };
  try {
    for (const name of FUNCTIONS) {
      const bundle = join(folder, name);
      const built = await run(Deno.execPath(), [
        ...["bundle", "--quiet", "--no-lock", "--minify", "--code-splitting", "--platform", "deno"],
        ...["--config", `supabase/functions/${name}/deno.json`, "--outdir", bundle],
        `supabase/functions/${name}/index.ts`,
      ]);
      if ("problem" in built) {
        footprint.problems.push(`bundle of ${name}: ${built.problem}`);
        continue;
      }
      const files = await readFiles(bundle);
      const all = [...files.values()];
      const kb = (texts: Iterable<string>) => [...texts].reduce((n, t) => n + t.length, 0) / 1000;
      footprint.figures.push(
        { name: `start of ${name}`, unit: "kB", values: [kb(loadedAtStart(files))] },
        { name: `bundle of ${name}`, unit: "kB", values: [kb(all)] },
      );
      const values: number[] = [];
      for (let i = 0; i < imports; i++) {
        const probed = await probe(folder, join(bundle, ENTRY), name);
        if ("problem" in probed) footprint.problems.push(`import of ${name}: ${probed.problem}`);
        else values.push(Number(probed.text));
      }
      footprint.figures.push({
        name: `import and first response of ${name}`,
        unit: "ms CPU",
        values,
      });
    }
    return footprint;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function readFiles(folder: string): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  for await (const { name } of Deno.readDir(folder)) {
    files.set(name, await Deno.readTextFile(join(folder, name)));
  }
  return files;
}

/** Returns the files that the entry imports statically, with the entry. Others load when needed. */
function loadedAtStart(files: ReadonlyMap<string, string>): Iterable<string> {
  const loaded = new Map<string, string>();
  const load = (name: string) => {
    const text = files.get(name);
    if (text === undefined || loaded.has(name)) return;
    loaded.set(name, text);
    for (const [, imported] of text.matchAll(STATIC_IMPORT)) load(imported!);
  };
  load(ENTRY);
  return loaded.values();
}

/** Imports a bundle on the older Deno, without a code cache. */
function probe(folder: string, bundle: string, name: string) {
  return run("npx", [
    ...["-y", `deno@${EDGE_VERSION}`, "run", "--no-lock", "--no-config", "--no-code-cache"],
    ...["-A", join(PROJECT_DIR, "tools/bench", PROBE), `file://${bundle}`, name],
  ], { DENO_DIR: join(folder, "deno"), DENO_NO_UPDATE_CHECK: "1" });
}

async function run(
  program: string,
  args: string[],
  env: Record<string, string> = {},
): Promise<{ text: string } | { problem: string }> {
  try {
    const { success, stdout, stderr } = await new Deno.Command(program, {
      args,
      cwd: PROJECT_DIR,
      env,
      stdin: "null",
    }).output();
    const decoder = new TextDecoder();
    if (!success) return { problem: decoder.decode(stderr).trim().slice(-300) };
    return { text: decoder.decode(stdout).trim() };
  } catch (error) {
    return { problem: String(error) };
  }
}
