/** The layout: on a phone and a desktop nothing is cut, covered or touches its neighbour. */

import assert from "node:assert/strict";
import type { Locator } from "playwright-core";
import { freePort } from "../support/common/free_port.ts";
import { until } from "../support/common/until.ts";
import { consoleCase, DESKTOP, PHONE } from "../support/console/console_case.ts";

/** The least distance of two buttons, one below the other. */
const DISTANCE_PX = 8;
/** The filters of payments, with every one set. */
const FILTERS = new URLSearchParams({
  status: "partially_refunded",
  method_kind: "stablecoin",
  currency: "USDC",
  reference: "order-1001",
  customer: "ada@example.com",
  created_after: "2026-11-23T09:05:07Z",
  created_before: "2027-11-23T09:05:07Z",
});

async function boxOf(element: Locator) {
  await element.waitFor();
  return (await element.boundingBox())!;
}

consoleCase("parts are in view and apart", async (step, { enter, make, send }) => {
  const { page, go, button, field, see } = await enter("#/faults", { viewport: PHONE });
  const sections = page.getByRole("navigation", { name: "Sections" });
  for (const name of ["Faults", "Payments", "Webhooks"]) {
    await step(`a phone shows that the section is ${name}`, async () => {
      const link = sections.getByRole("link", { name });
      if (name !== "Faults") await link.click();
      await page.getByRole("heading", { name, level: 1 }).waitFor();
      const current = sections.locator("[aria-current]");
      const [all, shown] = [await boxOf(sections), await boxOf(current)];
      assert.equal(await current.innerText(), name);
      assert.ok(shown.x >= all.x, `${shown.x} is left of ${all.x}`);
      assert.ok(shown.x + shown.width <= all.x + all.width, `${name} is cut on the right`);
    });
  }
  await step("a phone has no width for the setting of the key", async () => {
    assert.ok(!await field("Keep key on reload").isVisible());
  });
  await step("the badges of an endpoint begin at the same edge", async () => {
    const url = `http://127.0.0.1:${freePort()}/`;
    await make("webhook_endpoints", { url, events: ["*"] });
    await make("payments", { amount: 500, currency: "EUR" });
    await until("the first attempt has failed", async () => {
      return (await send("GET", "webhook_endpoints")).data[0].failing === true;
    });
    const row = page.getByRole("row").filter({ hasText: url });
    const [below, above] = [
      await boxOf(row.getByText("Failing")),
      await boxOf(row.getByText("Enabled")),
    ];
    assert.equal(below.x, above.x);
    assert.ok(below.y > above.y + above.height, "the badges touch each other");
  });
  await step("the buttons of a dispute do not touch each other", async () => {
    const dispute = { amount: 5000, currency: "EUR", outcome: "chargeback" };
    await go(`payments/${await make("payments", dispute)}`);
    const submit = await boxOf(button("Submit evidence"));
    const accept = await boxOf(button("Accept the dispute…"));
    assert.ok(accept.y - submit.y - submit.height >= DISTANCE_PX, "the buttons touch each other");
  });
  for (const [name, viewport] of Object.entries({ PHONE, DESKTOP })) {
    for (const label of ["payment", "transfer"]) {
      await step(`the button of a new ${label} is in view, ${name}`, async () => {
        await page.setViewportSize(viewport);
        await go(`${label}s`);
        await page.getByRole("heading", { level: 1 }).waitFor();
        await go(`${label}s/new`);
        const create = button(`Create ${label}`);
        const [box, bar] = [await boxOf(create), await boxOf(page.locator(".calls"))];
        assert.ok(box.y > 0 && box.y + box.height <= bar.y, JSON.stringify({ box, bar }));
        await create.click({ trial: true });
      });
    }
  }
  await step("the filters of payments stand on one row, with every one set", async () => {
    await go(`payments?${FILTERS}`);
    await see("No payment matches");
    const tops = await page.locator(".filters :is(select, input, button)").evaluateAll(
      // deno-lint-ignore no-explicit-any
      (controls: any[]) =>
        controls.map((control) => Math.round(control.getBoundingClientRect().top)),
    );
    assert.equal(tops.length, 8);
    assert.ok(Math.max(...tops) - Math.min(...tops) <= 2, tops.join());
  });
  await step("a field that gets the focus by Tab is not behind the buttons", async () => {
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
