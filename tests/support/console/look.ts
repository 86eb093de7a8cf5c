/** Looks at a page as people do: in all widths and both themes. */

import axe, { type RunOptions } from "axe-core";
import type { Page } from "playwright-core";
import { DESKTOP, keepScreenshot, PHONE } from "./console_case.ts";

/** Least width and height of what a finger touches (WCAG 2.5.8). */
const TARGET_PX = 24;
/** A page judges its data within this time. */
const SETTLE_MS = 500;
export const WIDTHS = { desktop: DESKTOP, phone: PHONE, small: { width: 320, height: 568 } };
/** Widths of which the test keeps no picture: half a screen, a tablet and a large screen. */
const MORE_WIDTHS = [800, 1024, 1440];
const CONTRAST = "color-contrast";
/** The dark theme has the same elements in other colours. */
export const OTHER_COLOURS: RunOptions = { runOnly: [CONTRAST] };
/** Another language has other texts in the same colours. */
export const OTHER_TEXTS: RunOptions = { rules: { [CONTRAST]: { enabled: false } } };

/**
 * Returns the faults of the current page in all widths, and in both themes. Writes its pictures on
 * a desktop and on a phone.
 */
export async function look(page: Page, name: string): Promise<string[]> {
  const faults: string[] = [];
  const note = (at: string | number, found: readonly string[]) =>
    faults.push(...found.map((fault) => `${name}-${at}: ${fault}`));
  note("light", await violations(page));
  await page.emulateMedia({ colorScheme: "dark" });
  note("dark", await violations(page, OTHER_COLOURS));
  await page.emulateMedia({ colorScheme: "light" });
  for (const [width, viewport] of Object.entries(WIDTHS)) {
    await page.setViewportSize(viewport);
    note(width, await faultsOfWidth(page));
    if (viewport !== WIDTHS.small) await keepScreenshot(page, `${name}-light-${width}`);
  }
  for (const width of MORE_WIDTHS) {
    await page.setViewportSize({ ...DESKTOP, width });
    note(width, await faultsOfWidth(page));
  }
  await page.setViewportSize(DESKTOP);
  return faults;
}

/** Returns what axe finds on the current page, by all rules or as the options say. */
export async function violations(page: Page, options: RunOptions = {}): Promise<string[]> {
  if (!await page.evaluate("'axe' in globalThis")) await page.evaluate(axe.source);
  const found = await page.evaluate(async (options) => {
    const page = globalThis as unknown as { axe: typeof axe };
    return (await page.axe.run(options)).violations;
  }, { ...options, resultTypes: ["violations" as const] });
  return found.map(({ id, nodes }) => `${id} ${nodes.map(({ html }) => html).join(" ")}`);
}

/** Whether forced colours give the link of the current page another ground than the page. */
export async function showsCurrent(page: Page, link = "nav a[aria-current]"): Promise<boolean> {
  await page.emulateMedia({ forcedColors: "active" });
  const [current = "", html] = await Promise.all(
    [link, "html"].map((selector) =>
      page.locator(selector).first().evaluate((element) =>
        getComputedStyle(element).backgroundColor
      )
    ),
  );
  await page.emulateMedia({ forcedColors: null });
  return current !== html && !current.endsWith(", 0)");
}

/** Returns the buttons of the current page that are too small for a finger. */
export function smallButtons(page: Page): Promise<string[]> {
  return page.locator("button, summary, .download-link").filter({ visible: true }).evaluateAll(
    (buttons, target_px) =>
      buttons.filter((button) => {
        const { width, height } = button.getBoundingClientRect();
        return width < target_px || height < target_px;
      }).map(({ outerHTML }) => outerHTML),
    TARGET_PX,
  );
}

/** Returns what people cannot reach, read or touch in the current width of a page. */
export async function faultsOfWidth(page: Page): Promise<string[]> {
  const faults = await measureFaults(page);
  if (faults.length === 0) return faults;
  // On a busy machine data can arrive between the two frames, and the page has not judged it yet.
  await page.waitForTimeout(SETTLE_MS);
  return await measureFaults(page);
}

function measureFaults(page: Page): Promise<string[]> {
  return page.evaluate(async (target_px) => {
    // The page judges a new width before it paints.
    for (let frames = 0; frames < 2; frames++) await new Promise(requestAnimationFrame);
    const all = (selector: string) => [...document.querySelectorAll<HTMLElement>(selector)];
    const isWider = ({ scrollWidth, clientWidth }: Element) => scrollWidth > clientWidth;
    const isSmall = (target: Element) => {
      const { width, height } = (target.closest("label") ?? target).getBoundingClientRect();
      return width > 0 && (width < target_px || height < target_px);
    };
    const wide = all(".scroll").filter((box) => box.checkVisibility() && isWider(box));
    const right = (element: Element) => element.getBoundingClientRect().right;
    const main = document.querySelector("main")!;
    const edge = right(main) - parseFloat(getComputedStyle(main).paddingRight);
    return [
      ...all("main .card").filter((card) => right(card) > edge + 1)
        .map(({ className }) => `wider than its place: ${className}`),
      ...(isWider(document.documentElement) ? ["wider than the screen"] : []),
      ...wide.filter(({ tabIndex }) => tabIndex !== 0).map(() => "a box scrolls without focus"),
      ...wide.filter((box) => box.querySelector(".list button")).map(() => "hidden buttons"),
      ...all(".cut, .grow, .grow > p")
        .filter((cell) => cell.checkVisibility() && isWider(cell) && cell.title === "")
        .map(({ outerHTML }) => `cut without a title: ${outerHTML}`),
      ...all("a[href], button, summary, select, input, textarea").filter(isSmall)
        .map(({ outerHTML }) => `smaller than ${target_px} pixels: ${outerHTML}`),
    ];
  }, TARGET_PX);
}
