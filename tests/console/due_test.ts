/** "What comes next": equal kinds are one line that leads to its items. */

import assert from "node:assert/strict";
import { consoleCase } from "../support/console/console_case.ts";

const SECURE = { number: "4000002500003155", exp_month: 12, exp_year: 2034, cvc: "123" };

consoleCase("what comes next is grouped by kind", async (step, { enter, make }) => {
  const pay = async (body: Record<string, unknown>, times: number) => {
    for (let i = 0; i < times; i++) {
      await make("payments", { amount: 1_000 + i, currency: "EUR", ...body });
    }
  };
  await pay({ card: SECURE }, 12);
  await pay({ card: { token: "pm_card_visa" }, capture: "manual" }, 3);
  await pay({ outcome: "chargeback" }, 1);
  const { page, region, link, field, see, dialog, button, showsRows } = await enter();
  const card = region("What comes next");

  await step("16 things are three lines, the earliest first", async () => {
    await see("12 of them");
    assert.deepEqual(
      await card.getByRole("listitem").locator(".record > span").allInnerTexts(),
      ["Time to authenticate ends", "Authorization ends", "Lost without evidence"],
    );
  });
  await step("several lead to their list, a single one to its resource", async () => {
    await link("3 of them").click();
    await showsRows("Payments", 3);
    assert.equal(await field("Status").inputValue(), "authorized");
    await page.goBack();
    await card.getByRole("listitem").filter({ hasText: "Lost without evidence" })
      .getByRole("link").click();
    await see("The payer disputes the payment");
  });
  await step("the advance to a kind says what happens, and Enter confirms", async () => {
    await link("Home").click();
    await button("Advance the clock to: Authorization ends").click();
    await see("12 × Time to authenticate ends", /^[1-3] × Authorization ends$/);
    await dialog("Advance the clock?").getByRole("button", { name: "Advance", exact: true })
      .and(page.locator(":focus")).waitFor();
    await page.keyboard.press("Enter");
    await dialog().waitFor({ state: "detached" });
    await see(/^The clock shows .*1[3-5] payments ended/);
  });
});
