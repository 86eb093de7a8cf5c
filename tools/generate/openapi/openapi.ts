/**
 * Writes the OpenAPI document as two files: docs/openapi.json for readers and tools, and
 * shared/http/openapi_document.ts, which the functions serve. A deployment contains only imported
 * files, so the second file is a module with the packed document.
 */

import stringify from "json-stringify-pretty-compact";
import { gzipSync } from "node:zlib";
import { unpackDocument } from "../../../shared/http/openapi_route.ts";
import { buildDocument } from "./document.ts";
import type { Examples } from "./examples.ts";

/** For readers and for `git diff`: an object or a list stands on one line if it fits. */
const FORM = { indent: 1, maxLength: 200 };

export async function renderDocument(examples?: Examples): Promise<string> {
  return `${stringify(await buildDocument(examples), FORM)}\n`;
}

/** Returns the text of shared/http/openapi_document.ts. */
export async function renderServedModule(): Promise<string> {
  const packed = gzipSync(await servedText(), { level: 9 }).toString("base64");
  return `/**
 * docs/openapi.json in one line, gzipped, as base64: written by "deno task generate". Loaded by the
 * first request for it only.
 */

// deno-fmt-ignore
export const OPENAPI_GZIP = "${packed}";
`;
}

const PACKED = /(?<=^export const OPENAPI_GZIP = ")[^"]+/m;

/** Whether a module serves the document. Versions of zlib can pack the same text differently. */
export async function isServedModule(module: string): Promise<boolean> {
  const [packed] = PACKED.exec(module) ?? [""];
  const unpacked = await unpackDocument(packed).catch(() => "");
  const frame = (text: string) => text.replace(PACKED, "");
  return unpacked === await servedText() && frame(module) === frame(await renderServedModule());
}

async function servedText(): Promise<string> {
  return JSON.stringify(await buildDocument());
}
