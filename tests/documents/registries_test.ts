/**
 * No page and no program tells its reader to fetch a package of this project from a registry before
 * it is published: somebody else could publish one of this name, and its code would run at every
 * reader's. `PUBLICATION` says whether one is.
 */

import assert from "node:assert/strict";
import CLIENT from "../../client/package.json" with { type: "json" };
import PACKAGE from "../../package/package.json" with { type: "json" };
import { PUBLICATION } from "../../scripts/publication/publication.ts";
import { projectFiles, readProjectFile } from "../support/documents/project_files.ts";

/** Files whose text a reader can run. Tests have such commands as cases. */
const ENDINGS = [".md", ".ts", ".tsx", ".js", ".mjs", ".py", ".json", ".yml", ".html"];

/** The commands, imports and addresses of a text that fetch the package from a registry. */
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

for (
  const [text, is_found] of [
    ["npx NAME start", true],
    ["npx -y NAME@1.0.0 start", true],
    ["npx --no-install NAME start", false],
    ["`npx\nNAME start`", true],
    ["npm install --save-dev \\\n  NAME", true],
    ["npm i NAME", true],
    ["npm install --save-dev ./vendor/NAME-1.0.0.tgz", false],
    ['command = ["npx", "NAME", "start"]', true],
    ['command = ["npx", "--no-install", "NAME", "start"]', false],
    ["pnpm add -D NAME", true],
    ["bunx NAME", true],
    ['import { startSandbox } from "npm:NAME@1";', true],
    ['import { startSandbox } from "NAME";', false],
    ["deno add jsr:NAME", true],
    ["https://www.npmjs.com/package/NAME", true],
    ['{ "dependencies": { "NAME": "^1.0.0" } }', true],
    ['{ "dependencies": { "NAME": "file:NAME-1.0.0.tgz" } }', false],
    ["path: ~/.cache/NAME\nkey: NAME-1", false],
  ] as const
) {
  for (const { name } of [PACKAGE, CLIENT]) {
    const given = text.replaceAll("NAME", name);
    Deno.test(`"${given}" ${is_found ? "fetches" : "does not fetch"} ${name}`, () => {
      assert.equal(fetchesOf(given, name).length > 0, is_found);
    });
  }
}

Deno.test({
  name: "no page and no program fetches an unpublished package of this project",
  ignore: PUBLICATION.is_published,
  fn: async () => {
    const paths = await projectFiles(ENDINGS);
    const found: string[] = [];
    for (const path of paths.filter((path) => !path.startsWith("tests/"))) {
      const text = await readProjectFile(path);
      for (const { name } of [PACKAGE, CLIENT]) {
        found.push(...fetchesOf(text, name).map((command) => `${path}: ${command}`));
      }
    }
    assert.deepEqual(found, []);
  },
});
