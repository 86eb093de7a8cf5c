/**
 * Lists: their rows are selected and opened, the way back keeps filters and page, filters find
 * payments, an account of the balance leads to its entries, and lists are saved as CSV.
 */

import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { consoleCase } from "../support/console/console_case.ts";

const SANDBOX = "/api-v1-sandbox/payments";
/** More than a page of a list. */
const MADE = 45;
const FORMULA = '=HYPERLINK("http://x","y")';

/** The text that is selected, and how far the page is scrolled. Both run in the page. */
const selected = (page: Page) => page.evaluate(() => String(getSelection()));
const scrolled = (page: Page) => page.evaluate(() => scrollY);

consoleCase("rows of payments are selected, opened, left and found", async (step, place) => {
  const { make, send } = place;
  for (let i = 1; i <= MADE; i++) {
    const body = { amount_minor: 100 * i, currency: "EUR", outcome: "success" };
    await make(SANDBOX, { ...body, reference: `INV-${i}` });
  }
  const zone = { timezoneId: "America/New_York" };
  const { page, link, region, heading, field, go, hash, see, press, ...on } = await place.enter(
    "#/payments",
    zone,
  );
  const rows = on.rows("Payments");
  const showsRows = (count: number) => on.showsRows("Payments", count);
  await rows.nth(19).waitFor();
  const first = rows.first();

  await step("a drag over a reference selects its text and opens nothing", async () => {
    const { x, y, width, height } = await first.getByText(`INV-${MADE}`).evaluate((cell) => {
      const range = document.createRange();
      range.selectNodeContents(cell);
      const { x, y, width, height } = range.getBoundingClientRect();
      return { x, y, width, height };
    });
    await page.mouse.move(x + 1, y + height / 2);
    await page.mouse.down();
    await page.mouse.move(x + width - 1, y + height / 2, { steps: 5 });
    await page.mouse.up();
    assert.match(`INV-${MADE}`, new RegExp(await selected(page)));
    assert.ok((await selected(page)).length >= 4, await selected(page));
    assert.equal(hash(), "#/payments");
  });
  await step("a click on a cell opens the payment", async () => {
    await page.mouse.click(5, 5);
    await first.locator("td").nth(2).click();
    await heading("45.00 EUR").waitFor();
    await link("Payments").last().click();
  });

  await step("an older page begins at its top", async () => {
    await page.getByLabel("Status").selectOption("completed");
    await page.waitForURL(/status=completed$/);
    await rows.nth(19).waitFor();
    const older = link("Older");
    await older.scrollIntoViewIfNeeded();
    assert.ok(await scrolled(page) > 0);
    await older.click();
    await rows.filter({ hasText: `INV-${MADE}` }).waitFor({ state: "detached" });
    assert.equal(await rows.count(), 20);
    assert.equal(await scrolled(page), 0);
  });
  for (const leave of ["the crumb", "the back button"]) {
    await step(`${leave} leads back to the page and its filters`, async () => {
      const list = hash();
      assert.match(list, /status=completed&starting_after=pay_/);
      await first.getByRole("link").click();
      await region("Timeline").waitFor();
      if (leave === "the crumb") await page.locator(".crumb a").click();
      else await page.goBack();
      await first.waitFor();
      assert.equal(hash(), list);
    });
  }
  await step("the navigation leads to the whole list", async () => {
    await page.getByRole("navigation", { name: "Sections" }).getByText("Payments").click();
    await rows.filter({ hasText: `INV-${MADE}` }).waitFor();
    assert.equal(hash(), "#/payments");
  });
  await step(
    "a reset asks first, and forgets the filters and the page, whose cursor is gone",
    async () => {
      await go("transfers?status=pending");
      await see("No transfer matches");
      await press("Reset sandbox", "Keep everything", "Reset sandbox", "Delete everything");
      await see(/^Reset: 45 payments/, "No payments yet");
      await go("transfers/new");
      await heading("Create a transfer").waitFor();
      assert.equal(await page.locator(".crumb a").getAttribute("href"), "#/transfers");
    },
  );

  const times: string[] = [];
  for (const [i, name] of ["ada", "grace", "ada"].entries()) {
    // The clock of the sandbox separates the payments by more than a second.
    await send("POST", "/api-v1-sandbox/clock", { advance: 60 });
    const customer = { email: `${name}@example.com` };
    const body = { amount: 500, currency: "EUR", reference: `order-${i + 1}`, customer };
    times.push((await send("POST", "payments", body)).created_at);
  }
  /** Fills a filter, as a user who goes to the next field. */
  const filter = async (label: string, text: string) => {
    await field(label).fill(text);
    await field(label).blur();
  };
  await go("payments");

  await step("payments are found by reference", async () => {
    await showsRows(3);
    await filter("Reference", "order-2");
    await showsRows(1);
    assert.match(await rows.innerText(), /order-2\s+grace@example\.com/);
    await press("Clear filter");
    await showsRows(3);
  });
  await step("by the customer’s e-mail", async () => {
    await filter("Customer’s e-mail", "ada@example.com");
    await showsRows(2);
    await filter("Reference", "order-3");
    await showsRows(1);
    await press("Clear 2 filters");
    await showsRows(3);
    await filter("Customer’s e-mail", "ada");
    await page.locator("#customer-error").waitFor();
    await press("Clear filter");
    // The fields are empty only then, and a text that is filled in before would be lost.
    await page.locator("#customer-error").waitFor({ state: "detached" });
  });
  await step("a time of the list is a time of the filter, in the same zone", async () => {
    await showsRows(3);
    await page.getByRole("columnheader", { name: "Created America/New_York" }).waitFor();
    const shown = await rows.nth(1).locator(".when").innerText();
    const expected = new Intl.DateTimeFormat("en-GB", {
      timeZone: "America/New_York",
      timeStyle: "medium",
    }).format(new Date(times[1]!));
    assert.ok(shown.endsWith(`, ${expected}`), `${shown} is not at ${expected}`);
    await filter("Created after", shown);
    await showsRows(2);
    await filter("Created before", shown);
    await see("No payment matches");
    await filter("Created after", "");
    await showsRows(1);
    assert.match(await rows.innerText(), /order-1/);
    assert.equal(await field("Created before").inputValue(), shown.replace(/:00$/, ""));
    // The address means the same time in every zone.
    const query = new URLSearchParams(hash().split("?")[1]);
    assert.match(query.get("created_before")!, /^\d{4}-\d\d-\d\dT[\d:]{8}\.000Z$/);
  });
  await step("a text that is no time is refused at its field, and nothing is sent", async () => {
    const sent: string[] = [];
    page.on("request", (request) => sent.push(request.url()));
    await filter("Created before", "yesterday");
    await page.locator("#created_before-error").getByText(/^Not a time: write it like/).waitFor();
    assert.deepEqual(sent.filter((url) => url.includes("yesterday")), []);
  });
  await step("an empty page before the end has a link to the older ones", async () => {
    const found = await send("POST", "payments", { amount: 777, currency: "CHF" });
    const first = `pay_${"1".repeat(26)}`;
    // The first page of the filtered list has no match, the second one has.
    await page.route("**/v1/payments?*currency=CHF*", (route) => {
      const cursor = new URL(route.request().url()).searchParams.get("starting_after");
      const more = cursor === first
        ? { data: [found], has_more: false, next_cursor: null }
        : { data: [], has_more: true, next_cursor: first };
      return route.fulfill({ json: { object: "list", url: "/v1/payments", ...more } });
    });
    await go("payments?currency=CHF");
    await see("None found yet");
    await link("Older").click();
    await see("7.77 CHF");
    await link("Newest").click();
    await see("None found yet");
    await page.unrouteAll();
  });
  await step("direction marks in a text leave the text beside it", async () => {
    const customer = { email: "ada@example.com" };
    await make("payments", { amount: 500, currency: "USD", description: "\u202eshoes", customer });
    await go("payments?currency=USD");
    const [left, right] = await rows.getByText(customer.email).evaluate((shown) => {
      return [0, 14].map((at) => {
        const range = document.createRange();
        range.setStart(shown.firstChild!, at);
        range.setEnd(shown.firstChild!, at + 1);
        return range.getBoundingClientRect().x;
      });
    });
    assert.ok(left! < right!, `${left} is right of ${right}`);
  });
});

