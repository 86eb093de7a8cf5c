/**
 * Registers tests of the console, which the local start serves and a real browser shows. At its end
 * a test checks every page that it opened: it must have no script error, no violation of its
 * content security policy, no request to another origin, no key in a request but a test key in its
 * header, and nothing in any storage of the browser but forms that were not sent and saved filters,
 * without a card number, a CVC or a key.
 */
/// <reference lib="dom" />

import assert from "node:assert/strict";
import { join } from "node:path";
import type { Browser, BrowserContextOptions, Page, Request } from "playwright-core";
import { isSecret } from "../../../apps/console/data/shelf.ts";
import { withoutKeys } from "../../../shared/core/masked_secrets.ts";
import { no_browser, sharedBrowser } from "./browser.ts";
import { consolePage } from "./console_page.ts";
import { PROJECT_DIR } from "../local/local_start.ts";
import { openAccount, type SharedStart } from "../local/shared_start.ts";

/** Viewports of a desktop and of a phone. */
export const DESKTOP = { width: 1280, height: 900 };
export const PHONE = { width: 390, height: 844 };
/**
 * Longer than a page needs for anything, also if a read fails on a busy machine: the client waits
 * 30 seconds for a response, and the page up to 15 seconds until the next read.
 */
const PATIENCE_MS = 60_000;

/**
 * The items in which the console keeps what the user has typed, and the page for payers its visit;
 * and values that are in none.
 */
const KEPT = /^(payments-console-(drafts|filters)|checkout_(token|attempt))$/;
const UNSTORED = /"(card_number|cvc)"/;

/** Options of opening a page. */
export interface OpenOptions extends BrowserContextOptions {
  /** URL of the console, by default of the local start. */
  url?: string;
  /** Errors in the browser's console that the test expects, also of requests to other origins. */
  provoked?: RegExp;
}

/** The local start, and the operations of a test in the browser. */
export type ConsoleCase = ReturnType<typeof caseOf>;

// The tests know the shapes of the responses.
// deno-lint-ignore no-explicit-any
type Send = (method: string, path: string, body?: unknown) => Promise<any>;

/** Runs a step of a test. If it fails, the test ends, because later steps depend on it. */
export type Step = (name: string, work: () => Promise<void>) => Promise<void>;

/** The steps of a test. */
type BrowserTest = (step: Step, console_case: ConsoleCase) => Promise<void>;

/** Registers a test of the console. */
export function consoleCase(name: string, run: BrowserTest): void {
  browserCase({ name: `console: ${name}` }, run);
}

/** Registers a test with an account of its own at the local start, in the browser. */
export function browserCase(
  { name, ignore = false }: { name: string; ignore?: boolean },
  run: BrowserTest,
): void {
  Deno.test({
    name,
    ignore: ignore || no_browser,
    async fn(t) {
      const judgements: (() => Promise<void>)[] = [];
      const step: Step = async (name, work) => {
        if (!await t.step(name, work)) throw new Error(`Stopped after "${name}"`);
      };
      const [start, browser] = await Promise.all([openAccount(), sharedBrowser()]);
      try {
        await run(step, caseOf(start, browser, judgements));
        for (const judge of judgements) await judge();
      } finally {
        for (const context of browser.contexts()) await context.close();
      }
    },
  });
}

/** Pastes the key and waits for the first page of the sandbox. */
export async function pasteKey(page: Page, key: string): Promise<void> {
  await page.getByLabel("Test key", { exact: true }).last().fill(key);
  await page.getByRole("button", { name: "Open the sandbox" }).click();
  await page.getByRole("navigation", { name: "Sections" }).waitFor();
}

/** A request of the page is recorded within this time. */
const RECORD_MS = 300;

/** Moves the clock of a page forward, after `page.clock.install()`. Its timers fire meanwhile. */
export async function moveClock(page: Page, by_ms: number): Promise<void> {
  await page.clock.runFor(by_ms);
  await page.waitForTimeout(RECORD_MS);
}

