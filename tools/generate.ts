/**
 * `deno task generate` writes the files and the blocks of documents that follow from the code, if
 * they need no database (ADR 0011). It prints a line for each file. With `--check` it writes
 * nothing, and fails if a file differs from the code.
 */

import { spawnSync } from "node:child_process";
import { drawChart } from "./bench/chart.ts";
import { renderClientTypes } from "./generate/client_types.ts";
import { renderErrorCatalogue } from "./generate/error_catalogue_sql.ts";
import { renderErrorPage } from "./generate/error_page.ts";
import {
  renderClientReadme,
  renderPackageReadme,
  renderReadme,
  renderTestingPage,
} from "./generate/installation.ts";
import { replaceNameLists } from "./generate/name_lists.ts";
import { isServedModule, renderDocument, renderServedModule } from "./generate/openapi/openapi.ts";

const ROOT = new URL("../", import.meta.url);

interface GeneratedFile {
  path: string;
  /** Returns the text of the file. `committed` is the present text, empty without a file. */
  render(committed: string): string | Promise<string>;
  /** Whether a text is right. For files of which different texts can have the same content. */
  isRight?(committed: string): Promise<boolean>;
}

const GENERATED_FILES: readonly GeneratedFile[] = [
  { path: "packages/client/resources.ts", render: renderClientTypes },
  { path: "docs/errors.md", render: renderErrorPage },
  { path: "supabase/schemas/error_catalogue.sql", render: renderErrorCatalogue },
  ...[
    "migrations/20261124000300_payments",
    "migrations/20261124000700_providers",
    "schemas/bank_orders",
    "schemas/chain_deposits",
    "schemas/erasure",
    "schemas/invariants",
    "schemas/invariants_providers",
    "schemas/invariants_records",
    "schemas/payment_totals",
    "schemas/rails",
    "schemas/sandbox_clock_due",
  ].map((name) => ({ path: `supabase/${name}.sql`, render: replaceNameLists })),
  { path: "README.md", render: renderReadme },
  { path: "docs/testing.md", render: renderTestingPage },
  { path: "packages/client/README.md", render: renderClientReadme },
  { path: "packages/sandbox/README.md", render: renderPackageReadme },
  {
    path: "docs/benchmarks.svg",
    render: async () => drawChart(await Deno.readTextFile(new URL("docs/benchmarks.md", ROOT))),
  },
  { path: "docs/openapi.json", render: () => renderDocument() },
  {
    path: "shared/http/openapi_document.ts",
    render: renderServedModule,
    isRight: isServedModule,
  },
];

if (import.meta.main) Deno.exit(await main(Deno.args));

async function main(args: readonly string[]): Promise<number> {
  const unknown = args.filter((arg) => arg !== "--check");
  if (unknown.length > 0) {
    console.error(`Unknown argument ${unknown[0]}. Usage: deno task generate [--check]`);
    return 2;
  }
  const is_check = args.includes("--check");
  let wrong = 0;
  for (const file of GENERATED_FILES) {
    if (!await generate(file, is_check)) wrong++;
  }
  if (wrong === 0) return 0;
  if (is_check) console.error('Run "deno task generate" and commit the files');
  else await checkTypes();
  return 1;
}

/** Names the tables that lack a row for a new name. */
async function checkTypes(): Promise<void> {
  const args = ["check", "--quiet", "tools/generate.ts"];
  await new Deno.Command(Deno.execPath(), { args, cwd: ROOT, stdout: "inherit" }).spawn().status;
}

/** Writes or checks a file, and prints a line. Returns whether the file is right afterwards. */
async function generate(file: GeneratedFile, is_check: boolean): Promise<boolean> {
  const { path } = file;
  const committed = await Deno.readTextFile(new URL(path, ROOT)).catch(() => "");
  let text: string;
  try {
    text = await file.render(committed);
  } catch (error) {
    // The other files can still be written, and the type check needs packages/client/resources.ts.
    console.error(`Cannot generate ${path}: ${error}`);
    return false;
  }
  if (committed === text || await file.isRight?.(committed)) {
    console.log(`Unchanged: ${path}`);
    return true;
  }
  if (is_check) {
    // A packed file has one long line, so its difference is not readable.
    if (!file.isRight) console.error(difference(path, text));
    console.error(`Differs from the code: ${path}`);
    return false;
  }
  await Deno.writeTextFile(new URL(path, ROOT), text);
  console.log(`Written: ${path}`);
  return true;
}

/** The difference between a file of the project and a text, as Git shows it. */
function difference(path: string, text: string): string {
  const args = ["diff", "--no-index", "--no-color", "--", path, "-"];
  return spawnSync("git", args, { cwd: ROOT, input: text, encoding: "utf8" }).stdout;
}
