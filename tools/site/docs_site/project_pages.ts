/**
 * Reads the files of the project that the documentation shows: the pages of the navigation, every
 * page of `docs/`, and everything in the project that they link to.
 */

import { globSync } from "node:fs";
import { posix } from "node:path";
import { fileURLToPath } from "node:url";
import { escapeHtml } from "./html.ts";
import { type RenderedPage, renderMarkdown, renderSource } from "./markdown.ts";
import { linkBetween } from "./page_html.ts";
import { addressOf, type Kind, kindOf, SECTIONS } from "./site_map.ts";

const PROJECT = new URL("../../../", import.meta.url);
const DOCUMENTS = "docs";

/** A file of the project with its place in the site. */
export interface ProjectFile {
  path: string;
  kind: Kind;
  address: string;
  /** The rendered page; null for a file that is shown as it is. */
  page: RenderedPage | null;
  /** The Markdown of a page with links between the Markdown files of the site. */
  markdown: string | null;
  /** The bytes of a file that is shown as it is. */
  bytes: Uint8Array<ArrayBuffer> | null;
}

type DrawDiagram = (source: string, caption: string, address: string) => string;

/** Reads and renders all files, in no particular order. */
export async function readProjectPages(drawDiagram: DrawDiagram): Promise<ProjectFile[]> {
  const waiting = [...SECTIONS.flatMap(({ pages }) => pages.map(([path]) => path))];
  waiting.push(...globSync(`${DOCUMENTS}/**/*.md`, { cwd: fileURLToPath(PROJECT) }));
  const kinds = new Map<string, Kind>();
  for (const path of waiting) kinds.set(path, "page");

  /** Returns the address of a path in the project, and takes the file into the site. */
  const include = (path: string): { address: string; kind: Kind } => {
    let kind = kinds.get(path);
    if (kind === undefined) {
      kind = kindOf(path, Deno.statSync(new URL(path, PROJECT)).isDirectory);
      kinds.set(path, kind);
      waiting.push(path);
    }
    return { address: addressOf(path, kind), kind };
  };
  const files = new Map<string, ProjectFile>();
  // A file can bring others, which are read after it.
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (!files.has(path)) {
      files.set(path, await readFile(path, kinds.get(path)!, include, drawDiagram));
    }
  }
  return [...files.values()];
}

async function readFile(
  path: string,
  kind: Kind,
  include: (path: string) => { address: string; kind: Kind },
  drawDiagram: DrawDiagram,
): Promise<ProjectFile> {
  const address = addressOf(path, kind);
  const nothing = { path, kind, address, page: null, markdown: null, bytes: null };
  if (kind === "file") return { ...nothing, bytes: await Deno.readFile(new URL(path, PROJECT)) };
  if (kind === "folder") return { ...nothing, page: await listFolder(path, address, include) };
  const text = await Deno.readTextFile(new URL(path, PROJECT));
  if (kind === "source") return { ...nothing, page: sourcePage(path, text) };

  /** Returns the link of the site for a link in this file. */
  const resolve = (target: string, suffix: ".html" | ".md"): string => {
    if (/^[a-z]+:/i.test(target) || target.startsWith("#")) return target;
    const [place, anchor] = target.split("#") as [string, string?];
    const included = include(posix.join(posix.dirname(path), place).replace(/\/$/, ""));
    const there = included.kind === "page"
      ? included.address.replace(/\.html$/, suffix)
      : included.address;
    return linkBetween(address, anchor === undefined ? there : `${there}#${anchor}`);
  };
  return {
    ...nothing,
    page: renderMarkdown(text, {
      resolve: (target) => resolve(target, ".html"),
      drawDiagram: (source, caption) => drawDiagram(source, caption, address),
    }),
    markdown: withLinks(text, (target) => resolve(target, ".md")),
  };
}

/** Replaces the links of a Markdown text outside of code. */
function withLinks(markdown: string, resolve: (target: string) => string): string {
  let in_block = false;
  return markdown.split("\n").map((line) => {
    if (/^\s*```/.test(line)) in_block = !in_block;
    if (in_block) return line;
    return line.replace(/(`+)[^`]*\1|\]\(([^)\s]+)\)/g, (text, tick, target) => {
      return tick === undefined ? `](${resolve(target)})` : text;
    });
  }).join("\n");
}

function sourcePage(path: string, text: string): RenderedPage {
  const title = escapeHtml(path);
  return {
    title: path,
    description: `The file ${path} of the project.`,
    html: `<h1 id="file">${title}</h1>\n${renderSource(text, path)}`,
    sections: [],
  };
}

async function listFolder(
  path: string,
  address: string,
  include: (path: string) => { address: string },
): Promise<RenderedPage> {
  const names: string[] = [];
  for await (const { name } of Deno.readDir(new URL(path, PROJECT))) {
    if (name.endsWith(".md")) names.push(name);
  }
  const items = await Promise.all(
    names.sort().map(async (name) => {
      const inner = `${path}/${name}`;
      const text = await Deno.readTextFile(new URL(inner, PROJECT));
      const title = /^# (.+)$/m.exec(text)?.[1] ?? name;
      const link = linkBetween(address, include(inner).address);
      return `<li><a href="${escapeHtml(link)}">${escapeHtml(title)}</a></li>`;
    }),
  );
  return {
    title: path,
    description: `The pages of ${path}.`,
    html: `<h1 id="folder">${escapeHtml(path)}</h1>\n<ul>${items.join("")}</ul>`,
    sections: [],
  };
}
