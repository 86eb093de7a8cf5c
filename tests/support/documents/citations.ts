/**
 * The citations in comments and documents: sections ("contract §4", "interface §8, rule 1"),
 * decisions ("ADR 0007"), promises ("promise R13"), documents by name, and the targets of the
 * benchmark.
 */

/** A citation of a section. */
interface SectionCitation {
  /** The document in docs/, such as `contract`. */
  document: string;
  section: string;
  /** The item of a numbered list in the section; null: the section as a whole. */
  item: string | null;
  text: string;
}

/** Documents whose sections are cited by number; outside standards are cited in the same way. */
const SOURCE = /\b(RFC \d+|contract|interface|architecture|security)\b|§ ?(\d+)(?:\.(\d+))?/gi;
const ITEM = /^, (?:rule|fact|step) (\d+)/;

/** Returns a file's text on one line, without comment markers. */
function withoutMarks(text: string): string {
  return text.split("\n").map((line) => line.replace(/^\s*(?:\/?\*+|\/\/|--|#(?!#)|>)\s?/, ""))
    .join(" ");
}

/**
 * Returns every `§` of a text with the document whose name precedes it most closely. Leaves out the
 * sections of an RFC. The document of a `§` without a name before it is "".
 */
export function sectionCitations(file: string): SectionCitation[] {
  const text = withoutMarks(file);
  const citations: SectionCitation[] = [];
  let named = "";
  for (const match of text.matchAll(SOURCE)) {
    const [all, source, section, subsection] = match;
    if (source !== undefined) {
      named = source.toLowerCase();
      continue;
    }
    if (named.startsWith("rfc")) continue;
    const end = match.index + all.length;
    const item = subsection ?? ITEM.exec(text.slice(end))?.[1] ?? null;
    const around = text.slice(Math.max(0, match.index - 40), end + 10).trim();
    citations.push({ document: named, section: section!, item, text: around });
  }
  return citations;
}

/** Returns the rows of the security page that a text cites: `security §2, bad JSON`. */
export function securityParts(file: string): string[] {
  const text = withoutMarks(file);
  const listed = text.matchAll(
    /\bsecurity(?: design)?(?: §\d+|\.md), (?!fact \d)([a-z][A-Za-z ]*)/g,
  );
  const quoted = text.matchAll(/\bsecurity design "([^"]+)"/g);
  return [...listed, ...quoted].map(([, part]) => part!.trim());
}

/** Numbers of the decisions that a text cites. */
export function decisionCitations(file: string): string[] {
  const text = withoutMarks(file);
  return [...text.matchAll(/\b(?:ADRs?|[Dd]ecisions?) \[?(\d{4})\b/g)].map(([, number]) => number!);
}

/** The promises that a text cites. */
export function promiseCitations(file: string): string[] {
  const text = withoutMarks(file);
  const cited = text.matchAll(/\b(?:[Pp]romises?|security §3[,:]) ((?:R\d+(?:, | and )?)+)/g);
  return [...cited].flatMap(([, list]) => list!.match(/R\d+/g)!);
}

/** The documents of docs/ that a text names, with or without the folder. */
export function documentCitations(file: string): string[] {
  const named = file.matchAll(
    /(?<![\w/.-])(?:docs\/)?([a-z_]+(?:\/\d{4}[\w-]*)?)\.md\b/g,
  );
  return [...named].map(([, name]) => name!);
}
