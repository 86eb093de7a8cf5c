/**
 * A test of the console as people have it: the local start serves it, a real browser shows it.
 * Every page that a test opens is judged at its end: no script error, nothing against its own
 * policy, nothing kept in any storage.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { launchBrowser, no_browser } from "./browser.ts";
import { launchStart, type LocalStart, PROJECT_DIR } from "../local/local_start.ts";
import { withTemporaryFolder } from "../common/temporary_folder.ts";

/** Viewports of a desk and of a phone. */
export const DESKTOP = { width: 1360, height: 900 };
export const PHONE = { width: 390, height: 844 };
/** Longer than anything that a page waits for. */
const PATIENCE_MS = 30_000;

/** An open page and what it did. */
interface ConsolePage {
  page: Page;
  /** Method and URL of every request, in order. */
  requests: string[];
}

/** How a page is opened. */
interface OpenOptions extends BrowserContextOptions {
  /** Where the console is; the local start's unless given. */
  url?: string;
  /** Lines of the browser's console that the test provokes. */
  provoked?: RegExp;
}

/** The product and a browser in front of it. */
interface ConsoleCase {
  start: LocalStart;
  /** `http://127.0.0.1:<port>` */
  origin: string;
  /** Opens the console at a place: `#/payments`. The page is judged when the test ends. */
  open(place?: string, options?: OpenOptions): Promise<ConsolePage>;
  /** Opens it and pastes the test key. */
  enter(place?: string, options?: BrowserContextOptions): Promise<ConsolePage>;
}

/** A step of a test; the steps after it build on it, and are not tried once it has failed. */
type Step = (name: string, work: () => Promise<void>) => Promise<void>;

/** Registers a test with a product of its own. */
export function consoleCase(
  name: string,
  run: (step: Step, console_case: ConsoleCase) => Promise<void>,
): void {
  Deno.test({
    name: `console: ${name}`,
    ignore: no_browser,
    fn: (t) =>
      withTemporaryFolder(async (data_dir) => {
        await using open = new AsyncDisposableStack();
        const start = await launchStart({ DATA_DIR: data_dir });
        open.defer(async () => void await start.end());
        const browser = await launchBrowser();
        open.defer(() => browser.close());
        const judgements: (() => Promise<void>)[] = [];
        const step: Step = async (name, work) => {
          if (!await t.step(name, work)) throw new Error(`Stopped after "${name}"`);
        };
        await run(step, caseOf(start, browser, judgements));
        for (const judge of judgements) await judge();
      }),
  });
}

/** Pastes the key and waits for the first page behind it. */
export async function pasteKey(page: Page, key: string): Promise<void> {
  await page.getByLabel("Test key", { exact: true }).last().fill(key);
  await page.getByRole("button", { name: "Open the sandbox" }).click();
  await page.getByRole("navigation", { name: "Sections" }).waitFor();
}

/** Keeps a picture of the page for people to look at; `artifacts/` unless CI_ARTIFACTS names more. */
export async function keepScreenshot(page: Page, name: string): Promise<void> {
  const folder = Deno.env.get("CI_ARTIFACTS") || join(PROJECT_DIR, "artifacts");
  await page.screenshot({ path: join(folder, "console", `${name}.png`) });
}

function caseOf(
  start: LocalStart,
  browser: Browser,
  judgements: (() => Promise<void>)[],
): ConsoleCase {
  const { origin } = new URL(start.base_url);
  const open: ConsoleCase["open"] = async (place = "", options = {}) => {
    const { url = `${origin}/console/`, provoked, ...context_options } = options;
    const context = await browser.newContext({ viewport: DESKTOP, ...context_options });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    const requests: string[] = [];
    const faults: string[] = [];
    page.on("request", (request) => requests.push(`${request.method()} ${request.url()}`));
    page.on("pageerror", (error) => faults.push(String(error)));
    page.on("console", (message) => {
      // The browser's own line about an answer of 400 or more, or about none, is no fault.
      const text = message.text();
      if (message.type() !== "error" || text.startsWith("Failed to load resource")) return;
      if (!provoked?.test(text)) faults.push(text);
    });
    judgements.push(async () => {
      assert.deepEqual(faults, []);
      assert.deepEqual(await page.evaluate(readStorage), []);
      assert.deepEqual(await context.cookies(), []);
      await context.close();
    });
    await page.goto(url + place);
    return { page, requests };
  };
  return {
    start,
    origin,
    open,
    async enter(place, options) {
      const opened = await open(place, options);
      await pasteKey(opened.page, start.test_key);
      return opened;
    },
  };
}

/** Runs in the page: names of everything that outlives it. */
async function readStorage(): Promise<string[]> {
  // deno-lint-ignore no-explicit-any
  const page = globalThis as any;
  return [
    ...Object.keys(page.localStorage),
    ...Object.keys(page.sessionStorage),
    // deno-lint-ignore no-explicit-any
    ...(await page.indexedDB.databases()).map(({ name }: any) => name),
    ...await page.caches.keys(),
    ...(await page.navigator.serviceWorker.getRegistrations()).map(String),
    ...(page.document.cookie === "" ? [] : [page.document.cookie]),
  ];
}
