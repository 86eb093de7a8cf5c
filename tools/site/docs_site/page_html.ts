/** The HTML around the content of a page: bar, navigation, outline, search. No inline code. */

import { posix } from "node:path";
import { pagePolicy } from "../assets.ts";
import { escapeHtml } from "./html.ts";
import type { PageSection } from "./markdown.ts";

interface NavigationLink {
  address: string;
  label: string;
}

export interface NavigationSection {
  title: string;
  links: readonly NavigationLink[];
  /** True: the section is folded, except on its own pages. */
  is_folded: boolean;
}

export interface PageContent {
  address: string;
  title: string;
  description: string;
  html: string;
  sections: readonly PageSection[];
}

/** The parts that are the same on every page. */
export interface PageFrame {
  navigation: readonly NavigationSection[];
  /** URL of the console, relative to the folder of the site; null without one. */
  console_url: string | null;
}

const SITE = "Payments API";
/** Fewer headings than this need no outline. */
const OUTLINE_MIN = 3;

export function renderPage(content: PageContent, frame: PageFrame): string {
  const { address, title, description, html, sections } = content;
  const root = "../".repeat(address.split("/").length - 1);
  const outline = renderOutline(sections);
  const programs = [
    `<a href="${root}reference/">API reference</a>`,
    ...(frame.console_url === null ? [] : [`<a href="${root}${frame.console_url}">Console</a>`]),
  ];
  return `<!DOCTYPE html>
<html lang="en" data-root="${root}">
  <head>
    <meta charset="utf-8">
    <meta http-equiv="Content-Security-Policy" content="${escapeHtml(pagePolicy("'self'"))}">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <meta name="description" content="${escapeHtml(description.slice(0, 300))}">
    <title>${escapeHtml(title === SITE ? SITE : `${title} · ${SITE}`)}</title>
    <link rel="icon" href="${root}icon.svg">
    <link rel="stylesheet" href="${root}theme.css">
    <link rel="stylesheet" href="${root}bar.css">
    <link rel="stylesheet" href="${root}docs.css">
    <script src="${root}theme.js"></script>
    <script type="module" src="${root}page.js"></script>
  </head>
  <body>
    <a class="skip" href="#content">Skip to the page</a>
    <header class="bar">
      <button type="button" class="menu" popovertarget="pages">Menu</button>
      <a class="home" href="${
    root || "./"
  }"><img src="${root}icon.svg" alt="" width="24" height="24"> ${SITE}</a>
      <button type="button" id="search" hidden>Search <kbd>/</kbd></button>
      <nav aria-label="Programs">${programs.join(" ")}</nav>
      <button type="button" id="theme" hidden></button>
    </header>
    <div class="columns">
      <nav id="pages" popover aria-label="Pages">
        <ul class="programs">${programs.map((link) => `<li>${link}</li>`).join("")}</ul>
        ${renderNavigation(frame.navigation, address)}
      </nav>
      <main id="content" tabindex="-1">
        <article>${html}</article>
        ${renderNeighbours(frame.navigation, address)}
      </main>
      ${outline}
    </div>
    <dialog id="results" aria-label="Search">
      <div class="box">
        <div class="field">
          <input type="search" aria-label="Search the documentation" placeholder="Search" autocomplete="off" spellcheck="false">
          <button type="button">Close</button>
        </div>
        <ul></ul>
        <p role="status"></p>
      </div>
    </dialog>
  </body>
</html>
`;
}

/** The relative link from one address of the site to another, which can have an anchor. */
export function linkBetween(from: string, to: string): string {
  const [address = "", anchor] = to.split("#");
  const link = posix.relative(posix.dirname(from), address) || posix.basename(address);
  return anchor === undefined ? link : `${link}#${anchor}`;
}

function renderNavigation(sections: readonly NavigationSection[], address: string): string {
  return sections.map(({ title, links, is_folded }) => {
    const items = links.map((link) => {
      const current = link.address === address ? ' aria-current="page"' : "";
      const href = escapeHtml(linkBetween(address, link.address));
      return `<li><a href="${href}"${current}>${escapeHtml(link.label)}</a></li>`;
    }).join("");
    if (!is_folded) return `<p>${escapeHtml(title)}</p><ul>${items}</ul>`;
    const open = links.some((link) => link.address === address) ? " open" : "";
    return `<details${open}><summary>${escapeHtml(title)}</summary><ul>${items}</ul></details>`;
  }).join("\n");
}

function renderNeighbours(sections: readonly NavigationSection[], address: string): string {
  const links = sections.flatMap((section) => section.links);
  const at = links.findIndex((link) => link.address === address);
  if (at === -1) return "";
  const around = [["Previous", links[at - 1]], ["Next", links[at + 1]]] as const;
  const shown = around.map(([name, link]) =>
    link === undefined
      ? "<span></span>"
      : `<a href="${escapeHtml(linkBetween(address, link.address))}"><small>${name}</small> ${
        escapeHtml(link.label)
      }</a>`
  );
  return `<nav class="neighbours" aria-label="Neighbours">${shown.join("")}</nav>`;
}

function renderOutline(sections: readonly PageSection[]): string {
  const shown = sections.filter(({ depth }) => depth === 2 || depth === 3);
  if (shown.length < OUTLINE_MIN) return "";
  const items = shown.map(({ id, title, depth }) =>
    `<li class="depth-${depth}"><a href="#${escapeHtml(id)}">${escapeHtml(title)}</a></li>`
  );
  return `<nav class="outline" aria-label="On this page"><p>On this page</p><ul>${
    items.join("")
  }</ul></nav>`;
}
