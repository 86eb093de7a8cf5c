/** The search field opens a page for an id of every kind of resource, or says why there is none. */

import assert from "node:assert/strict";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { PROJECT_DIR } from "../support/local/local_start.ts";
import { type ConsoleCase, consoleCase } from "../support/console/console_case.ts";

const SANDBOX = "/api-v1-sandbox";

/** The prefixes of the texts that the API calls an id, a cursor or a token. */
async function prefixesOfApi(): Promise<string[]> {
  const read = (name: string) => Deno.readTextFile(join(PROJECT_DIR, "docs", name));
  const [contract, openapi] = await Promise.all(["contract.md", "openapi.json"].map(read));
  const listed = /`((?:[a-z]+_ )+[a-z]+_)`/.exec(contract!)![1]!.split(" ");
  const patterns = [...openapi!.matchAll(/"\^([a-z]{2,5}_)/g)].map(([, prefix]) => prefix!);
  return [...new Set([...listed, ...patterns])].sort();
}

/** Makes one of each kind. Returns their ids by prefix. */
async function makeAll({ make, send }: ConsoleCase): Promise<Record<string, string>> {
  const first = async (path: string) => (await send("GET", path)).data[0];
  const whe_ = await make("webhook_endpoints", { delivery: "inbox" });
  const payment = { amount: 5_000, currency: "EUR", outcome: "success" };
  const pay_ = await make("payments", payment);
  const disputed = await make("payments", { ...payment, outcome: "chargeback" });
  const entry = await first(`ledger_entries?payment_id=${pay_}`);
  const destination = { iban: "DE89 3704 0044 0532 0130 00" };
  return {
    pay_,
    re_: await make(`payments/${pay_}/refund`, { amount: 100 }),
    dp_: (await first(`disputes?payment_id=${disputed}`)).id,
    tr_: await make("transfers", { amount: 100, currency: "EUR", destination }),
    evt_: (await first("events")).id,
    whe_,
    whd_: (await first(`webhook_deliveries?endpoint_id=${whe_}`)).id,
    le_: entry.id,
    txn_: entry.transaction_id,
    key_: (await first("api_keys")).id,
    req_: (await first(`${SANDBOX}/requests`)).id,
    // Of an event that never happens here, so that it stays.
    flt_: await make(`${SANDBOX}/faults`, {
      ...{ on: "delivery", fault: "duplicate", where: { event_type: "transfer.cancelled" } },
    }),
    env_: await make(`${SANDBOX}/sandboxes`, { name: "PR 34" }),
    inb_: (await send("GET", `webhook_endpoints/${whe_}/inbox`)).next_cursor,
    pm_: "pm_card_visa",
  };
}

/** The page of each kind, and a text that only this page has. */
const PAGES: Readonly<Record<string, [heading: RegExp, sign: (id: string) => string | RegExp]>> = {
  pay_: [/^50\.00 EUR$/, (id) => id],
  re_: [/^50\.00 EUR$/, (id) => id],
  dp_: [/^50\.00 EUR$/, (id) => id],
  tr_: [/^1\.00 EUR$/, (id) => id],
  evt_: [/\.\w+$/, (id) => id],
  whe_: [/^Inbox/, (id) => id],
  whd_: [/^50\.00 EUR|^Inbox/, () => "Deliveries"],
  le_: [/^Ledger$/, () => "EUR"],
  txn_: [/^Ledger$/, (id) => id],
  key_: [/^API key$/, () => "This page"],
  req_: [/^(GET|POST)/, (id) => id],
  flt_: [/^Fault$/, () => "1 of 1"],
  env_: [/^PR 34$/, (id) => id],
  inb_: [/^Search$/, () => "It is a cursor of an inbox."],
  pm_: [/^Search$/, () => "It is the token of a card."],
};

/** Types a text into the search field. */
async function search(page: Page, text: string): Promise<void> {
  await page.getByRole("heading", { level: 1 }).focus();
  await page.keyboard.press("/");
  await page.locator('[aria-label="Search"]:focus').waitFor();
  await page.keyboard.insertText(text);
  await page.keyboard.press("Enter");
}

consoleCase("an id of every kind opens its page", async (step, place) => {
  const { enter, send } = place;
  const ids = await makeAll(place);
  const { page, button, go, rows, see, press } = await enter();
  await step("the table has every prefix of the API", async () => {
    assert.deepEqual(Object.keys(PAGES).sort(), await prefixesOfApi());
  });
  /** Searches on a page that shows nothing of the search before. */
  const searchAnew = async (text: string) => {
    await go("balance");
    await page.getByRole("heading", { name: "Balance", level: 1 }).waitFor();
    await search(page, text);
  };
  for (const [prefix, [heading, sign]] of Object.entries(PAGES)) {
    await step(`${prefix} opens its page`, async () => {
      await searchAnew(ids[prefix]!);
      await page.getByRole("heading", { level: 1, name: heading }).waitFor();
      await page.getByRole("main").getByText(sign(ids[prefix]!)).first().waitFor();
    });
  }
  await step("the entry is marked in its transaction", async () => {
    await search(page, ids["le_"]!);
    const entries = rows("Ledger entries");
    await entries.and(page.locator("[aria-current]")).waitFor();
    assert.equal(await entries.count(), 2);
    const marked = page.locator("tr[aria-current]");
    assert.equal(await marked.getAttribute("title"), ids["le_"]);
    await marked.getByRole("link").first().click();
    await page.getByRole("heading", { level: 1, name: "50.00 EUR" }).waitFor();
  });
  for (const [direction, side] of [["debit", 1], ["credit", 2]] as const) {
    await step(`the ${direction} of a transaction is found`, async () => {
      const { data } = await send("GET", "ledger_entries?limit=100");
      const { id } = data.find((entry: { direction: string }) => entry.direction === direction);
      await search(page, id);
      await page.locator(`tr[aria-current][title="${id}"] td:nth-child(${side + 1})`)
        .getByText("EUR").waitFor();
    });
  }
  for (const prefix of Object.keys(PAGES).filter((name) => name !== "inb_" && name !== "pm_")) {
    await step(`an unknown ${prefix} is said to be unknown`, async () => {
      await searchAnew(prefix + "0".repeat(26));
      await page.getByRole("main").getByText(/not_found|No ledger entry/).first().waitFor();
    });
  }
  await step("a prefix that the API does not have", async () => {
    await search(page, "ab_" + "0".repeat(26));
    await see("The API has no resource with this prefix.");
  });
  await step("an unknown sandbox: the page says which ones have a page", async () => {
    await search(page, "env_" + "0".repeat(26));
    await see("Only a disposable sandbox has a page");
  });
  await step("the sandbox of this page has its page too, without a delete", async () => {
    await press("Sandboxes…");
    await page.getByLabel("Name").fill("PR 35");
    await press("Make and switch");
    await see("This is the disposable sandbox PR 35");
    const { data: [own] } = await send("GET", `${SANDBOX}/sandboxes?limit=1`);
    await search(page, own.id);
    await page.getByRole("heading", { level: 1, name: "PR 35" }).waitFor();
    await page.getByRole("main").getByText("This page").waitFor();
    assert.equal(await button("Delete…").count(), 0);
    await press(/^Back/);
  });
  await step("the page of a sandbox switches to it and deletes it", async () => {
    const { data: [other] } = await send("GET", `${SANDBOX}/sandboxes?limit=1`);
    await search(page, other.id);
    await button("Switch").waitFor();
    await press("Delete…", "Delete sandbox");
    await page.getByRole("main").getByText("Ended").first().waitFor();
  });
});
