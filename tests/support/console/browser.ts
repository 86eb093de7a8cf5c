/**
 * The Chromium of the system for the tests of a worker, by playwright-core. Each test opens contexts
 * of its own, which are empty profiles.
 */

import { type Browser, chromium } from "playwright-core";
import { findProgram } from "../common/programs.ts";

/**
 * Paths of Chromium in distributions. The variable CHROMIUM names another one. The headless shell
 * is the same browser without the parts that draw windows; a test takes a fifth less CPU time with
 * it.
 */
const PLACES = [
  "/usr/bin/chromium-headless-shell",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];
const ARGUMENTS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

const executable = await findProgram([Deno.env.get("CHROMIUM") ?? [], PLACES].flat());

/** Whether tests with a browser are skipped. In CI a missing browser is a failure. */
export const no_browser = executable === null && Deno.env.get("CI") === undefined;
if (no_browser) {
  console.warn(`Tests of the console are not run unless CI is set: no ${PLACES.join(", no ")}`);
}

let browser: Promise<Browser> | undefined;

const running = async () => await browser?.catch(() => undefined);

Deno.test.afterAll(async () => await (await running())?.close());

/**
 * The browser of this worker. The first test starts it, or the one after a crash, and it ends after
 * the last one.
 */
export async function sharedBrowser(): Promise<Browser> {
  if (!(await running())?.isConnected()) browser = launchBrowser();
  return await browser!;
}

/** Starts the browser. Throws if there is none. */
async function launchBrowser(): Promise<Browser> {
  if (executable === null) {
    throw new Error(`No browser for the tests of the console: install chromium (${PLACES[1]})`);
  }
  return await chromium.launch({ executablePath: executable, args: ARGUMENTS });
}