/** Lets a page read every two seconds, as at a service without reads of changes. */
export async function withoutChanges(page: Page): Promise<void> {
  const error = { type: "not_found", code: "not_found", message: "Unknown", request_id: "r" };
  await page.route("**/changes?*", (route) => route.fulfill({ status: 404, json: { error } }));
}

/** Saves a picture of the page in `console/` of CI_ARTIFACTS, by default of `artifacts/`. */
export async function keepScreenshot(page: Page, name: string): Promise<void> {
  const folder = Deno.env.get("CI_ARTIFACTS") || join(PROJECT_DIR, "artifacts");
  await page.screenshot({ path: join(folder, "console", `${name}.png`) });
}

function caseOf(start: SharedStart, browser: Browser, judgements: (() => Promise<void>)[]) {
  const { origin } = new URL(start.base_url);
  /** Opens the console at a place, such as `#/payments`. */
  const open = async (place = "", options: OpenOptions = {}) => {
    const { url = `${origin}/console/`, provoked, ...context_options } = options;
    const context = await browser.newContext({ viewport: DESKTOP, ...context_options });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    const opened = consolePage(page, url);
    const { requests } = opened;
    const faults: string[] = [];
    const origins = [origin, new URL(url).origin];
    page.on("request", (request) => {
      requests.push(`${request.method()} ${request.url()}`);
      const is_foreign = !origins.includes(new URL(request.url()).origin);
      const is_fault = is_foreign ? !provoked : tellsKey(request);
      if (is_fault) faults.push(`sent to ${withoutKeys(request.url())}`);
    });
    page.on("pageerror", (error) => faults.push(String(error)));
    page.on("console", (message) => {
      // The browser logs an error for each response of 400 or more, and for each missing response.
      const text = message.text();
      if (message.type() !== "error" || text.startsWith("Failed to load resource")) return;
      if (!provoked?.test(text)) faults.push(text);
    });
    judgements.push(async () => {
      assert.deepEqual(faults, []);
      for (const [item, text] of await page.evaluate(readStorage)) {
        assert.match(item, KEPT);
        // The digits of a token can look like a card number.
        if (item === "checkout_token") continue;
        assert.ok(!isSecret(text) && !UNSTORED.test(text), `${item} has ${text}`);
      }
      assert.deepEqual(await context.cookies(), []);
    });
    await page.goto(url + place);
    return opened;
  };
  /**
   * Sends a request with the test key, and returns the body of the response. A path without a slash
   * at its beginning is one of the payments function.
   */
  const send: Send = async (method, path, body) => {
    const whole = path.startsWith("/") ? path : `/api-v1-payments/v1/${path}`;
    return (await start.call(method, whole, body)).body;
  };
  return {
    ...{ start, browser, origin, open, send },
    /** Makes a resource. Returns its id. */
    make: async (path: string, body?: unknown): Promise<string> =>
      (await send("POST", path, body)).id,
    /** The number of items of a list of the payments function. */
    count: async (list: string): Promise<number> => (await send("GET", list)).data.length,
    /** Opens the console and pastes the test key. */
    async enter(place?: string, options?: BrowserContextOptions) {
      const opened = await open(place, options);
      await pasteKey(opened.page, start.test_key);
      return opened;
    },
  };
}

/** Whether a request has a live key, or any key outside of its header. */
function tellsKey(request: Request): boolean {
  const { authorization = "", "checkout-token": _, ...headers } = request.headers();
  const others = JSON.stringify([request.url(), headers, request.postData()]);
  return withoutKeys(others) !== others || /_live_/i.test(authorization);
}

/** Runs in the page. Returns all data that can stay when the page is closed: names and texts. */
async function readStorage(): Promise<[name: string, text: string][]> {
  const others = [
    ...(await indexedDB.databases()).map(({ name }) => name!),
    ...await caches.keys(),
    ...(await navigator.serviceWorker.getRegistrations()).map(String),
    ...(document.cookie === "" ? [] : [document.cookie]),
  ];
  return [
    ...Object.entries<string>(localStorage),
    ...Object.entries<string>(sessionStorage),
    ...others.map((name): [string, string] => [name, ""]),
  ];
}
