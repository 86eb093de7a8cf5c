/**
 * The search field: an id of every kind of resource opens its page, or the page says why there is
 * none, and a part of a text lists matches. A found request is sent again with the same idempotency
 * key or with a new one.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { PROJECT_DIR } from "../support/local/local_start.ts";
import { until } from "../support/common/until.ts";
import { consoleCase } from "../support/console/console_case.ts";
import { makeOneOfEach } from "../support/console/one_of_each.ts";

const SANDBOX = "/api-v1-sandbox";

/** The prefixes of the texts that the API calls an id, a cursor or a token. */
async function prefixesOfApi(): Promise<string[]> {
  const read = (name: string) => Deno.readTextFile(join(PROJECT_DIR, "docs", name));
  const [contract, openapi] = await Promise.all(["contract.md", "openapi.json"].map(read));
  const listed = /`((?:[a-z]+_ )+[a-z]+_)`/.exec(contract!)![1]!.split(" ");
  const patterns = [...openapi!.matchAll(/"\^([a-z]{2,5}_)/g)].map(([, prefix]) => prefix!);
  return [...new Set([...listed, ...patterns])].sort();
}

/** The page of each kind, and a text that only this page has. */
const PAGES: Readonly<Record<string, [heading: RegExp, sign: (id: string) => string | RegExp]>> = {
  pay_: [/^50\.00 EUR$/, (id) => id],
  chk_: [/^7\.00 EUR$/, (id) => id],
  ins_: [/^Visa ···· 4242$/, (id) => id],
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
  chg_: [/^Search$/, () => "It is a cursor of GET /changes."],
  inb_: [/^Search$/, () => "It is a cursor of an inbox."],
  pm_: [/^Search$/, () => "It is the token of a card."],
};

consoleCase("what is searched is found, and sent again", async (step, place) => {
  const { enter, start, make, send, count } = place;
  const response = await fetch(`${start.base_url}/api-v1-payments/v1/payments`, {
    method: "POST",
    headers: {
      Authorization: `Bearer ${start.test_key}`,
      "Content-Type": "application/json",
      "Idempotency-Key": "order-1001",
    },
    body: JSON.stringify({
      amount: 1999,
      currency: "EUR",
      reference: "order-1001",
      customer: { email: "grace@example.com" },
      card: { number: "4242 4242 4242 4242", exp_month: 12, exp_year: 2034, cvc: "123" },
    }),
  });
  const { id } = await response.json() as { id: string };
  const request_id = response.headers.get("Request-Id")!;
  const { page, button, link, region, radio, rows, heading, status, go, see, press } =
    await enter();
  const main = page.getByRole("main");
  const field = page.getByRole("searchbox", { name: "Search" });
  const title = (name: string | RegExp) => page.getByRole("heading", { level: 1, name });
  const search = async (text: string) => {
    await title(/./).focus();
    // A dialog that is still closing takes the key.
    await until("the key leads to the field", async () => {
      await page.keyboard.press("/");
      return await page.locator('[aria-label="Search"]:focus').count() > 0;
    });
    await page.keyboard.insertText(text);
    await page.keyboard.press("Enter");
  };
  /** Searches on a page that shows nothing of the search before. */
  const searchAnew = async (text: string) => {
    await go("balance");
    await title("Balance").waitFor();
    await search(text);
  };

  await step("the title names the page", async () => {
    assert.equal(await page.title(), "Home · Sandbox");
  });
  await step("a part of an e-mail address lists the payment", async () => {
    await search("GRACE@ex");
    await region("Payments").getByText("order-1001").waitFor();
    assert.equal(await field.inputValue(), "GRACE@ex");
    assert.equal(await page.title(), "Search for GRACE@ex · Sandbox");
  });
  await step("an id opens its page, and a slash in a field is text", async () => {
    await field.fill(` ${id} `);
    await field.press("Enter");
    await heading("19.99 EUR").waitFor();
    assert.equal(await page.title(), `Payment …${id.slice(-6)} · Sandbox`);
    await field.focus();
    await page.keyboard.type("a/b");
    assert.equal(await field.inputValue(), "a/b");
  });
  await step("a request shows its masked body and its events", async () => {
    await search(request_id);
    const body = region("Request body as JSON");
    assert.match(await body.innerText(), /"number": "…"[\s\S]*"cvc": "…"/);
    await region("Events").getByText("payment.completed").waitFor();
    await page.getByRole("tab", { name: "Python" }).click();
    assert.match(await page.getByRole("tabpanel").innerText(), /"Idempotency-Key": "order-1001"/);
  });
  await step("sent again with the same key it is a replay", async () => {
    await press("Send again…");
    assert.match(await page.getByRole("textbox", { name: "Body" }).inputValue(), /4242 4242 4242/);
    await press("Send");
    await see("Nothing happened twice.");
    await status("replay").waitFor();
    assert.equal(await count("payments"), 1);
  });
  await step("sent again with a new key it is a new payment", async () => {
    await press("Send again…");
    await radio("A new key").check();
    await press("Send");
    await see("Sent again: 201.");
    await region("Events").getByText("payment.created").waitFor();
    assert.equal(await count("payments"), 2);
  });
  await step("an event tells what changed since the one before", async () => {
    await make(`payments/${id}/refund`, { amount: 500 });
    const { data } = await send("GET", `events?payment_id=${id}`);
    const { id: event } = data.find(({ type }: { type: string }) =>
      type === "payment.partially_refunded"
    );
    await search(event);
    const changes = page.getByRole("table", { name: "What changed" });
    await changes.waitFor();
    assert.deepEqual(
      (await changes.locator("tbody tr").allInnerTexts()).map((row) => row.split(/\s+/)),
      [["status", "completed", "partially_refunded"], ["amount_refunded", "0", "500"]],
    );
    await link("payment.completed").click();
    await heading("payment.completed").waitFor();
  });

  await step("matches have pages", async () => {
    const payment = { amount: 100, currency: "EUR", description: "one of many" };
    for (let n = 0; n < 21; n++) await make("payments", payment);
    await search("of many");
    const matches = region("Payments").locator("tbody tr");
    await matches.nth(19).waitFor();
    await region("Payments").getByText("Older").click();
    await until("the last page has one", async () => await matches.count() === 1);
    await region("Payments").getByText("Newest").click();
    await matches.nth(19).waitFor();
  });

  const { ids } = await makeOneOfEach(place);
  await step("the table has every prefix of the API", async () => {
    assert.deepEqual(Object.keys(PAGES).sort(), await prefixesOfApi());
  });
  for (const [prefix, [heading, sign]] of Object.entries(PAGES)) {
    await step(`${prefix} opens its page`, async () => {
      await searchAnew(ids[prefix]!);
      await title(heading).waitFor();
      await main.getByText(sign(ids[prefix]!)).first().waitFor();
    });
  }
  await step("the entry is marked in its transaction", async () => {
    await search(ids["le_"]!);
    const entries = rows("Ledger entries");
    await entries.and(page.locator("[aria-current]")).waitFor();
    assert.equal(await entries.count(), 2);
    const marked = page.locator("tr[aria-current]");
    assert.equal(await marked.getAttribute("title"), ids["le_"]);
    await marked.getByRole("link").first().click();
    await title("50.00 EUR").waitFor();
  });
  for (
    const prefix of Object.keys(PAGES).filter((name) => !["chg_", "inb_", "pm_"].includes(name))
  ) {
    await step(`an unknown ${prefix} is said to be unknown`, async () => {
      await searchAnew(prefix + "0".repeat(26));
      await main.getByText(/not_found|No ledger entry/).first().waitFor();
    });
  }
  await step("a prefix that the API does not have", async () => {
    await search("ab_" + "0".repeat(26));
    await see("The API has no resource with this prefix.");
  });
  await step("an unknown sandbox: the page says which ones have a page", async () => {
    await search("env_" + "0".repeat(26));
    await see("Only a disposable sandbox has a page");
  });
  await step("the sandbox of this page has its page too, without a delete", async () => {
    await press("Sandboxes…");
    await page.getByLabel("Name").fill("PR 35");
    await press("Make and switch");
    await see("This is the disposable sandbox PR 35");
    const { data: [own] } = await send("GET", `${SANDBOX}/sandboxes?limit=1`);
    await search(own.id);
    await title("PR 35").waitFor();
    await main.getByText("This page").waitFor();
    assert.equal(await button("Delete…").count(), 0);
    await press(/^Back/);
  });
  await step("the page of a sandbox switches to it and deletes it", async () => {
    const { data: [other] } = await send("GET", `${SANDBOX}/sandboxes?limit=1`);
    await search(other.id);
    await button(`Switch to ${other.name}`).waitFor();
    await press("Delete…", "Delete sandbox");
    await main.getByText("Ended").first().waitFor();
  });
});
