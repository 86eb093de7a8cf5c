/**
 * Every link of every document leads to an existing file and heading. Every path that a document
 * names exists.
 */

import assert from "node:assert/strict";
import { posix } from "node:path";
import CLIENT from "../../packages/client/package.json" with { type: "json" };
import PACKAGE from "../../packages/sandbox/package.json" with { type: "json" };
import { PUBLICATION } from "../../tools/publication/publication.ts";
import { anchors, links, proseLines } from "../support/documents/markdown.ts";
import { exists, projectFiles, readProjectFile } from "../support/documents/project_files.ts";

/** A path of the project in backticks. */
const PATH = /`((?:\.ci|apps|docs|examples|packages|shared|supabase|tests|tools)\/[\w./*-]*)`/g;
/** A reader who follows the document creates this file. */
const MADE_BY_READERS = new Set(["supabase/functions/.env"]);

const DOCUMENTS = await projectFiles([".md"]);

Deno.test("every link of a document leads to a file and a heading", async () => {
  const faults: string[] = [];
  for (const path of DOCUMENTS) {
    for (const { target, line } of links(await readProjectFile(path))) {
      if (/^[a-z]+:/i.test(target)) continue;
      const [file, anchor] = target.split("#") as [string, string?];
      const found = file === "" ? path : posix.join(posix.dirname(path), file);
      if (!await exists(found)) faults.push(`${path}:${line}: no file ${found}`);
      else if (anchor !== undefined && !anchors(await readProjectFile(found)).has(anchor)) {
        faults.push(`${path}:${line}: no heading ${found}#${anchor}`);
      }
    }
  }
  assert.deepEqual(faults, []);
});

Deno.test("every path that a document names exists", async () => {
  const faults: string[] = [];
  for (const path of DOCUMENTS) {
    // The changelog names paths of older releases.
    if (path === "CHANGELOG.md") continue;
    for (const [index, text] of proseLines(await readProjectFile(path)).entries()) {
      for (const [, named] of text.matchAll(PATH)) {
        if (MADE_BY_READERS.has(named!) || await exists(named!)) continue;
        faults.push(`${path}:${index + 1}: no ${named}`);
      }
    }
  }
  assert.deepEqual(faults, []);
});

/** The commands, imports and addresses of a text that fetch a package from a registry. */
function fetchesOf(text: string, name: string): string[] {
  const forms = [
    `\\b(?:npx|bunx|pnpx)(?: +(?!--no-install\\b)-\\S+)* +${name}(?![\\w./-])`,
    `\\b(?:npm|pnpm|yarn|bun|deno) +(?:i|install|add|exec|x|dlx)\\b(?: +\\S+)*? +${name}(?![\\w./-])`,
    `\\b(?:npm|jsr):/?${name}\\b`,
    `\\b(?:esm\\.sh|unpkg\\.com|cdn\\.jsdelivr\\.net/npm|npmjs\\.com/package)/${name}\\b`,
    // A dependency in a package.json.
    `(?<![\\w/])${name} *: *[~^<>=]*\\d`,
  ].join("|");
  // A long command goes on in the next line, and Markdown breaks the lines of its code.
  const joined = text.replace(/\\\n\s*/g, " ")
    .replace(/(?<!`)`[^`\n]+\n[^`\n]+`(?!`)/g, (code) => code.replace("\n", " "));
  return joined.split("\n").flatMap((line) => line.replace(/["'`,[\]]/g, " ").match(forms) ?? []);
}

Deno.test({
  // Somebody else could publish a package of this name, and its code would run at every reader's.
  name: "no page and no program fetches a package of this project before it is published",
  ignore: PUBLICATION.is_published,
  async fn() {
    const endings = [".md", ".ts", ".tsx", ".js", ".mjs", ".py", ".json", ".yml", ".html"];
    const found: string[] = [];
    for (const path of await projectFiles(endings)) {
      if (path.startsWith("tests/")) continue;
      const text = await readProjectFile(path);
      for (const { name } of [PACKAGE, CLIENT]) {
        found.push(...fetchesOf(text, name).map((command) => `${path}: ${command}`));
      }
    }
    assert.deepEqual(found, []);
  },
});
