/** Looks at a page as people do: in all widths and both themes. */

import axe from "axe-core";
import type { Page } from "playwright-core";
import { DESKTOP, keepScreenshot, PHONE } from "./console_case.ts";

const SCHEMES = ["light", "dark"] as const;
const WIDTHS = { desktop: DESKTOP, phone: PHONE, small: { width: 320, height: 568 } };

/**
 * Returns the faults of the current page in all widths, and on a desktop in both themes. Writes its
 * pictures.
 */
export async function look(page: Page, name: string): Promise<string[]> {
  const faults: string[] = [];
  for (const colorScheme of SCHEMES) {
    await page.emulateMedia({ colorScheme });
    for (const [width, viewport] of Object.entries(WIDTHS)) {
      // Colours change no width.
      if (colorScheme === "dark" && viewport !== DESKTOP) continue;
      await page.setViewportSize(viewport);
      const at = `${name}-${colorScheme}-${width}`;
      // The phone shows the same elements in the same colours.
      // The dark theme has the same elements in other colours.
      const rules = colorScheme === "dark" ? ["color-contrast"] : [];
      const found = viewport === DESKTOP ? await violations(page, rules) : [];
      faults.push(...found.map((fault) => `${at}: ${fault}`));
      if (await isTooWide(page)) faults.push(`${at}: wider than the screen`);
      await keepScreenshot(page, at);
    }
  }
  await page.setViewportSize(DESKTOP);
  return faults;
}

/** Returns what axe finds on the current page, by all rules or by these. */
export async function violations(page: Page, rules: string[] = []): Promise<string[]> {
  if (!await page.evaluate("'axe' in globalThis")) await page.evaluate(axe.source);
  const found = await page.evaluate(async (options) => {
    // deno-lint-ignore no-explicit-any
    const { violations } = await (globalThis as any).axe.run(options);
    return violations as axe.Result[];
  }, rules.length > 0 ? { runOnly: rules } : {});
  return found.map(({ id, nodes }) => `${id} ${nodes.map(({ html }) => html).join(" ")}`);
}

/** True if people would have to scroll sideways. */
function isTooWide(page: Page): Promise<boolean> {
  return page.evaluate(() => {
    // deno-lint-ignore no-explicit-any
    const { documentElement: root } = (globalThis as any).document;
    return root.scrollWidth > root.clientWidth;
  });
}
