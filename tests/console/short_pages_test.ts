/** Lists in the console with pages that are empty before the end of the list. */

import { consoleCase } from "../support/console/console_case.ts";

consoleCase("an empty page has a link to the older ones", async (step, { send, enter }) => {
  const body = await send("POST", "payments", { amount: 777, currency: "CHF" });
  const first = `pay_${"1".repeat(26)}`;
  const { page, link, see } = await enter("#/payments");
  // The first page of the filtered list has no match, the second one has.
  await page.route("**/v1/payments?*currency=CHF*", async (route) => {
    const cursor = new URL(route.request().url()).searchParams.get("starting_after");
    await route.fulfill({
      headers: { "Access-Control-Allow-Origin": "*" },
      json: cursor === first
        ? { object: "list", url: "/v1/payments", data: [body], has_more: false, next_cursor: null }
        : { object: "list", url: "/v1/payments", data: [], has_more: true, next_cursor: first },
    });
  });
  await step("the page says that it has no match yet, not that there is none", async () => {
    await page.getByLabel("Currency").fill("CHF");
    await page.getByLabel("Currency").blur();
    await see("None found yet");
  });
  await step("the link leads to the older ones, and another to the newest", async () => {
    await link("Older").click();
    await see("7.77 CHF");
    await link("Newest").click();
    await see("None found yet");
  });
});
