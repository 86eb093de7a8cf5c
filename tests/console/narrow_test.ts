/** Views that are narrow: the current section is shown, and nothing touches its neighbour. */

import assert from "node:assert/strict";
import type { Locator } from "playwright-core";
import { freePort } from "../support/common/free_port.ts";
import { until } from "../support/common/until.ts";
import { consoleCase, pasteKey, PHONE } from "../support/console/console_case.ts";

/** The least distance of two buttons, one below the other. */
const DISTANCE_PX = 8;

async function boxOf(element: Locator) {
  await element.waitFor();
  return (await element.boundingBox())!;
}

consoleCase("narrow views show their parts apart", async (step, { enter, start, make, send }) => {
  const { page, go, button, field } = await enter("#/faults", { viewport: PHONE });
  const sections = page.getByRole("navigation", { name: "Sections" });
  for (const name of ["Faults", "Payments", "Webhooks"]) {
    await step(`a phone shows that the section is ${name}`, async () => {
      const link = sections.getByRole("link", { name });
      if (name !== "Faults") await link.click();
      await page.getByRole("heading", { name, level: 1 }).waitFor();
      const [all, current] = [
        await boxOf(sections),
        await boxOf(sections.locator("[aria-current]")),
      ];
      assert.equal(await sections.locator("[aria-current]").innerText(), name);
      assert.ok(current.x >= all.x, `${current.x} is left of ${all.x}`);
      assert.ok(current.x + current.width <= all.x + all.width, `${name} is cut on the right`);
    });
  }
  await step("a phone has no width for the setting of the key", async () => {
    assert.ok(!await field("Keep key on reload").isVisible());
  });
  await step("the badges of an endpoint begin at the same edge", async () => {
    const url = `http://127.0.0.1:${freePort()}/`;
    const endpoint = { url, events: ["*"] };
    await make("webhook_endpoints", endpoint);
    await make("payments", { amount: 500, currency: "EUR" });
    await until("the first attempt has failed", async () => {
      return (await send("GET", "webhook_endpoints")).data[0].failing === true;
    });
    await page.reload();
    await pasteKey(page, start.test_key);
    const row = page.getByRole("row").filter({ hasText: url });
    const [failing, enabled] = [row.getByText("Failing"), row.getByText("Enabled")];
    const [below, above] = [await boxOf(failing), await boxOf(enabled)];
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
});
