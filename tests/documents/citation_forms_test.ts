/** citations.ts and markdown.ts find every form of a citation, an anchor and a link. */

import assert from "node:assert/strict";
import {
  decisionCitations,
  documentCitations,
  promiseCitations,
  sectionCitations,
  securityParts,
} from "../support/documents/citations.ts";
import { anchors, links } from "../support/documents/markdown.ts";

/** A text, and the document, section and item of each of its citations. */
const SECTIONS: [text: string, ...string[]][] = [
  ["contract §4", "contract 4 null"],
  ["interface §6.3", "interface 6 3"],
  ["(interface §8, rule 1)", "interface 8 1"],
  ["security design §1, fact 3", "security 1 3"],
  ["contract §5 and §6", "contract 5 null", "contract 6 null"],
  ["/** Ends with\n * contract\n * §9 */", "contract 9 null"],
  ["-- the contract's order of\n-- precedence (§6)", "contract 6 null"],
  ["RFC 9110 §10.2.3", ""],
  ["RFC 2104 §2, contract §4", "contract 4 null"],
  ["see §3", " 3 null"],
];

for (const [text, ...expected] of SECTIONS) {
  Deno.test(`sectionCitations() ${JSON.stringify(text)}`, () => {
    const found = sectionCitations(text);
    assert.deepEqual(
      found.map(({ document, section, item }) => `${document} ${section} ${item}`),
      expected.filter((citation) => citation !== ""),
    );
  });
}

Deno.test("securityParts() finds parts after a section, a file and in quotes", () => {
  const text =
    'security §2, bad JSON). security.md, forged deliveries). security design "card numbers".';
  assert.deepEqual(securityParts(text), ["bad JSON", "forged deliveries", "card numbers"]);
});

Deno.test("decisionCitations() finds decisions by both names", () => {
  assert.deepEqual(decisionCitations("ADR 0007, decision 0033, ADR\n// 0099"), [
    "0007",
    "0033",
    "0099",
  ]);
});

Deno.test("promiseCitations() finds single promises and lists", () => {
  assert.deepEqual(promiseCitations("promise R12 (security §3: R2, R4, R5)"), [
    "R12",
    "R2",
    "R4",
    "R5",
  ]);
});

Deno.test("documentCitations() finds documents with and without their folder", () => {
  assert.deepEqual(documentCitations("security.md §2, docs/nowhere.md, x/README.md"), [
    "security",
    "nowhere",
  ]);
});

Deno.test("anchors() equal those of GitHub", () => {
  const document = "# A `b` c\n## 2. Threats, defences\n## Again\n## Again\n```\n# none\n```\n";
  assert.deepEqual([...anchors(document)], ["a-b-c", "2-threats-defences", "again", "again-1"]);
});

Deno.test("links() ignores code", () => {
  const document = "[a](b.md#c) `[no](link)`\n```\n[no](link)\n```\n";
  assert.deepEqual(links(document), [{ target: "b.md#c", line: 1 }]);
});
