/**
 * The reference page of the local start in a real browser. It shows the served document, in light
 * and dark mode, on a desktop and a phone, and sends no request to another origin.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { buildReferenceSite } from "../../scripts/sites/reference_site.ts";
import { launchBrowser, no_browser } from "../support/console/browser.ts";
import { cloneDatabase } from "../support/database/database.ts";
import { launchStart, type LocalStart } from "../support/local/local_start.ts";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";

const VIEWS = [
  { name: "desktop, light", viewport: { width: 1440, height: 900 }, colorScheme: "light" },
  { name: "phone, dark", viewport: { width: 390, height: 844 }, colorScheme: "dark" },
] as const;

Deno.test({
  name: "GET /docs shows the API and sends no request to another origin",
  ignore: no_browser,
  fn: (t) =>
    withTemporaryFolder(async (folder) => {
      await using open = new AsyncDisposableStack();
      const database = await cloneDatabase();
      open.defer(() => database.drop());
      const product = await launchStart({
        DATA_DIR: join(folder, "data"),
        DATABASE_URL: database.url,
      });
      open.defer(async () => void await product.end());
      const browser = await launchBrowser();
      open.defer(() => browser.close());
      for (const view of VIEWS) {
        await t.step(view.name, () => visit(browser, product, view));
      }
    }),
});

Deno.test("buildReferenceSite() fetches nothing that the data folder has", () =>
  withTemporaryFolder(async (folder) => {
    await Deno.mkdir(folder, { recursive: true });
    await Deno.writeTextFile(join(folder, "redoc-3.0.1.js"), "kept");
    const { files } = await buildReferenceSite(folder);
    assert.equal(new TextDecoder().decode(files.get("redoc.js")!.body as Uint8Array), "kept");
  }));

async function visit(browser: Browser, product: LocalStart, view: typeof VIEWS[number]) {
  const context = await browser.newContext(view);
  const page = await context.newPage();
  const { origin } = new URL(product.base_url);
  const elsewhere: string[] = [];
  const faults: string[] = [];
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !url.startsWith("data:")) elsewhere.push(url);
  });
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (line) => line.type() === "error" && faults.push(line.text()));
  await page.goto(`${origin}/docs`);
  await page.getByRole("heading", { name: "Authentication" }).waitFor();
  await page.goto(`${origin}/docs/#/payments/createpayment`);
  await page.getByRole("heading", { name: "Create a payment" }).first().waitFor();
  // A recorded example, and an address of this start.
  await page.getByText("4242 4242 4242 4242").first().waitFor();
  const width = await page.evaluate("document.documentElement.scrollWidth");
  assert.ok(Number(width) <= view.viewport.width, `it is ${width} wide`);
  assert.equal(await isDark(page), view.colorScheme === "dark");
  assert.deepEqual({ elsewhere, faults }, { elsewhere: [], faults: [] });
  await context.close();
}

/** True if the text is light. */
async function isDark(page: Page): Promise<boolean> {
  const color = await page.evaluate("getComputedStyle(document.querySelector('h1, h2')).color");
  const [red = 0] = String(color).match(/\d+/g)?.map(Number) ?? [];
  return red > 128;
}
