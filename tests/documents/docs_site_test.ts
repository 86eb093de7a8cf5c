/**
 * The documentation as pages: it has every document, every link of every page leads to a file and
 * an anchor of the site, and it names no other host. In a browser it has navigation, a search,
 * light and dark, and breaks no rule of accessibility.
 */

import assert from "node:assert/strict";
import { posix } from "node:path";
import { gzipSync } from "node:zlib";
import type { Page } from "playwright-core";
import { docUrl } from "../../shared/core/errors.ts";
import { ERROR_CODES } from "../../shared/schema/error.ts";
import { buildDocsSite } from "../../tools/site/docs_site.ts";
import { siteHandler } from "../../tools/site/static_site.ts";
import { no_browser, sharedBrowser } from "../support/console/browser.ts";
import { DESKTOP, keepScreenshot, PHONE } from "../support/console/console_case.ts";
import { showsCurrent, smallButtons, violations, WIDTHS } from "../support/console/look.ts";
import { anchors, links } from "../support/documents/markdown.ts";
import { projectFiles, readProjectFile } from "../support/documents/project_files.ts";

/** Programs beside the pages, which other tests open. */
const PROGRAMS = ["reference/index.html", "../console/index.html"];
/** Most bytes of a first page and of the index of the search, compressed. */
const MAX_PAGE = 60_000;
const MAX_SEARCH = 200_000;

const { files, headers } = await buildDocsSite("../console/");
const pages = [...files.keys()].filter((name) => name.endsWith(".html"));

const textOf = (name: string): string => {
  const { body } = files.get(name)!;
  return typeof body === "string" ? body : new TextDecoder().decode(body);
};
const idsOf = (html: string) => new Set([...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));

/** Returns the file to which a link of a file leads, with its anchor. */
function targetOf(from: string, link: string): [name: string, anchor: string | undefined] {
  const [place = "", anchor] = link.split("#");
  if (place === "") return [from, anchor];
  const name = posix.normalize(posix.join(posix.dirname(from), place));
  return [place.endsWith("/") || place === ".." ? posix.join(name, "index.html") : name, anchor];
}

Deno.test("every document is a page of the navigation, also as Markdown, and in llms.txt", async () => {
  const documents = (await projectFiles([".md"])).filter((path) => path.startsWith("docs/"));
  const home = textOf("index.html");
  const llms = textOf("llms.txt");
  for (const path of documents) {
    const name = path.slice("docs/".length).replace(/\.md$/, ".html");
    assert.ok(files.has(name), path);
    assert.ok(home.includes(`<a href="${name}">`), `${path} is not in the navigation`);
    assert.ok(llms.includes(`](${name.replace(/\.html$/, ".md")}):`), `${path}: llms.txt`);
    const missing = [...anchors(await readProjectFile(path))]
      .filter((anchor) => !idsOf(textOf(name)).has(anchor));
    assert.deepEqual(missing, [], path);
  }
  assert.match(llms, /^# .+\n\n> .+\n/);
});

Deno.test("every link of every page leads to a file and an anchor of the site", () => {
  const faults: string[] = [];
  let followed = 0;
  for (const page of pages) {
    for (const [, link] of textOf(page).matchAll(/ (?:href|src)="([^"]*)"/g)) {
      if (/^(https?|mailto):/.test(link!)) continue;
      const [name, anchor] = targetOf(page, link!);
      followed++;
      if (PROGRAMS.includes(name)) continue;
      if (!files.has(name)) faults.push(`${page}: ${link} leads to no file`);
      else if (anchor && !idsOf(textOf(name)).has(anchor)) faults.push(`${page}: no ${link}`);
    }
  }
  assert.deepEqual(faults, []);
  assert.ok(followed > 5_000, String(followed));
});

Deno.test("every link of the Markdown files and of llms.txt leads to a file of the site", () => {
  const texts = [...files.keys()].filter((name) => name.endsWith(".md") || name === "llms.txt");
  const faults = texts.flatMap((from) =>
    links(textOf(from)).filter(({ target }) => !/^[a-z]+:/i.test(target)).flatMap(({ target }) => {
      const [name] = targetOf(from, target);
      return files.has(name) ? [] : [`${from}: ${target}`];
    })
  );
  assert.deepEqual(faults, []);
  assert.ok(texts.length > 60);
});

