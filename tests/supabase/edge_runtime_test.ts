/**
 * The functions' sources do not use features that Supabase's edge runtime lacks or that the
 * functions must not use there: workers, `vm`, other programs, and HTTP calls, with which one
 * function could call another. Webhooks use sockets (ADR 0016), and only connectors call providers.
 */

import assert from "node:assert/strict";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const FOLDERS = ["shared", "supabase/functions"];
/** A pattern to search for, and a line that it must match. */
const ABSENT: readonly [what: string, pattern: RegExp, line: string][] = [
  ["a worker", /\bnew (Shared)?Worker\b/, 'new Worker(new URL("x.ts", import.meta.url))'],
  [
    "a module that is missing there or uses HTTP",
    /\b(from|import)[ (]*["'](node:)?(vm|worker_threads|child_process|cluster|https?|http2)["']/,
    'import { runInNewContext } from "node:vm";',
  ],
  ["another program", /\bDeno\.(Command|run)\b/, 'new Deno.Command("ls")'],
  ["a call over HTTP", /(?<![\w.])(globalThis\.)?fetch\(/, "await fetch(url)"],
];

/** Connectors call providers, through the span of a call. */
const CALLS = /\/shared\/(connectors\/|core\/tracing\.ts$)/;

for (const [what, pattern, line] of ABSENT) {
  Deno.test(`the functions' sources do not use ${what}`, async () => {
    assert.match(line, pattern);
    const found: string[] = [];
    let files = 0;
    for (const folder of FOLDERS) {
      for await (const path of sourcesBelow(`${ROOT}${folder}`)) {
        files++;
        if (what === "a call over HTTP" && CALLS.test(path)) continue;
        const lines = (await Deno.readTextFile(path)).split("\n");
        lines.forEach((text, index) => {
          if (pattern.test(text)) {
            found.push(`${relative(ROOT, path)}:${index + 1}: ${text.trim().slice(0, 100)}`);
          }
        });
      }
    }
    assert.ok(files > 50);
    assert.deepEqual(found, []);
  });
}

async function* sourcesBelow(folder: string): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (isDirectory) yield* sourcesBelow(`${folder}/${name}`);
    else if (name.endsWith(".ts")) yield `${folder}/${name}`;
  }
}
