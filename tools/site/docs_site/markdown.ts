/**
 * Renders a Markdown file of the project as a page: HTML with anchors as Git hosts make them,
 * highlighted code, and the texts of its sections for the search.
 */

import hljs from "highlight.js/lib/common";
import { Marked, type Token, type Tokens } from "marked";
import { escapeHtml } from "./html.ts";

/** A heading with the text up to the next one. */
export interface PageSection {
  /** The anchor; empty for the beginning of the page. */
  id: string;
  title: string;
  depth: number;
  text: string;
}

export interface RenderedPage {
  /** The text of the first heading. */
  title: string;
  /** The first paragraph as text. */
  description: string;
  html: string;
  sections: PageSection[];
}

/** The functions of the site that a page calls while it is rendered. */
interface PageLinks {
  /** Returns the link of the site for a link or picture of the file. */
  resolve(target: string): string;
  drawDiagram(source: string, caption: string): string;
}

/** The languages of the blocks that are named differently here. */
const LANGUAGES: Readonly<Record<string, string>> = {
  console: "bash",
  sh: "bash",
  html: "xml",
  jsonc: "json",
  toml: "ini",
};
/** The deepest heading that begins a section. */
const SECTION_DEPTH = 3;

type Anchored = Tokens.Heading & { id?: string };

export function renderMarkdown(markdown: string, links: PageLinks): RenderedPage {
  const marked = new Marked({ renderer: rendererFor(links) });
  const tokens = marked.lexer(markdown);
  setAnchors(tokens);
  const sections = sectionsOf(tokens);
  const description = tokens.find(({ type }) => type === "paragraph");
  return {
    title: sections.find(({ id }) => id !== "")?.title ?? "",
    description: description === undefined ? "" : plainText(description),
    html: frameTables(marked.parser(tokens)),
    sections,
  };
}

export function renderSource(text: string, name: string): string {
  return codeBlock(text, name.split(".").at(-1)!);
}

function rendererFor({ resolve, drawDiagram }: PageLinks) {
  let caption = "";
  return {
    // deno-lint-ignore no-explicit-any
    heading(this: any, token: Tokens.Heading): string {
      const { id = "", depth } = token as Anchored;
      caption = plainText(token);
      const inner = this.parser.parseInline(token.tokens);
      const label = escapeHtml(`Link to “${caption}”`);
      const link = depth === 1
        ? ""
        : ` <a class="anchor" href="#${id}" aria-label="${label}">#</a>`;
      return `<h${depth} id="${id}">${inner}${link}</h${depth}>\n`;
    },
    // deno-lint-ignore no-explicit-any
    link(this: any, { href, tokens }: Tokens.Link): string {
      return `<a href="${escapeHtml(resolve(href))}">${this.parser.parseInline(tokens)}</a>`;
    },
    image({ href, text }: Tokens.Image): string {
      return `<img src="${escapeHtml(resolve(href))}" alt="${escapeHtml(text)}" loading="lazy">`;
    },
    code({ text, lang = "" }: Tokens.Code): string {
      const [language = ""] = lang.split(" ");
      return language === "mermaid" ? drawDiagram(text, caption) : codeBlock(text, language);
    },
    // Comments are for those who change the file.
    html: ({ text }: Tokens.HTML | Tokens.Tag): string => text.startsWith("<!--") ? "" : text,
  };
}

/** A block of code. It can be reached with the keyboard, because wide blocks scroll. */
function codeBlock(text: string, name: string): string {
  const language = LANGUAGES[name] ?? name;
  const code = hljs.getLanguage(language)
    ? hljs.highlight(text, { language, ignoreIllegals: true }).value
    : escapeHtml(text);
  return `<div class="code"><pre tabindex="0"><code>${code}</code></pre></div>\n`;
}

/** Frames each table, so that a wide one scrolls alone and can be reached with the keyboard. */
function frameTables(html: string): string {
  return html
    .replaceAll(
      "<table>",
      '<div class="table" role="group" aria-label="Table" tabindex="0"><table>',
    )
    .replaceAll("</table>", "</table></div>");
}

/** Gives each heading the anchor that Git hosts derive from it. */
function setAnchors(tokens: readonly Token[]): void {
  const used = new Map<string, number>();
  for (const token of tokens) {
    if (token.type !== "heading") continue;
    const anchor = plainText(token).toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "").replaceAll(" ", "-");
    const earlier = used.get(anchor) ?? 0;
    used.set(anchor, earlier + 1);
    (token as Anchored).id = earlier === 0 ? anchor : `${anchor}-${earlier}`;
  }
}

function sectionsOf(tokens: readonly Token[]): PageSection[] {
  const sections: PageSection[] = [{ id: "", title: "", depth: 0, text: "" }];
  for (const token of tokens) {
    if (token.type === "heading" && token["depth"] <= SECTION_DEPTH) {
      const { id = "", depth } = token as Anchored;
      sections.push({ id, title: plainText(token), depth, text: "" });
    } else {
      sections.at(-1)!.text += ` ${plainText(token)}`;
    }
  }
  return sections.map((section) => ({
    ...section,
    text: section.text.replace(/\s+/g, " ").trim(),
  }));
}

function plainText(token: Token): string {
  switch (token.type) {
    case "html":
    case "hr":
      return "";
    case "table": {
      const { header, rows } = token as Tokens.Table;
      return [header, ...rows].flat().map((cell) => cell.tokens.map(plainText).join("")).join(" ");
    }
    case "list":
      return (token as Tokens.List).items.map(plainText).join(" ");
  }
  if ("tokens" in token && token.tokens) {
    const separator = token.type === "list_item" || token.type === "blockquote" ? " " : "";
    return token.tokens.map(plainText).join(separator);
  }
  return "text" in token ? String(token["text"]).replaceAll("\n", " ") : "";
}
