/** The filters of lists, the times of a list, and the buttons of long forms. */

import assert from "node:assert/strict";
import { consoleCase, DESKTOP, PHONE } from "../support/console/console_case.ts";

consoleCase("direction marks in a text leave the text beside it", async (_, { make, enter }) => {
  const customer = { email: "ada@example.com" };
  const description = "\u202eshoes";
  await make("payments", { amount: 500, currency: "EUR", description, customer });
  const { rows } = await enter("#/payments");
  const [first, last] = await rows("Payments").getByText(customer.email).evaluate((shown) => {
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
  const times: string[] = [];
  for (const [i, name] of ["ada", "grace", "ada"].entries()) {
    // The clock of the sandbox separates the payments by more than a second.
    await place.send("POST", "/api-v1-sandbox/clock", { advance: 60 });
    const customer = { email: `${name}@example.com` };
    const body = { amount: 500, currency: "EUR", reference: `order-${i + 1}`, customer };
    times.push((await place.send("POST", "payments", body)).created_at);
  }
  const zone = { timezoneId: "America/New_York" };
  const { page, field, press, see, hash, ...on } = await place.enter("#/payments", zone);
  const rows = on.rows("Payments");
  const showsRows = (count: number) => on.showsRows("Payments", count);
  /** Fills a filter, as a user who goes to the next field. */
  const filter = async (label: string, text: string) => {
    await field(label).fill(text);
    await field(label).blur();
  };
  await showsRows(3);

  await step("by reference", async () => {
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
});

consoleCase("forms and filters fit the screen", async (step, { enter }) => {
  const { page, button, field, go, see } = await enter("#/payments");
  await page.setViewportSize(DESKTOP);

  await step("the filters of payments stand on one row, with every one set", async () => {
    await go(
      "payments?status=partially_refunded&method_kind=stablecoin&currency=USDC&reference=order-1001" +
        "&customer=ada@example.com&created_after=2026-11-23T09:05:07Z&created_before=2027-11-23T09:05:07Z",
    );
    await see("No payment matches");
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
        const create = button(`Create ${label}`);
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
    await field("Amount").focus();
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
