/** The clock of the sandbox in the console, and the transcript of a seeded sandbox. */

import assert from "node:assert/strict";
import { consoleCase } from "../support/console/console_case.ts";

const DAY = 86_400_000;
const SECURE = { number: "4000002500003155", exp_month: 12, exp_year: 2034, cvc: "123" };

consoleCase("the clock is advanced, frozen and shown", async (step, { enter, make, send }) => {
  const { page, dialog, press, fill, submit, see, button } = await enter();
  const head = page.locator(".clock");
  const set = async (advance: string, after: string) => {
    await head.click();
    await submit({ "Advance by": advance, "After that": after }, "Set the clock");
    await dialog().waitFor({ state: "detached" });
  };
  const shown = () => send("GET", "/api-v1-sandbox/clock");
  const paySecurely = (amount: number) =>
    make("payments", { amount, currency: "EUR", card: SECURE });
  await step("a real clock shows no time", async () => {
    assert.equal((await head.innerText()).trim(), "Clock");
  });
  await step("an advance by 7 days is done and told, and the head shows the time", async () => {
    await set("7 days", "the clock is frozen");
    await see(/^The clock shows .*Nothing was due\.$/);
    const { now, mode } = await shown();
    assert.equal(mode, "frozen");
    assert.ok(Math.abs(Date.parse(now) - Date.now() - 7 * DAY) < 60_000, now);
    const text = `${now.slice(0, 16).replace("T", " ")} UTC · frozen`;
    await page.locator(".clock", { hasText: text }).waitFor();
  });
  await step("what became due is told", async () => {
    await paySecurely(500);
    await set("1 day", "the clock is frozen");
    await see(/ 1 payment ended[.,]/);
  });
  await step("it says before what an advance will do, and Enter confirms", async () => {
    for (const amount of [500, 1000]) await paySecurely(amount);
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
  await step("Escape changes nothing", async () => {
    const before = await shown();
    await head.click();
    await dialog().waitFor();
    await page.keyboard.press("Escape");
    await dialog().waitFor({ state: "detached" });
    assert.equal((await shown()).mode, before.mode);
    assert.equal((await shown()).offset_seconds, before.offset_seconds);
  });
});

consoleCase("the transcript of a seeded sandbox is saved", async (step, { enter }) => {
  const { page, button, press, submit, see } = await enter();
  const save = button(/transcript$/);
  await step("another sandbox has no transcript", async () => {
    assert.equal(await save.count(), 0);
  });
  await step("the file has the requests so far, a line each", async () => {
    await press("Sandboxes…");
    await submit({ "Seed, for the same ids in every run": "a seed/1" }, "Make and switch");
    await see(/This is the disposable sandbox/);
    const saving = page.waitForEvent("download");
    await save.click();
    const file = await saving;
    assert.equal(file.suggestedFilename(), "transcript-a-seed-1.ndjson");
    const text = await Deno.readTextFile(await file.path());
    const lines = text.trimEnd().split("\n").map((line) => JSON.parse(line));
    assert.ok(lines.length > 0);
    assert.deepEqual(lines.map(({ n }) => n), lines.map((_, i) => i + 1));
    await see(`Saved ${lines.length} requests as`);
  });
});
