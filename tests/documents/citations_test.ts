/**
 * Whatever comments and documents cite exists: sections, decisions, promises, documents, and the
 * targets of the benchmark.
 */

import assert from "node:assert/strict";
import {
  decisionCitations,
  documentCitations,
  promiseCitations,
  sectionCitations,
  securityParts,
} from "../support/documents/citations.ts";
import { headings, numberedSection } from "../support/documents/markdown.ts";
import { projectFiles, readProjectFile } from "../support/documents/project_files.ts";

const SOURCES = [".ts", ".tsx", ".sql", ".sh", ".css", ".html", ".md", ".toml", ".yaml", "/run"];
/** Documents that do not stand in docs/, by their names. */
const ELSEWHERE = new Set(["introduction"]);

const files = await projectFiles(SOURCES);
const texts = new Map<string, string>();
for (const path of files) {
  // These files hold citations that lead nowhere on purpose.
  if (path !== "tests/documents/citation_forms_test.ts") {
    texts.set(path, await readProjectFile(path));
  }
}

/** Faults of all files, each with its path. */
function faultsOf(judge: (text: string, path: string) => string[]): string[] {
  return [...texts].flatMap(([path, text]) =>
    judge(text, path).map((fault) => `${path}: ${fault}`)
  );
}

Deno.test("every section that is cited exists, and the item in it", () => {
  let count = 0;
  const faults = faultsOf((text) =>
    sectionCitations(text).flatMap(({ document, section, item, text: around }) => {
      count++;
      const page = texts.get(`docs/${document}.md`);
      if (page === undefined) return [`no document for "${around}"`];
      const part = numberedSection(page, section);
      if (part === null) return [`docs/${document}.md has no section ${section}: "${around}"`];
      const has_item = item === null || new RegExp(`^${item}\\. `, "m").test(part);
      return has_item ? [] : [`docs/${document}.md §${section} has no item ${item}: "${around}"`];
    })
  );
  assert.deepEqual(faults, []);
  assert.ok(count > 100, `${count} citations were found`);
});

Deno.test("every part of docs/security.md that is cited by name is there", () => {
  const page = texts.get("docs/security.md")!.toLowerCase();
  assert.deepEqual(
    faultsOf((text) =>
      securityParts(text).filter((part) => !page.includes(`| ${part.toLowerCase()}`))
        .map((part) => `docs/security.md has no part "${part}"`)
    ),
    [],
  );
});

Deno.test("every decision that is cited exists", () => {
  const known = new Set(
    files.flatMap((path) => /^docs\/decisions\/(\d{4})-/.exec(path)?.[1] ?? []),
  );
  assert.deepEqual(
    faultsOf((text) =>
      decisionCitations(text).filter((number) => !known.has(number))
        .map((number) => `no decision ${number}`)
    ),
    [],
  );
});

Deno.test("every promise that is cited stands in docs/reliability.md", () => {
  const page = texts.get("docs/reliability.md")!;
  assert.deepEqual(
    faultsOf((text) =>
      promiseCitations(text).filter((promise) => !new RegExp(`^\\| ${promise} `, "m").test(page))
        .map((promise) => `no promise ${promise}`)
    ),
    [],
  );
});

Deno.test("every document that is named exists", () => {
  const known = new Set(
    files.filter((path) => path.endsWith(".md")).flatMap((path) => {
      const name = path.replace(/^docs\//, "").replace(/\.md$/, "");
      return [name, name.split("/").at(-1)!];
    }),
  );
  assert.deepEqual(
    faultsOf((text) =>
      documentCitations(text).filter((name) => !known.has(name) && !ELSEWHERE.has(name))
        .map((name) => `no document ${name}.md`)
    ),
    [],
  );
});

Deno.test('"performance targets" leads to docs/benchmarks.md', () => {
  assert.ok(headings(texts.get("docs/benchmarks.md")!).includes("Targets"));
});
