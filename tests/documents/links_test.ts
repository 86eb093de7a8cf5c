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

Deno.test({
  // Somebody else could publish a package of this name, and its code would run at every reader's.
  name: "no document or example fetches a package of this project before it is published",
  ignore: PUBLICATION.is_published,
  async fn() {
    const name = `(?:${PACKAGE.name}|${CLIENT.name})(?![\\w./-])`;
    const fetches = new RegExp(
      `\\b(?:(?:npx|bunx)(?: -y)?|(?:npm|pnpm|yarn|bun) (?:i|install|add)(?: -\\S+)*) ${name}` +
        `|\\b(?:npm|jsr):/?${name}|(?<![\\w/])${name}": "[~^<>=]*\\d`,
    );
    const paths = await projectFiles([".md", ".json", ".js", ".mjs", ".py", ".yml", ".html"]);
    const found: string[] = [];
    for (const path of paths.filter((path) => !path.startsWith("tests/"))) {
      if (fetches.test((await readProjectFile(path)).replace(/\s+/g, " "))) found.push(path);
    }
    assert.deepEqual(found, []);
  },
});
