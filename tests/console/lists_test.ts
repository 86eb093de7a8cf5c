/** The filters of lists, the times of a list, and the buttons of long forms. */

import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { consoleCase, DESKTOP, PHONE } from "../support/console/console_case.ts";

const PAYMENTS = "/api-v1-payments/v1/payments";

const rows = (page: Page) => page.getByRole("table", { name: "Payments" }).locator("tbody tr");

/** Fills a filter, as a user who goes to the next field. */
async function filter(page: Page, label: string, text: string): Promise<void> {
  await page.getByLabel(label, { exact: true }).fill(text);
  await page.getByLabel(label, { exact: true }).blur();
}

async function showsRows(page: Page, count: number): Promise<void> {
  await page.waitForFunction((count) => {
    // deno-lint-ignore no-explicit-any
    return (globalThis as any).document.querySelectorAll("tbody tr").length === count;
  }, count);
}

consoleCase("direction marks in a text leave the text beside it", async (_, { start, enter }) => {
  const customer = { email: "ada@example.com" };
  const description = "\u202eshoes";
  await start.call("POST", PAYMENTS, { amount: 500, currency: "EUR", description, customer });
  const { page } = await enter("#/payments");
  const [first, last] = await rows(page).getByText(customer.email).evaluate((shown) => {
    return [0, 14].map((at) => {
      // deno-lint-ignore no-explicit-any
      const range = (globalThis as any).document.createRange();
      range.setStart(shown.firstChild, at);
      range.setEnd(shown.firstChild, at + 1);
      return range.getBoundingClientRect().x as number;
    });
  });
  assert.ok(first! < last!, `${first} is right of ${last}`);
});

consoleCase("payments are found by reference, customer and time", async (step, place) => {
  const { start } = place;
  const times: string[] = [];
  for (
    const [reference, email] of [
      ["order-1", "ada@example.com"],
      ["order-2", "grace@example.com"],
      ["order-3", "ada@example.com"],
    ]
  ) {
    // The clock of the sandbox separates the payments by more than a second.
    await start.call("POST", "/api-v1-sandbox/clock", { advance: 60 });
    const { body } = await start.call("POST", PAYMENTS, {
      amount: 500,
      currency: "EUR",
      reference,
      customer: { email },
    });
    times.push((body as { created_at: string }).created_at);
  }
  const { page } = await place.enter("#/payments", { timezoneId: "America/New_York" });
  await rows(page).nth(2).waitFor();

  await step("by reference", async () => {
    await filter(page, "Reference", "order-2");
    await showsRows(page, 1);
    assert.match(await rows(page).innerText(), /order-2\s+grace@example\.com/);
    await page.getByRole("button", { name: "Clear filter", exact: true }).click();
    await showsRows(page, 3);
  });

  await step("by the customer’s e-mail", async () => {
    await filter(page, "Customer’s e-mail", "ada@example.com");
    await showsRows(page, 2);
    await filter(page, "Reference", "order-3");
    await showsRows(page, 1);
    await page.getByRole("button", { name: "Clear 2 filters", exact: true }).click();
    await showsRows(page, 3);
    await filter(page, "Customer’s e-mail", "ada");
    await page.locator("#customer-error").waitFor();
    await page.getByRole("button", { name: "Clear filter" }).click();
    // The fields are empty only then, and a text that is filled in before would be lost.
    await page.locator("#customer-error").waitFor({ state: "detached" });
  });

  await step("a time of the list is a time of the filter, in the same zone", async () => {
    await showsRows(page, 3);
    await page.getByRole("columnheader", { name: "Created America/New_York" }).waitFor();
    const shown = await rows(page).nth(1).locator(".when").innerText();
    const expected = new Intl.DateTimeFormat("en-GB", {
      timeZone: "America/New_York",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
    }).format(new Date(times[1]!));
    assert.ok(shown.endsWith(`, ${expected}`), `${shown} is not at ${expected}`);
    await filter(page, "Created after", shown);
    await showsRows(page, 2);
    await filter(page, "Created before", shown);
    await page.getByText("No payment matches").waitFor();
    await filter(page, "Created after", "");
    await showsRows(page, 1);
    assert.match(await rows(page).innerText(), /order-1/);
    const again = await page.getByLabel("Created before").inputValue();
    assert.equal(again, shown.replace(/:00$/, ""));
    // The address means the same time in every zone.
    const query = new URLSearchParams(page.url().split("?")[1]);
    assert.match(query.get("created_before")!, /^\d{4}-\d\d-\d\dT[\d:]{8}\.000Z$/);
  });

  await step("a text that is no time is refused at its field, and nothing is sent", async () => {
    const sent: string[] = [];
    page.on("request", (request) => sent.push(request.url()));
    await filter(page, "Created before", "yesterday");
    await page.locator("#created_before-error").getByText(/^Not a time: write it like/).waitFor();
    assert.deepEqual(sent.filter((url) => url.includes("yesterday")), []);
  });
});

consoleCase("forms and filters fit the screen", async (step, { enter }) => {
  const { page } = await enter("#/payments");
  const go = (place: string) => page.goto(`${page.url().split("#")[0]}#/${place}`);
  await page.setViewportSize(DESKTOP);

  await step("the filters of payments stand on one row, with every one set", async () => {
    await go(
      "payments?status=partially_refunded&method_kind=stablecoin&currency=USDC&reference=order-1001" +
        "&customer=ada@example.com&created_after=2026-11-23T09:05:07Z&created_before=2027-11-23T09:05:07Z",
    );
    await page.getByText("No payment matches").waitFor();
    const tops = await page.locator(".filters :is(select, input, button)").evaluateAll(
      // deno-lint-ignore no-explicit-any
      (controls: any[]) =>
        controls.map((control) => Math.round(control.getBoundingClientRect().top)),
    );
    assert.equal(tops.length, 8);
    assert.ok(Math.max(...tops) - Math.min(...tops) <= 2, tops.join());
  });

  for (const [name, viewport] of Object.entries({ DESKTOP, PHONE })) {
    for (const [place, label] of [["payments", "payment"], ["transfers", "transfer"]]) {
      await step(`the button of a new ${label} is in view, ${name}`, async () => {
        await page.setViewportSize(viewport);
        await go(place!);
        await page.getByRole("heading", { level: 1 }).waitFor();
        await go(`${place}/new`);
        const create = page.getByRole("button", { name: `Create ${label}` });
        await create.waitFor();
        const box = (await create.boundingBox())!;
        const bar = (await page.locator(".calls").boundingBox())!;
        assert.ok(box.y > 0 && box.y + box.height <= bar.y, JSON.stringify({ box, bar }));
        await create.click({ trial: true });
      });
    }
  }

  await step("a field that gets the focus by Tab is not behind the buttons", async () => {
    await page.setViewportSize(DESKTOP);
    await go("payments/new");
    await page.getByLabel("Amount", { exact: true }).focus();
    for (let i = 0; i < 25; i++) {
      await page.keyboard.press("Tab");
      const covered = await page.evaluate(() => {
        // deno-lint-ignore no-explicit-any
        const { document } = globalThis as any;
        const field = document.activeElement.closest(".field, .option");
        if (field === null) return null;
        const { bottom } = document.activeElement.getBoundingClientRect();
        const { top } = document.querySelector(".form > .actions").getBoundingClientRect();
        return bottom > top ? `${field.textContent}: ${bottom} > ${top}` : null;
      });
      assert.equal(covered, null);
    }
  });
});
