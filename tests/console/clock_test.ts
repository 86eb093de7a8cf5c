/** The clock of the sandbox in the console, and the transcript of a seeded sandbox. */

import assert from "node:assert/strict";
import { consoleCase } from "../support/console/console_case.ts";

const DAY = 86_400_000;

consoleCase("the clock is advanced, frozen and shown", async (step, { enter, start }) => {
  const { page } = await enter();
  const dialog = page.getByRole("dialog", { name: "Set the clock of the sandbox?" });
  const set = async (advance: string, after: string) => {
    await page.locator(".clock").click();
    await dialog.getByLabel("Advance by").selectOption(advance);
    await dialog.getByLabel("After that").selectOption(after);
    await dialog.getByRole("button", { name: "Set the clock" }).click();
    await dialog.waitFor({ state: "detached" });
  };
  const shown = async () => {
    const { body } = await start.call("GET", "/api-v1-sandbox/clock");
    return body as { now: string; mode: string; offset_seconds: number };
  };
  await step("a real clock shows no time", async () => {
    assert.equal((await page.locator(".clock").innerText()).trim(), "Clock");
  });
  await step("an advance by 7 days is done and told", async () => {
    await set("7 days", "the clock is frozen");
    await page.getByText(/^The clock shows .*Nothing was due\.$/).waitFor();
    const { now, mode } = await shown();
    assert.equal(mode, "frozen");
    assert.ok(Math.abs(Date.parse(now) - Date.now() - 7 * DAY) < 60_000, now);
  });
  await step("the head shows the time of a frozen clock", async () => {
    const { now } = await shown();
    const text = `${now.slice(0, 16).replace("T", " ")} UTC · frozen`;
    await page.locator(".clock", { hasText: text }).waitFor();
  });
  await step("what became due is told", async () => {
    await start.call("POST", "/api-v1-payments/v1/payments", {
      amount: 500,
      currency: "EUR",
      card: { number: "4000002500003155", exp_month: 12, exp_year: 2034, cvc: "123" },
    });
    await set("1 day", "the clock is frozen");
    await page.getByText(/ 1 payment ended[.,]/).waitFor();
  });
  await step("it says before what an advance will do, and Enter confirms", async () => {
    for (const times of [1, 2]) {
      await start.call("POST", "/api-v1-payments/v1/payments", {
        amount: 500 * times,
        currency: "EUR",
        card: { number: "4000002500003155", exp_month: 12, exp_year: 2034, cvc: "123" },
      });
    }
    await page.locator(".clock").click();
    await dialog.getByLabel("Advance by").selectOption("1 hour");
    await dialog.getByText("Nothing that waits now is due until then.").waitFor();
    await dialog.getByLabel("Advance by").selectOption("nothing");
    await dialog.getByText("Nothing that waits now").waitFor({ state: "detached" });
    await dialog.getByLabel("Advance by").selectOption("1 day");
    await dialog.getByText("2 × Time to authenticate ends").waitFor();
    await dialog.getByText("never goes back").waitFor();
    await dialog.getByRole("button", { name: "Keep the time" }).click();
    await dialog.waitFor({ state: "detached" });
    await page.locator(".clock").click();
    await dialog.getByText("2 × Time to authenticate ends").waitFor();
    await dialog.getByRole("button", { name: "Set the clock" }).and(page.locator(":focus"))
      .waitFor();
    await page.keyboard.press("Enter");
    await page.getByText(/ 2 payments ended[.,]/).waitFor();
  });
  await step("the clock runs again, a week ahead", async () => {
    await set("nothing", "the clock runs");
    const { mode, offset_seconds } = await shown();
    assert.equal(mode, "real");
    assert.ok(offset_seconds > (7 * DAY) / 1000, `${offset_seconds}`);
  });
  await step("Escape changes nothing", async () => {
    const before = await shown();
    await page.locator(".clock").click();
    await dialog.waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    assert.equal((await shown()).mode, before.mode);
  });
});

consoleCase("the transcript of a seeded sandbox is saved", async (step, { enter }) => {
  const { page } = await enter();
  const save = page.getByRole("button", { name: /transcript$/ });
  await step("another sandbox has no transcript", async () => {
    assert.equal(await save.count(), 0);
  });
  await page.getByRole("button", { name: "Sandboxes…" }).click();
  await page.getByLabel(/^Seed/).fill("a seed/1");
  await page.getByRole("button", { name: "Make and switch" }).click();
  await page.getByText(/This is the disposable sandbox/).waitFor();
  await step("the file has the requests so far, a line each", async () => {
    const saving = page.waitForEvent("download");
    await save.click();
    const file = await saving;
    assert.equal(file.suggestedFilename(), "transcript-a-seed-1.ndjson");
    const text = await Deno.readTextFile(await file.path());
    const lines = text.trimEnd().split("\n").map((line) => JSON.parse(line));
    assert.ok(lines.length > 0);
    assert.deepEqual(lines.map(({ n }) => n), lines.map((_, i) => i + 1));
    await page.getByText(`Saved ${lines.length} requests as`).waitFor();
  });
});
