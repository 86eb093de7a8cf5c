/**
 * The console as a user sees it: its parts by the names that they show. A text names a part as a
 * whole, a regular expression matches a part of its name.
 */

import type { Page } from "playwright-core";

/** The item of the session storage with the forms that were left. */
const DRAFTS = "payments-console-drafts";
/** The controls that `fill` fills. */
const CONTROLS = "input[type=text], select, textarea";

/** Matches the label of a field, which can be an optional one. */
function labelOf(text: string): RegExp {
  return new RegExp(`^${text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}\\s*(optional)?$`);
}

/** Returns the parts of a page. `url` is that of the console. */
export function consolePage(page: Page, url: string) {
  const named = (role: Parameters<Page["getByRole"]>[0]) => (name: string | RegExp) =>
    page.getByRole(role, { name, exact: typeof name === "string" });
  const heading = named("heading");
  const rows = (table: string) => page.getByRole("table", { name: table }).locator("tbody tr");
  const notices = page.locator("[aria-live] .notice");
  const dialogs = page.locator("dialog[open]");
  /** The open dialog, or else the page. */
  const front = async () => await dialogs.count() > 0 ? dialogs.last() : page;
  const see = async (...texts: (string | RegExp)[]) => {
    for (const text of texts) await page.getByText(text).locator("visible=true").first().waitFor();
  };
  const fill = async (values: Record<string, string>) => {
    for (const [label, value] of Object.entries(values)) {
      const field = (await front()).getByLabel(labelOf(label)).and(page.locator(CONTROLS));
      if (await field.evaluate(({ tagName }: { tagName: string }) => tagName) === "SELECT") {
        await field.selectOption(value);
      } else await field.fill(value);
    }
  };
  const press = async (...names: (string | RegExp)[]) => {
    for (const name of names) {
      const exact = typeof name === "string";
      await (await front()).getByRole("button", { name, exact }).first().click();
    }
  };
  const go = (place: string) => page.goto(`${url.split("#")[0]}#/${place}`);
  return {
    page,
    /** Method and URL of every request, in order. */
    requests: [] as string[],
    button: named("button"),
    link: named("link"),
    region: named("region"),
    radio: named("radio"),
    checkbox: named("checkbox"),
    heading,
    /** A dialog; without a name the only one. */
    dialog: (name?: string) => page.getByRole("dialog", name === undefined ? {} : { name }),
    /** A field by its label, which can be around a list and its options. */
    field: (label: string | RegExp) =>
      typeof label === "string"
        ? page.getByLabel(label, { exact: true }).or(
          page.locator("label", { has: page.locator(`span:text-is("${label}")`) }).locator(
            "select",
          ),
        )
        : page.getByLabel(label),
    /** The fields of the open dialog, or else of the page, by their labels: texts and lists. */
    fill,
    /** Clicks buttons of the open dialog, or else of the page. */
    press,
    /** Waits until each text is visible. */
    see,
    /** Fills fields, clicks a button and waits for texts. */
    async submit(values: Record<string, string>, button: string, ...texts: (string | RegExp)[]) {
      await fill(values);
      await press(button);
      await see(...texts);
    },
    /** Chooses radio buttons. */
    async choose(...names: (string | RegExp)[]) {
      for (const name of names) {
        await page.getByRole("radio", { name, exact: typeof name === "string" }).check();
      }
    },
    /** An error at a field. */
    fault: (text: string | RegExp = /./) => page.locator(".fault").getByText(text),
    rows,
    /** Waits until a table has this number of rows. */
    async showsRows(table: string, count: number) {
      await rows(table).nth(count - 1).waitFor();
      await rows(table).nth(count).waitFor({ state: "detached" });
    },
    /** The status below the title. */
    status: (name: string) => page.locator(".under-title").getByText(name, { exact: true }),
    /** The message about the last action. */
    said: (text: string | RegExp = /./) => notices.getByText(text),
    /** Opens a place such as `payments/new`. */
    go,
    /** Opens a place with nothing of an earlier visit, and no form as it was left. */
    async fresh(place: string) {
      await page.evaluate((item) => sessionStorage.removeItem(item), DRAFTS);
      await go("balance");
      await page.getByRole("heading", { name: "Balance", level: 1 }).waitFor();
      await go(place);
    },
    /** The body of the request beside a form. */
    preview: async () =>
      JSON.parse(await page.getByRole("region", { name: "Body of the request" }).innerText()),
    /** The route in the address. */
    hash: () => new URL(page.url()).hash,
  };
}
