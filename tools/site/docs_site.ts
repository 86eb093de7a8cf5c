/**
 * Builds the pages of the documentation from the Markdown files of the project, in memory: marked
 * renders them, highlight.js colours their code, MiniSearch indexes them. Links are relative, so
 * any host can serve the files at any path (ADR 0012).
 */

import MiniSearch from "minisearch";
import { CONSOLE, DOCS_HEADERS, fileOf, readAssets } from "./assets.ts";
import { bundleScript } from "./bundle_script.ts";
import { drawDiagram } from "./docs_site/diagram.ts";
import {
  type NavigationSection,
  type PageContent,
  type PageFrame,
  renderPage,
} from "./docs_site/page_html.ts";
import { type ProjectFile, readProjectPages } from "./docs_site/project_pages.ts";
import {
  EXCERPT_LENGTH,
  SEARCH_OPTIONS,
  type SearchedSection,
} from "./docs_site/search_options.ts";
import { addressOf, DECISIONS, HOME, OTHER_PAGES, SECTIONS } from "./docs_site/site_map.ts";
import type { StaticFile, StaticSite } from "./static_site.ts";

const OWN = new URL("docs_site/", import.meta.url);
/**
 * Builds the pages.
 * @param console_url URL of the console, relative to the folder of the site; null without one
 * @throws {Error} if a page links to a file that the project does not have
 */
export async function buildDocsSite(console_url: string | null): Promise<StaticSite> {
  const files = new Map<string, StaticFile>();
  const [sources, script, own, shared] = await Promise.all([
    readProjectPages((source, caption, address) => {
      const { html, pictures } = drawDiagram(source, caption, address);
      for (const [name, body] of pictures) files.set(name, fileOf(name, body));
      return html;
    }),
    bundleScript("tools/site/docs_site/page.ts"),
    readAssets(OWN, ["bar.css", "docs.css", "theme.js"]),
    readAssets(CONSOLE, ["theme.css", "icon.svg", "geist.woff2"]),
  ]);
  const frame: PageFrame = { navigation: navigationOf(sources), console_url };
  const add = (name: string, body: StaticFile["body"]) => files.set(name, fileOf(name, body));
  for (const { address, path, page, markdown, bytes } of sources) {
    if (page !== null) add(address, renderPage({ ...page, address }, frame));
    if (markdown !== null) add(address.replace(/\.html$/, ".md"), markdown);
    if (bytes !== null) files.set(address, fileOf(path, bytes));
  }
  add("page.js", script);
  add("search.json", searchIndex(sources));
  add("llms.txt", llmsText(sources, frame.navigation));
  for (const [name, file] of [...own, ...shared]) files.set(name, file);
  return { files, headers: DOCS_HEADERS };
}

/** The sections of the site map, the decisions, and the pages of `docs/` that no section names. */
function navigationOf(files: readonly ProjectFile[]): NavigationSection[] {
  const named = new Set(SECTIONS.flatMap(({ pages }) => pages.map(([path]) => path)));
  const rest = files
    .filter(({ path, kind }) => kind === "page" && path.startsWith("docs/") && !named.has(path))
    .sort((a, b) => a.path < b.path ? -1 : 1);
  const linksTo = (pages: readonly ProjectFile[]) =>
    pages.map(({ address, page }) => ({ address, label: page!.title }));
  const isDecision = ({ path }: ProjectFile) => path.startsWith(DECISIONS.folder);
  return [
    ...SECTIONS.map(({ title, pages }) => ({
      title,
      links: pages.map(([path, label]) => ({ address: addressOf(path, "page"), label })),
      is_folded: false,
    })),
    {
      title: OTHER_PAGES,
      links: linksTo(rest.filter((file) => !isDecision(file))),
      is_folded: false,
    },
    { title: DECISIONS.title, links: linksTo(rest.filter(isDecision)), is_folded: true },
  ].filter(({ links }) => links.length > 0);
}

function searchIndex(files: readonly ProjectFile[]): string {
  const index = new MiniSearch<SearchedSection>(SEARCH_OPTIONS);
  for (const { address, page } of files) {
    for (const { id, title, text } of page?.sections ?? []) {
      if (text === "" && title === "") continue;
      index.add({
        id: id === "" ? address : `${address}#${id}`,
        page: page!.title,
        heading: title,
        text,
        excerpt: text.slice(0, EXCERPT_LENGTH),
      });
    }
  }
  return JSON.stringify(index);
}

/** The page for programs that read documentation, in the form of llmstxt.org. */
function llmsText(files: readonly ProjectFile[], navigation: readonly NavigationSection[]): string {
  const pages = new Map<string, PageContent>(
    files.flatMap((file) =>
      file.page ? [[file.address, { ...file.page, address: file.address }]] : []
    ),
  );
  const home = pages.get(addressOf(HOME, "page"))!;
  const sections = navigation.map(({ title, links, is_folded }) => [
    // Programs leave out a section of this name if they need a short text.
    `## ${is_folded ? "Optional" : title}`,
    "",
    ...links.map(({ address, label }) => {
      const { description } = pages.get(address)!;
      return `- [${label}](${address.replace(/\.html$/, ".md")}): ${firstSentence(description)}`;
    }),
    "",
  ]);
  return [
    `# ${home.title}`,
    "",
    `> ${home.description}`,
    "",
    "The links lead to Markdown; the same address with .html is the page for people. The OpenAPI",
    "document is [openapi.json](openapi.json): every operation, field and error, with examples.",
    "",
    ...sections.flat(),
  ].join("\n");
}

function firstSentence(text: string): string {
  return /^.*?[.:](?=\s|$)/.exec(text)?.[0] ?? text;
}
