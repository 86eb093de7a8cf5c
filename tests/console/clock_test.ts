/**
 * The clock of the sandbox and what it brings next, grouped by kind, and the transcript of a seeded
 * sandbox.
 */

import assert from "node:assert/strict";
import { formatMinute } from "../../apps/console/data/times.ts";
import { consoleCase } from "../support/console/console_case.ts";

const DAY = 86_400_000;
const SECURE = { number: "4000002500003155", exp_month: 12, exp_year: 2034, cvc: "123" };

consoleCase("the clock is advanced, frozen and shown", async (step, { enter, make, send }) => {
  const on = await enter();
  const { page, dialog, press, fill, submit, see, button, region, link, field } = on;
  const head = page.locator(".clock");
  const set = async (advance: string, after: string) => {
    await head.click();
    await submit({ "Advance by": advance, "After that": after }, "Set the clock");
    await dialog().waitFor({ state: "detached" });
  };
  const shown = () => send("GET", "/api-v1-sandbox/clock");
  const pay = async (body: object, times: number) => {
    for (let i = 0; i < times; i++) {
      await make("payments", { amount: 1_000 + i, currency: "EUR", ...body });
    }
  };
  await step("a real clock shows no time", async () => {
    assert.equal((await head.innerText()).trim(), "Clock");
  });
  await step("an advance by 7 days is done and told, and the head shows the time", async () => {
    await set("7 days", "the clock is frozen");
    await see(/^The clock shows .*Nothing was due\.$/);
    const { now, mode } = await shown();
    assert.equal(mode, "frozen");
    assert.ok(Math.abs(Date.parse(now) - Date.now() - 7 * DAY) < 60_000, now);
    const text = `${formatMinute(now)} · frozen`;
    await page.locator(".clock", { hasText: text }).waitFor();
  });
  await step("it says before what an advance will do, and Enter confirms", async () => {
    await pay({ card: SECURE }, 2);
    await head.click();
    await fill({ "Advance by": "1 hour" });
    await see("Nothing that waits now is due until then.");
    await fill({ "Advance by": "nothing" });
    await page.getByText("Nothing that waits now").waitFor({ state: "detached" });
    await fill({ "Advance by": "1 day" });
    await see("2 × Time to authenticate ends", "never goes back");
    await press("Keep the time");
    await dialog().waitFor({ state: "detached" });
    await head.click();
    await see("2 × Time to authenticate ends");
    await button("Set the clock").and(page.locator(":focus")).waitFor();
    await page.keyboard.press("Enter");
    await see(/ 2 payments ended[.,]/);
  });
  await step("the clock runs again, a week ahead", async () => {
    await set("nothing", "the clock runs");
    const { mode, offset_seconds } = await shown();
    assert.equal(mode, "real");
    assert.ok(offset_seconds > (7 * DAY) / 1000, `${offset_seconds}`);
  });
  const card = region("What comes next");
  await step("16 things that come next are three lines, the earliest first", async () => {
    await pay({ card: SECURE }, 12);
    await pay({ card: { token: "pm_card_visa" }, capture: "manual" }, 3);
    await pay({ outcome: "chargeback" }, 1);
    await see("12 of them", "Lost without evidence");
    assert.deepEqual(
      await card.getByRole("listitem").locator(".record > span").allInnerTexts(),
      ["Time to authenticate ends", "Authorization ends", "Lost without evidence"],
    );
  });
  await step("several lead to their list, a single one to its resource", async () => {
    await link("3 of them").click();
    await on.showsRows("Payments", 3);
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

consoleCase("the transcript of a seeded sandbox is saved", async (step, { enter }) => {
  const { page, button, press, submit, see, go } = await enter();
  const save = button(/transcript$/);
  await step("another sandbox has no transcript", async () => {
    assert.equal(await save.count(), 0);
  });
  await step("the file has the requests so far, a line each", async () => {
    await press("Sandboxes…");
    await submit({ "Seed, for the same ids in every run": "a seed/1" }, "Make and switch");
    await see(/This is the disposable sandbox/);
    // The reads of a page are no part of the run.
    await go("payments/new");
    await submit({}, "Create payment", "Payment created: completed.");
    const saving = page.waitForEvent("download");
    await save.click();
    const file = await saving;
    assert.equal(file.suggestedFilename(), "transcript-a-seed-1.ndjson");
    const { n, request, answer } = JSON.parse(await Deno.readTextFile(await file.path()));
    assert.deepEqual([n, request.method, answer.status], [1, "POST", 201]);
    await see(/^Saved 1 request/);
  });
});
