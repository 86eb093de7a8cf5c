/** Draws the Mermaid diagrams of a page as pictures, one for each theme. */

import { renderMermaidSVG } from "beautiful-mermaid";
import { escapeHtml } from "./html.ts";
import { linkBetween } from "./page_html.ts";

/** The colours of the console (theme.css). A picture cannot read those of its page. */
const LIGHT = { bg: "#ffffff", fg: "#121815", line: "#55605b", accent: "#0b6757" };
const DARK = { bg: "#151a19", fg: "#e9eeec", line: "#9ba8a3", accent: "#63cdb5" };
/** The colours in a picture, which derives all others from them. */
const COLOURS = /--bg:[^;]+;--fg:[^;]+;--line:[^;]+;--accent:[^;]+;/;
/** Typefaces of other hosts, which the renderer names. */
const FOREIGN_FONTS = /@import url\([^)]*\);?/g;

interface Drawing {
  html: string;
  /** The pictures, by their addresses in the site. */
  pictures: Map<string, string>;
}

/**
 * Draws a diagram.
 * @param caption the heading above it
 * @param address address of its page
 * @throws {Error} if the source is no diagram
 */
export function drawDiagram(source: string, caption: string, address: string): Drawing {
  const pictures = new Map<string, string>();
  const name = caption.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  const drawn = renderMermaidSVG(source, { ...LIGHT, font: "system-ui" })
    .replace(FOREIGN_FONTS, "");
  const images = Object.entries({ light: LIGHT, dark: DARK }).map(([theme, colours]) => {
    const picture = address.replace(/\.html$/, `-${name}-${theme}.svg`);
    const variables = Object.entries(colours).map(([name, value]) => `--${name}:${value};`);
    pictures.set(picture, drawn.replace(COLOURS, variables.join("")));
    const link = escapeHtml(linkBetween(address, picture));
    return `<img class="${theme}" src="${link}" alt="${escapeHtml(`Diagram: ${caption}`)}">`;
  });
  return { html: `<figure class="diagram" tabindex="0">${images.join("")}</figure>\n`, pictures };
}
