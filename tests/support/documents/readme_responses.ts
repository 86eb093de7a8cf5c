/**
 * Compares the output of a document's shell block with the response that stands below the block.
 * Both must be equal except for names that differ from run to run: ids, times, keys and the base
 * URL. Such a name must have the same form. Where the document repeats a name, the output must
 * repeat the corresponding name.
 *
 * `…` stands for further members of an object, elements of a list, or headers.
 */

import assert from "node:assert/strict";
import type { ShellExample } from "./readme_document.ts";

/** The values that differ from run to run. */
const NAME = new RegExp(
  [
    "(?<id>\\b(?:pay|re|dp|tr|evt|whe|whd|ins|le|txn|key|req|env|pac)_[0-9a-z]{26}\\b)",
    "(?<time>\\b\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z)",
    "(?<page>http://127\\.0\\.0\\.1:\\d+/pay/#bank/[0-9a-f]{48})",
    "(?<base_url>http://127\\.0\\.0\\.1:\\d+/functions/v1)",
    "(?<key>\\bsk_(?:test|live)_[0-9A-Za-z]{49}\\b)",
    "(?<secret>\\bwhsec_[0-9A-Za-z+/=]{44})",
    "(?<process>\\bprocess \\d+)",
    "(?<uuid>\\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\\b)",
  ].join("|"),
  "g",
);
const MORE = "…";

/** Maps each name of this run to the documents' name, one to one. */
export class NamesOfRun {
  readonly #written = new Map<string, string>();
  readonly #taken = new Set<string>();

  /** Returns the printed text with the documents' names. First maps new names of `written`. */
  translate(written: string, printed: string): string {
    const known = [...written.matchAll(NAME)];
    const found = [...printed.matchAll(NAME)];
    for (const [index, name] of found.entries()) {
      const other = known[index];
      if (other && kindOf(name) === kindOf(other)) this.#learn(other[0], name[0]);
    }
    return printed.replace(NAME, (name) => this.#written.get(name) ?? name);
  }

  #learn(written: string, printed: string): void {
    if (this.#written.has(printed) || this.#taken.has(written)) return;
    this.#written.set(printed, written);
    this.#taken.add(written);
  }
}

/**
 * Throws an `AssertionError` with the difference when the output is not the document's response.
 * @param path the document, for the message
 */
export function assertResponse(
  path: string,
  { line, response }: ShellExample,
  printed: string,
  names: NamesOfRun,
): void {
  const message = (part: string) => `${path}, ${part} below the block at line ${line}`;
  if (response === null) {
    assert.equal(printed, "", message("no output is shown"));
    return;
  }
  if (response.language === "text") {
    const written = response.text.trim();
    assert.equal(names.translate(written, printed.trim()), written, message("the text"));
    return;
  }
  const [written_head, written_body] = response.language === "http"
    ? splitMessage(response.text)
    : ["", response.text];
  const [head, body] = response.language === "http" ? splitMessage(printed) : ["", printed];
  assertHead(written_head, head, names, message("the head"));
  if (written_body.trim() === "") {
    assert.equal(body, "", message("no body is shown"));
    return;
  }
  const written = JSON.parse(quoteMore(written_body));
  assert.deepEqual(project(written, JSON.parse(body), names), written, message("the body"));
}

function splitMessage(text: string): [head: string, body: string] {
  const lf_only = text.replaceAll("\r\n", "\n");
  const end = lf_only.indexOf("\n\n");
  return end === -1 ? [lf_only.trimEnd(), ""] : [lf_only.slice(0, end), lf_only.slice(end + 2)];
}

/** Asserts the status line and every header that the document shows, in any letter case. */
function assertHead(written: string, printed: string, names: NamesOfRun, message: string): void {
  const lines = written.split("\n");
  const wanted = lines.filter((line) => line !== MORE);
  const wanted_names = new Set(wanted.map(headerName));
  const shown = printed.split("\n")
    .filter((line) => !lines.includes(MORE) || wanted_names.has(headerName(line)));
  const sorted = (head: string[]) => [head[0], ...head.slice(1).map(lowerName).sort()].join("\n");
  const expected = sorted(wanted);
  assert.equal(names.translate(expected, sorted(shown)), expected, message);
}

function headerName(line: string): string {
  return line.startsWith("HTTP/") ? "" : line.split(":", 1)[0]!.toLowerCase();
}

function lowerName(line: string): string {
  return headerName(line) + line.slice(headerName(line).length);
}

/** Returns the printed value with the documents' names, without the parts for `…`. */
function project(written: unknown, printed: unknown, names: NamesOfRun): unknown {
  if (typeof written === "string" && typeof printed === "string") {
    return names.translate(written, printed);
  }
  if (Array.isArray(written) && Array.isArray(printed)) {
    const is_open = written.at(-1) === MORE;
    const shown = is_open ? printed.slice(0, written.length - 1) : printed;
    const elements = shown.map((element, i) => project(written[i], element, names));
    return is_open ? [...elements, MORE] : elements;
  }
  if (!isRecord(written) || !isRecord(printed)) return printed;
  const is_open = Object.hasOwn(written, MORE);
  const members = Object.entries(printed)
    .filter(([name]) => !is_open || Object.hasOwn(written, name))
    .map(([name, member]) => [name, project(written[name], member, names)]);
  return { ...Object.fromEntries(members), ...(is_open && { [MORE]: MORE }) };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Makes a response valid JSON: each `…` becomes a member of that name, or an element. */
function quoteMore(text: string): string {
  const open: string[] = [];
  return text.replace(/"(?:[^"\\]|\\.)*"|[{}[\]…]/g, (token) => {
    if (token === "{" || token === "[") open.push(token);
    if (token === "}" || token === "]") open.pop();
    if (token !== MORE) return token;
    return open.at(-1) === "{" ? `"${MORE}": "${MORE}"` : `"${MORE}"`;
  });
}

function kindOf(match: RegExpExecArray): string | undefined {
  const [kind, text] = Object.entries(match.groups!).find(([, text]) => text !== undefined)!;
  return kind === "id" ? text!.split("_")[0] : kind;
}