/** The records of a file. The texts of these tests have no line breaks. */
const records = (text: string) => text.replace(/^\uFEFF/, "").trimEnd().split("\r\n");

consoleCase(
  "money is found in lists, and lists are saved as CSV",
  async (step, { make, enter }) => {
    const pay = (body: Record<string, unknown>) =>
      make(SANDBOX, { ...{ amount_minor: 5_000, currency: "EUR", outcome: "success" }, ...body });
    const paid = await pay({ description: FORMULA });
    await pay({ currency: "USD" });
    const waiting = await pay({ settlement: "manual" });
    await make(`payments/${paid}/refund`, { amount: 700, reason: "duplicate" });
    await make(`payments/${waiting}/refund`, { amount: 300 });
    await pay({ outcome: "chargeback", amount_minor: 900 });
    const on = await enter("#/refunds");
    const { page, rows, showsRows, field, press, see, go, fresh, hash, region } = on;

    await step("refunds of all payments, filtered by status", async () => {
      await showsRows("Refunds", 2);
      await field("Status").selectOption("pending");
      await showsRows("Refunds", 1);
      assert.match(await rows("Refunds").innerText(), /3\.00 EUR\s+Pending/);
      await rows("Refunds").locator("td").nth(1).click();
      await region("Timeline").waitFor();
      assert.equal(hash(), `#/payments/${waiting}`);
    });
    await step("disputes of all payments", async () => {
      await go("disputes");
      await showsRows("Disputes", 1);
      assert.match(await rows("Disputes").innerText(), /9\.00 EUR\s+Needs response/);
      await field("Status").selectOption("won");
      await see("No dispute matches");
    });
    await step("an account of the balance leads to its entries in this currency", async () => {
      await go("balance");
      const account = page.getByRole("table", { name: "Accounts in EUR" })
        .getByRole("row", { name: /^Available/ });
      await account.locator("td").last().click();
      // Two captures, a disputed one and its chargeback, and the completed refund.
      await showsRows("Ledger entries", 5);
      assert.equal(hash(), "#/ledger?account=available&currency=EUR");
      await rows("Ledger entries").first().getByRole("link").last().click();
      await showsRows("Ledger entries", 2);
    });

    await step("a ledger that does not fit on a page of the API says so", async () => {
      await go(`payments/${paid}`);
      await region("Ledger").getByText("Capture").waitFor();
      const cut = region("Ledger").getByText("The newest 4 are shown. There are more.");
      assert.equal(await cut.count(), 0);
      await page.route("**/ledger_entries?*", async (route) => {
        assert.equal(new URL(route.request().url()).searchParams.get("limit"), "100");
        const response = await route.fetch();
        await route.fulfill({ response, json: { ...await response.json(), has_more: true } });
      });
      await fresh(`payments/${paid}`);
      await cut.waitFor();
      await page.unrouteAll({ behavior: "wait" });
    });

    const saved = () =>
      page.evaluate(async () => {
        const folder = await navigator.storage.getDirectory();
        const handle = await folder.getFileHandle("saved.csv");
        return await (await handle.getFile()).text();
      });
    await step(
      "a file that the browser writes page by page has the filtered payments",
      async () => {
        for (let i = 0; i < 103; i++) await pay({ currency: "CHF", reference: `order-${i}` });
        await page.evaluate(() => {
          // The dialog of the system is not part of the page: a file of the origin takes its place.
          const showSaveFilePicker = async () => {
            const folder = await navigator.storage.getDirectory();
            return await folder.getFileHandle("saved.csv", { create: true });
          };
          Object.assign(globalThis, { showSaveFilePicker });
        });
        await go("payments?currency=CHF");
        await showsRows("Payments", 20);
        await press("Export CSV");
        await see("Exported 103 payments.");
        const [head, ...items] = records(await saved());
        assert.match(head!, /^id,created_at,status,amount_decimal,currency,amount_minor,/);
        assert.equal(items.length, 103);
        assert.match(items[0]!, /^pay_\w{26},[^,]+,completed,50\.00,CHF,5000,.*,order-102,/);
        assert.equal(new Set(items).size, 103);
      },
    );
    await step(
      "without that, the browser downloads the file, and no cell is a formula",
      async () => {
        await page.evaluate("globalThis.showSaveFilePicker = undefined");
        await go("payments?currency=EUR");
        await showsRows("Payments", 3);
        const saving = page.waitForEvent("download");
        await press("Export CSV");
        const file = await saving;
        assert.match(file.suggestedFilename(), /^payments-\d{4}-\d\d-\d\d\.csv$/);
        const items = records(await Deno.readTextFile(await file.path()));
        assert.equal(items.length, 4);
        assert.ok(items[3]!.includes(`,"'=HYPERLINK(""http://x"",""y"")",`), items[3]);
      },
    );
  },
);
