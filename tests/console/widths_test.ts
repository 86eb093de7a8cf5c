/**
 * Tables in every width: the columns that they show, the action that stays, and the box that
 * scrolls if even these do not fit. Every view is measured by `look.ts`.
 */

import assert from "node:assert/strict";
import { consoleCase, DESKTOP } from "../support/console/console_case.ts";
import { until } from "../support/common/until.ts";
import { faultsOfWidth, showsCurrent } from "../support/console/look.ts";

const WIDTHS = [320, 390, 800, 1024, 1280, 1440];

/**
 * A list, and the width of the page from which its table has each column; "": the actions. The
 * largest amounts make the table of the ledger scroll up to the last width.
 */
const TABLES: [place: string, columns: Record<string, number>, scrolls_to?: number][] = [
  ["payments", {
    ...{ Amount: 320, Status: 320, Method: 800, Created: 1024 },
    ...{ "Description and customer": 1280, Reference: 1280 },
  }],
  ["checkouts", {
    ...{ Amount: 320, Status: 320, Kind: 800, Created: 1024 },
    ...{ "Description and customer": 1280, Reference: 1280 },
  }],
  ["refunds", { Amount: 320, Status: 320, Payment: 800, Created: 1024, Reason: 1280 }],
  ["disputes", {
    ...{ Amount: 320, Status: 320, Payment: 800, Created: 1024 },
    ...{ "Evidence until": 1280, Reason: 1280 },
  }],
  ["transfers", { Amount: 320, Status: 320, Destination: 800, Created: 1024, Description: 1280 }],
  ["instruments", {
    ...{ Method: 320, Status: 320, Customer: 1024, "Last use": 1024, Use: 1280, Mandate: 1280 },
  }],
  ["ledger", {
    ...{ Account: 320, Debit: 320, Credit: 320, Of: 1024, Created: 1024, Transaction: 1280 },
  }, 320],
  ["webhooks", { URL: 320, Status: 320, Events: 800, Created: 1024 }],
  ["requests?source=any", {
    ...{ Status: 320, Request: 320, Resource: 800, Time: 1024, Duration: 1280 },
    ...{ "Idempotency key": 1280 },
  }],
  ["faults", { Fault: 320, Left: 320, "": 320, Declared: 1024 }],
  ["keys", { Name: 320, Status: 320, "": 320, Created: 1024, Scopes: 1280, "Last used": 1280 }],
];

/** The longest texts that a list can have. */
const LARGE = { amount: 999_999_999_999, currency: "BHD" };
const LONG = "Two towers, delivered on Saturday to the address of the customer";
const IBAN = "DE89 3704 0044 0532 0130 00";

consoleCase("tables have the columns for which they have the width", async (step, place) => {
  const { make, send } = place;
  const customer = { id: "user-1906", email: `${"grace".repeat(10)}@example.com` };
  const pay = (more: object) => make("payments", { ...LARGE, customer, ...more });
  const paid = await pay({ outcome: "success", description: LONG, reference: LONG });
  await make(`payments/${paid}/refund`, { reason: "requested_by_customer" });
  const sold = { ...LARGE, customer, description: LONG, reference: LONG, max_payments: null };
  await make("checkouts", sold);
  const disputed = await pay({ outcome: "chargeback" });
  await pay({ card: { token: "pm_card_visa" }, amount: 1_000, save: "off_session" });
  await pay({ outcome: "success", currency: "EUR" });
  for (const holder_name of ["No match Ltd", "Ada"]) {
    const destination = { iban: IBAN, holder_name };
    await make("transfers", { currency: "EUR", amount: 2_500, destination, description: LONG });
  }
  for (let i = 0; i < 2; i++) {
    const url = `http://127.0.0.1:4343/${"path/".repeat(20)}${i}`;
    await make("webhook_endpoints", { url, description: LONG });
  }
  const where = { path: "/api-v1-payments/v1/balance" };
  await make("/api-v1-sandbox/faults", { on: "request", fault: "rate_limited", where });
  await send("POST", "api_keys", { name: LONG, expires_at: "2099-01-01T00:00:00Z" });
  // The name of the time zone is as long as any.
  const zone = { timezoneId: "America/Argentina/ComodRivadavia" };
  const { page, go, region } = await place.enter("#/payments", zone);

  for (const [at, columns, scrolls_to = 0] of TABLES) {
    await step(at, async () => {
      await go(at);
      const table = page.locator("main > .scroll table");
      await table.locator("tbody tr").first().waitFor();
      for (const width of WIDTHS) {
        await page.setViewportSize({ ...DESKTOP, width });
        const heads = await table.locator("thead tr > *").filter({ visible: true }).allInnerTexts();
        const shown = heads.map((head) => head.split(/\s+America/)[0]!);
        const expected = Object.keys(columns).filter((name) => columns[name]! <= width);
        assert.deepEqual(shown.toSorted(), expected.toSorted(), `${width}`);
        assert.deepEqual(await faultsOfWidth(page), [], `${width}`);
        const scrolls = await page.locator(".scroll[tabindex]").count() > 0;
        assert.equal(scrolls, width <= scrolls_to, `${width} scrolls`);
      }
    });
  }
  await page.setViewportSize(DESKTOP);
  await step("a text that is cut is the title of its cell", async () => {
    await go("payments");
    const cut = page.locator("td.grow", { hasText: LONG.slice(0, 10) }).first();
    await cut.and(page.getByTitle(`${LONG} ${customer.email}`)).waitFor();
  });
  await step("the deliveries of a payment to two endpoints fit a small phone", async () => {
    const name = "Deliveries by event and endpoint";
    await page.setViewportSize({ ...DESKTOP, width: 320 });
    await go(`payments/${await pay({ outcome: "refunded" })}`);
    await page.getByRole("table", { name }).getByText("connection failed").first().waitFor();
    await until("no box hides a part", async () => (await faultsOfWidth(page)).length === 0);
    assert.equal(await page.getByRole("group", { name }).count(), 0);
  });
  await step("a box that scrolls takes the focus, and the arrows scroll it", async () => {
    await page.setViewportSize({ ...DESKTOP, width: 320 });
    await go(`payments/${disputed}`);
    const box = region("Ledger").getByRole("group", { name: "Chargeback" });
    await box.focus();
    await page.keyboard.press("ArrowRight");
    await until("the box scrolls", () => box.evaluate(({ scrollLeft }) => scrollLeft > 0));
    await page.setViewportSize(DESKTOP);
    await region("Ledger").locator("table").first().waitFor();
    await box.waitFor({ state: "detached" });
  });
  await step("forced colours mark the current section", async () => {
    assert.ok(await showsCurrent(page));
  });
});
