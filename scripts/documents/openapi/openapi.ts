/**
 * `deno task openapi` writes the OpenAPI document: docs/openapi.json for readers and tools, and
 * shared/http/openapi_document.ts, the same packed for the functions to serve (a deployment takes along
 * only what is imported). `deno task openapi --check` writes nothing and fails when a file says
 * something else.
 */

import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { unpackDocument } from "../../../shared/http/openapi_route.ts";
import { buildDocument } from "./document.ts";
import { diffLines } from "../../diff_lines.ts";

const DOCUMENT_FILE = fileURLToPath(new URL("../../../docs/openapi.json", import.meta.url));
const MODULE_FILE = fileURLToPath(
  new URL("../../../shared/http/openapi_document.ts", import.meta.url),
);

if (import.meta.main) Deno.exit(await main(Deno.args));

async function main(args: readonly string[]): Promise<number> {
  const document = await buildDocument();
  const readable = `${JSON.stringify(document, null, 2)}\n`;
  const served = JSON.stringify(document);
  if (!args.includes("--check")) {
    for (const [path, text] of [[DOCUMENT_FILE, readable], [MODULE_FILE, renderModule(served)]]) {
      await Deno.writeTextFile(path!, text!);
      console.log(`Written: ${path}`);
    }
    return 0;
  }
  const committed = await Deno.readTextFile(DOCUMENT_FILE).catch(() => "");
  if (committed !== readable) return refuse(DOCUMENT_FILE, diffLines(committed, readable));
  // The module is imported here only, so that a broken one can be replaced. The unpacked text is
  // compared, because versions of zlib can pack it differently.
  const { OPENAPI_GZIP } = await import("../../../shared/http/openapi_document.ts");
  if (await unpackDocument(OPENAPI_GZIP) !== served) return refuse(MODULE_FILE);
  console.log("The OpenAPI document is what the code makes");
  return 0;
}

function refuse(path: string, difference = ""): number {
  console.error(`${difference}\n${path} is not what the code makes: run "deno task openapi"`);
  return 1;
}

function renderModule(text: string): string {
  return `/**
 * docs/openapi.json in one line, gzipped, as base64: written by "deno task openapi", compared by
 * "deno task openapi --check". Loaded by the first request for it only.
 */

// deno-fmt-ignore
export const OPENAPI_GZIP = "${gzipSync(text, { level: 9 }).toString("base64")}";
`;
}
