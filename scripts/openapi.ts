/**
 * `deno task openapi` writes the OpenAPI document: docs/openapi.json for readers and tools, and
 * shared/http/openapi_document.ts, the same as a text that the functions serve (a deployment takes
 * along only what is imported). `deno task openapi --check` writes nothing and fails when a file says
 * something else.
 */

import { fileURLToPath } from "node:url";
import { buildDocument } from "./openapi/document.ts";
import { diffLines } from "./schema_dump.ts";

const DOCUMENT_FILE = fileURLToPath(new URL("../docs/openapi.json", import.meta.url));
const MODULE_FILE = fileURLToPath(
  new URL("../shared/http/openapi_document.ts", import.meta.url),
);

if (import.meta.main) Deno.exit(await main(Deno.args));

async function main(args: readonly string[]): Promise<number> {
  const document = await buildDocument();
  const files = [
    [DOCUMENT_FILE, `${JSON.stringify(document, null, 2)}\n`],
    [MODULE_FILE, renderModule(JSON.stringify(document))],
  ] as const;
  if (!args.includes("--check")) {
    for (const [path, text] of files) {
      await Deno.writeTextFile(path, text);
      console.log(`Written: ${path}`);
    }
    return 0;
  }
  for (const [path, text] of files) {
    const committed = await Deno.readTextFile(path).catch(() => "");
    if (committed === text) continue;
    if (path === DOCUMENT_FILE) console.error(diffLines(committed, text));
    console.error(`${path} is not what the code makes: run "deno task openapi"`);
    return 1;
  }
  console.log("The OpenAPI document is what the code makes");
  return 0;
}

function renderModule(text: string): string {
  const literal = text.replaceAll("\\", "\\\\").replaceAll("'", "\\'");
  return `/**
 * The OpenAPI document as JSON text: written by "deno task openapi", compared by
 * "deno task openapi --check". Loaded by the first request for it only.
 */

// deno-fmt-ignore
export const OPENAPI_DOCUMENT = '${literal}';
`;
}