Deno.test("pages have no code of their own and load files of the site only", () => {
  assert.equal(headers["Content-Security-Policy"], "frame-ancestors 'none'");
  for (const page of pages) {
    const html = textOf(page);
    assert.match(html, /http-equiv="Content-Security-Policy" content="default-src 'none'; /);
    const outside = html.replace(/<code>.*?<\/code>/gs, "");
    assert.doesNotMatch(outside, /<script>|<style|\sstyle="|\son\w+="|\{\{|undefined/, page);
    assert.doesNotMatch(outside, / src="https?:/, page);
  }
  for (const [name, { type }] of files) {
    if (type === "image/svg+xml") {
      assert.doesNotMatch(textOf(name), /@import|https?:\/\/(?!www\.w3)/);
    }
  }
});

Deno.test("doc_url of every code leads to a heading of a page", () => {
  for (const code of ERROR_CODES) {
    const [page, anchor] = docUrl("", code).slice(1).split("#") as [string, string];
    assert.ok(idsOf(textOf(page)).has(anchor), code);
  }
});

Deno.test("a first page and the search weigh little compressed", () => {
  const weigh = (names: string[]) =>
    names.reduce((sum, name) => sum + gzipSync(files.get(name)!.body).length, 0);
  const first = [
    "index.html",
    "theme.css",
    "bar.css",
    "docs.css",
    "theme.js",
    "page.js",
    "geist.woff2",
  ];
  const [page, search] = [weigh(first), weigh(["search.json"])];
  console.log(`A first page weighs ${page} bytes compressed, the search ${search}`);
  assert.ok(page < MAX_PAGE && search < MAX_SEARCH, `${page} ${search}`);
});

Deno.test({
  name: "the pages have navigation, search, light and dark, and no fault of accessibility",
  ignore: no_browser,
  async fn(t) {
    const respond = siteHandler("/docs", () => Promise.resolve({ files, headers }));
    const server = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen: () => {} },
      (request) => respond(request) ?? new Response(null, { status: 404 }),
    );
    const origin = `http://127.0.0.1:${server.addr.port}`;
    const browser = await sharedBrowser();
    const context = await browser.newContext({ viewport: DESKTOP, colorScheme: "light" });
    try {
      const page = await context.newPage();
      const faults: string[] = [];
      page.on("pageerror", (error) => faults.push(error.message));
      page.on("console", (line) => line.type() === "error" && faults.push(line.text()));
      page.on("request", (request) => {
        if (!request.url().startsWith(`${origin}/`)) faults.push(request.url());
      });
      await page.goto(`${origin}/docs`);
      await t.step("the navigation opens a page", async () => {
        await page.getByRole("navigation", { name: "Pages" })
          .getByRole("link", { name: "Errors and test values" }).click();
        await page.getByRole("heading", { name: "Errors", level: 1 }).waitFor();
        // The keys of the next step work when the page's script has run.
        await page.waitForLoadState("load");
      });
      await t.step("the search leads to a section", async () => {
        await page.keyboard.press("/");
        const field = page.getByRole("searchbox");
        await field.fill("signature tolera");
        await page.getByText(/^(The first )?\d+ results$/).waitFor();
        await field.fill("idempotency_conflict");
        await page.getByRole("dialog").getByRole("link").first().waitFor();
        await field.press("Enter");
        await page.waitForURL(/errors\.html#idempotency_conflict$/);
        await page.keyboard.press("Control+k");
        await field.fill("xyzzyxyzzy");
        await page.getByText("Nothing contains “xyzzyxyzzy”").waitFor();
        assert.deepEqual(await violations(page), []);
        await page.keyboard.press("Escape");
      });
      for (const name of ["index", "architecture", "coming-from-stripe", "errors", "contract"]) {
        await t.step(`${name} is accessible, and no wider than the screen`, async () => {
          await page.evaluate("localStorage.clear()");
          await page.goto(`${origin}/docs/${name}.html`);
          for (const colorScheme of ["light", "dark"] as const) {
            await page.emulateMedia({ colorScheme });
            for (const [width, viewport] of Object.entries(WIDTHS)) {
              await page.setViewportSize(viewport);
              assert.equal(await isDark(page), colorScheme === "dark");
              const wide = await page.evaluate("document.documentElement.scrollWidth");
              assert.ok(Number(wide) <= viewport.width, `${width}: ${wide} wide`);
              assert.deepEqual(await smallButtons(page), [], width);
              // One width has the elements of the other, one theme its colours.
              if (viewport === (colorScheme === "light" ? DESKTOP : PHONE)) {
                assert.deepEqual(await violations(page), [], `${colorScheme} ${width}`);
              }
              if (viewport !== WIDTHS.small) {
                await keepScreenshot(page, `docs-${name}-${colorScheme}-${width}`);
              }
            }
          }
          await page.setViewportSize(DESKTOP);
        });
      }
      await t.step("a wrong address says so, and leads to the first page", async () => {
        const response = await page.goto(`${origin}/docs/tutorials/<b>nothing`);
        assert.equal(response?.status(), 404);
        assert.match(faults.pop()!, /404/);
        await page.getByText('There is no file "tutorials/<b>nothing".').waitFor();
        assert.deepEqual(await violations(page), []);
        await page.getByRole("link").click();
        await page.getByRole("heading", { level: 1, name: "Payments API with sandbox" }).waitFor();
      });
      await t.step("forced colours mark the current page", async () => {
        assert.ok(await showsCurrent(page));
      });
      await t.step("a phone has the navigation behind a button", async () => {
        await page.setViewportSize(PHONE);
        const navigation = page.getByRole("navigation", { name: "Pages" });
        assert.ok(!await navigation.isVisible());
        await page.getByRole("button", { name: "Menu" }).click();
        await navigation.getByRole("link", { name: "API reference" }).waitFor();
        assert.deepEqual(await violations(page), []);
        await keepScreenshot(page, "docs-menu-phone");
        await navigation.getByRole("link", { name: "Tutorial", exact: true }).click();
        await page.waitForURL(/tutorial\.html$/);
      });
      assert.deepEqual(faults, []);
    } finally {
      await context.close();
      await server.shutdown();
    }
  },
});

/** Whether the page is dark as it is shown. */
async function isDark(page: Page): Promise<boolean> {
  const color = await page.evaluate("getComputedStyle(document.body).color");
  const [red = 0] = String(color).match(/\d+/g)?.map(Number) ?? [];
  return red > 128;
}
