/**
 * Reads the shell blocks that tests run from a document, with their responses, and reads its
 * tables. Tests run the README and docs/tutorial.md.
 *
 * The convention: tests run `sh` blocks and no `console` blocks. The response of an `sh` block is
 * the next block, if that is `json`, `http` or `text`. A block without a response must print
 * nothing.
 */

/** Languages of response blocks. */
type ResponseLanguage = "json" | "http" | "text";

/** A fenced code block. */
interface CodeBlock {
  language: string;
  text: string;
  /** The number of its first line in the document. The first line of the document is 1. */
  line: number;
}

/** A shell block that tests run. */
export interface ShellExample {
  line: number;
  script: string;
  response: { language: ResponseLanguage; text: string; line: number } | null;
}

const RESPONSE_LANGUAGES: readonly string[] = ["json", "http", "text"] satisfies ResponseLanguage[];

/** All fenced blocks, in order. A block in a list has the text without the indentation. */
export function codeBlocks(document: string): CodeBlock[] {
  const blocks: CodeBlock[] = [];
  let open: CodeBlock | null = null;
  let indentation = "";
  for (const [index, line] of document.split("\n").entries()) {
    const fence = /^(\s*)```(\S*)/.exec(line);
    if (fence && open) {
      blocks.push(open);
      open = null;
    } else if (fence) {
      indentation = fence[1]!;
      open = { language: fence[2]!, text: "", line: index + 2 };
    } else if (open) {
      open.text += `${line.startsWith(indentation) ? line.slice(indentation.length) : line}\n`;
    }
  }
  return blocks;
}

/** Returns the shell blocks that tests run, in order, each with its response. */
export function shellExamples(document: string): ShellExample[] {
  const blocks = codeBlocks(document);
  return blocks.flatMap(({ language, text: script, line }, index) => {
    if (language !== "sh") return [];
    const next = blocks[index + 1];
    const response = next && RESPONSE_LANGUAGES.includes(next.language)
      ? { ...next, language: next.language as ResponseLanguage }
      : null;
    return [{ line, script, response }];
  });
}

/**
 * Returns the rows of every table whose first header cell is `header`, each as its cells' texts.
 * Throws if there is no such table.
 */
export function tableRows(document: string, header: string): string[][] {
  const tables = document.split(/\n(?!\|)/)
    .map((part) => part.split("\n").filter((line) => line.startsWith("|")).map(cellsOf))
    .filter((table) => table[0]?.[0] === header);
  if (tables.length === 0) {
    throw new Error(`The document has no table that begins with "${header}"`);
  }
  return tables.flatMap((table) => table.slice(2));
}

/** The texts in backticks of a cell. */
export function codeTexts(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, text]) => text!);
}

function cellsOf(line: string): string[] {
  return line.split("|").slice(1, -1).map((cell) => cell.trim());
}
