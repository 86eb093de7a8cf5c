/**
 * The reference page of the local start in a real browser. It shows the document in light and dark
 * mode, on a desktop and a phone, sends a request with a test key, and calls no other origin.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { keyLink, referenceKeyLink } from "../../packages/sandbox/key_link.ts";
import { buildReferenceSite } from "../../tools/site/reference_site.ts";
import { browserCase, type ConsoleCase } from "../support/console/console_case.ts";
import { showsCurrent, smallButtons } from "../support/console/look.ts";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";

const VIEWS = [
  { name: "desktop, light", viewport: { width: 1280, height: 900 }, colorScheme: "light" },
  { name: "phone, dark", viewport: { width: 390, height: 844 }, colorScheme: "dark" },
] as const;

browserCase({
  name: "GET /docs/reference shows the API and sends no request to another origin",
}, async (step, place) => {
  for (const view of VIEWS) await step(view.name, () => visit(place, view));
  await step("the console links to the place of each page", () => followLinks(place));
});

Deno.test("buildReferenceSite() fetches nothing that the data folder has", () =>
  withTemporaryFolder(async (folder) => {
    await Deno.mkdir(folder, { recursive: true });
    await Deno.writeTextFile(join(folder, "scalar-1.72.1.js"), "kept");
    const { files } = await buildReferenceSite(folder, "http://127.0.0.1:1/functions/v1");
    assert.equal(new TextDecoder().decode(files.get("scalar.js")!.body as Uint8Array), "kept");
  }));

Deno.test("a hosted reference calls its API only, and has no console", () =>
  withTemporaryFolder(async (folder) => {
    await Deno.mkdir(folder, { recursive: true });
    await Deno.writeTextFile(join(folder, "scalar-1.72.1.js"), "kept");
    const base_url = "https://ref.supabase.co/functions/v1";
    const { files } = await buildReferenceSite(folder, base_url, { is_hosted: true });
    const page = files.get("index.html")!.body as string;
    assert.match(page, /connect-src 'self' https:\/\/ref\.supabase\.co;/);
    assert.doesNotMatch(page, /\{\{|<!-- |Console/);
    assert.equal(JSON.parse(files.get("openapi.json")!.body as string).servers[0].url, base_url);
  }));

async function visit({ browser, start, origin }: ConsoleCase, view: typeof VIEWS[number]) {
  const context = await browser.newContext(view);
  const page = await context.newPage();
  const elsewhere: string[] = [];
  const faults: string[] = [];
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !url.startsWith("data:")) elsewhere.push(url);
  });
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (line) => line.type() === "error" && faults.push(line.text()));
  // One view has the key of the printed link, which leaves the address at once.
  const is_linked = view.colorScheme === "light";
  const address = `${origin}/docs/reference`;
  await page.goto(is_linked ? referenceKeyLink(start.base_url, start.test_key) : address);
  await page.getByRole("heading", { name: "Keys and scopes" }).waitFor();
  // The page may have put the section in view there.
  assert.equal(page.url().replace(/#description.*/, ""), `${address}/`);
  await page.goto(`${origin}/docs/reference/#tag/payments/POST/api-v1-payments/v1/payments`);
  await page.getByRole("heading", { name: "Create a payment" }).waitFor();
  const width = await page.evaluate("document.documentElement.scrollWidth");
  assert.ok(Number(width) <= view.viewport.width, `it is ${width} wide`);
  assert.deepEqual(await smallButtons(page), []);
  assert.equal(await isDark(page), view.colorScheme === "dark");
  if (is_linked) assert.ok(await showsCurrent(page, "a.text-sidebar-c-active"));
  if (is_linked) await sendRequest(page);
  else await openOperation(page);
  assert.deepEqual({ elsewhere, faults }, { elsewhere: [], faults: [] });
  await page.keyboard.press("Escape");
  if (is_linked) await walkAround(page, origin);
  else await page.getByRole("link", { name: "Console" }).waitFor();
  await context.close();
}

/** Goes from the reference to the console, back, and to the documentation. */
async function walkAround(page: Page, origin: string): Promise<void> {
  await page.goto(`${origin}/docs/reference/`);
  await page.getByRole("link", { name: "Console" }).click();
  await page.getByRole("link", { name: "API reference" }).click();
  await page.waitForURL(`${origin}/docs/reference/`);
  await page.getByRole("link", { name: "Documentation" }).click();
  await page.getByRole("heading", { name: "Payments API with sandbox" }).waitFor();
}

/** Pages of the console, the name of a link there, and the heading that it leads to. */
const CONSOLE_LINKS = [
  ["balance", "API reference", "Ledger"],
  ["transfers/new", "Reference", "Create a transfer"],
] as const;

/** Follows links of the console. Each opens another tab, in which its heading is in view. */
async function followLinks({ browser, start }: ConsoleCase): Promise<void> {
  const { base_url, test_key } = start;
  const context = await browser.newContext({ viewport: VIEWS[0].viewport });
  const page = await context.newPage();
  await page.goto(keyLink(base_url, test_key));
  await page.getByRole("navigation", { name: "Sections" }).waitFor();
  for (const [place, link, title] of CONSOLE_LINKS) {
    await page.goto(new URL(`/console/#/${place}`, base_url).href);
    const [tab] = await Promise.all([
      context.waitForEvent("page"),
      page.getByRole("link", { name: link, exact: true }).click(),
    ]);
    const heading = tab.getByRole("heading", { name: title, exact: true }).first();
    await heading.waitFor();
    const text = JSON.stringify(title);
    // The tab has the key of the console that is open.
    await tab.waitForFunction(`document.documentElement.innerHTML.includes("${test_key}") ||
      [...document.querySelectorAll("input")].some(({ value }) => value === "${test_key}")`);
    await tab.waitForFunction(`[...document.querySelectorAll("h1, h2, h3")].some((heading) => {
      const { top } = heading.getBoundingClientRect();
      return heading.textContent.trim() === ${text} && top >= 0 && top < innerHeight;
    })`);
    await tab.close();
  }
  await context.close();
}

/** Sends the example of the first operation with the key that the page has. */
async function sendRequest(page: Page): Promise<void> {
  await page.getByRole("button", { name: /^Test Request.*v1\/payments\)$/ }).first().click();
  await page.getByRole("dialog").getByRole("button", { name: /^Send/ }).first().click();
  await page.getByRole("link", { name: "201 Created" }).waitFor();
}

/** Opens an operation of a section's list by the keyboard. Its request has no parameter ticked. */
async function openOperation(page: Page): Promise<void> {
  await page.getByRole("link", { name: /^get .*v1\/payments$/i }).focus();
  await page.keyboard.press("Enter");
  await page.waitForURL(/#tag\/payments\/GET\/api-v1-payments\/v1\/payments$/);
  await page.getByRole("button", { name: /^Test Request.*get .*v1\/payments\)$/i }).first().click();
  const limit = page.getByRole("checkbox", { name: "Include limit in request" });
  await limit.waitFor();
  const ticked = await page.getByRole("checkbox", { checked: true }).all();
  assert.deepEqual(await Promise.all(ticked.map((box) => box.getAttribute("aria-label"))), [
    "Include accept in request",
  ]);
}

/** True if the text is light. */
async function isDark(page: Page): Promise<boolean> {
  const color = await page.evaluate("getComputedStyle(document.querySelector('h1, h2')).color");
  const [red = 0] = String(color).match(/\d+/g)?.map(Number) ?? [];
  return red > 128;
}
