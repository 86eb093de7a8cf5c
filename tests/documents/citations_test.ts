/**
 * Every citation in comments and documents leads to something that exists: sections, decisions,
 * promises, documents, and the targets of the benchmark.
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
/** The names of documents outside of docs/. */
const ELSEWHERE = new Set(["introduction"]);

const files = await projectFiles(SOURCES);
const texts = new Map<string, string>();
for (const path of files) {
  // This file contains citations that lead nowhere on purpose.
  if (path !== "tests/documents/citation_forms_test.ts") {
    texts.set(path, await readProjectFile(path));
  }
}

/** The faults of all files, each with the path. */
function faultsOf(judge: (text: string, path: string) => string[]): string[] {
  return [...texts].flatMap(([path, text]) =>
    judge(text, path).map((fault) => `${path}: ${fault}`)
  );
}

Deno.test("every cited section exists, with its cited item", () => {
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

Deno.test("every part of docs/security.md that is cited by name exists", () => {
  const page = texts.get("docs/security.md")!.toLowerCase();
  assert.deepEqual(
    faultsOf((text) =>
      securityParts(text).filter((part) => !page.includes(`| ${part.toLowerCase()}`))
        .map((part) => `docs/security.md has no part "${part}"`)
    ),
    [],
  );
});

Deno.test("decisions are numbered without a gap, and each begins with its number", () => {
  const paths = files.filter((path) => path.startsWith("docs/decisions/")).sort();
  const expected = paths.map((_, index) => String(index + 1).padStart(4, "0"));
  assert.deepEqual(paths.map((path) => path.slice("docs/decisions/".length).slice(0, 4)), expected);
  assert.deepEqual(paths.map((path) => /^# (\d{4})\. /.exec(texts.get(path)!)?.[1]), expected);
});

Deno.test("every cited decision exists", () => {
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

Deno.test("every cited promise is in docs/reliability.md", () => {
  const page = texts.get("docs/reliability.md")!;
  assert.deepEqual(
    faultsOf((text) =>
      promiseCitations(text).filter((promise) => !new RegExp(`^\\| ${promise} `, "m").test(page))
        .map((promise) => `no promise ${promise}`)
    ),
    [],
  );
});

Deno.test("every named document exists", () => {
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

Deno.test('docs/benchmarks.md has the section that "performance targets" means', () => {
  assert.ok(headings(texts.get("docs/benchmarks.md")!).includes("Targets"));
});
