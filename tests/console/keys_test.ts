/**
 * API keys in the console: a link carries the page's key in its fragment, the tab keeps it only if
 * the user wants that, a live key is never sent, and keys are made, rotated and ended. Each case
 * ends with an empty storage, which `consoleCase` checks.
 */

import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { keyLink, keyOfHash } from "../../packages/sandbox/key_link.ts";
import { generateApiKey } from "../../shared/core/api_key.ts";
import { consoleCase, pasteKey } from "../support/console/console_case.ts";
import { readCredentials } from "../support/local/local_start.ts";

const KEPT = ["payments-console-session"];

const sections = (page: Page) => page.getByRole("navigation", { name: "Sections" });
const connectPage = (page: Page) => page.getByRole("heading", { name: "Open your sandbox" });

/** The names of the items in the session storage. */
function kept(page: Page): Promise<string[]> {
  return page.evaluate(() => Object.keys(sessionStorage));
}

/** Every text of the history entry and the address that the page can see. */
function address(page: Page): Promise<string> {
  return page.evaluate(() => JSON.stringify([location.href, history.state]));
}

Deno.test("keyLink() has the key in the fragment, where keyOfHash() finds it", () => {
  const key = generateApiKey("test");
  const link = new URL(keyLink("http://127.0.0.1:54321/functions/v1", key));
  assert.equal(link.href, `http://127.0.0.1:54321/console/#key=${key}`);
  assert.equal(keyOfHash(link.hash), key);
  assert.equal(keyOfHash("#/payments"), null);
  assert.equal(keyOfHash(""), null);
  assert.equal(keyOfHash("#key=%zz"), "%zz");
});

consoleCase("a link that carries the key", async (step, { start, origin, open }) => {
  const link = /Console +(\S+)/.exec(start.output())![1]!;
  const key = keyOfHash(new URL(link).hash)!;
  const { page, field, see } = await open("", { url: link });

  await step("the printed link opens the sandbox", async () => {
    await sections(page).waitFor();
    await see("No payments yet");
    assert.equal(await page.getByText("of 14 scopes").count(), 0);
  });

  await step("the key is in no address and no storage", async () => {
    assert.equal(page.url(), `${origin}/console/#/`);
    assert.ok(!(await address(page)).includes(key));
    assert.deepEqual(await kept(page), []);
  });

  await step("a reload asks for the key, because nobody wanted to keep it", async () => {
    await page.reload();
    await connectPage(page).waitFor();
  });

  await step("a link in the address bar of an open page replaces its session", async () => {
    await page.goto(link);
    await sections(page).waitFor();
    await page.getByLabel("Keep key on reload").check();
    await page.goto(`${origin}/console/#key=sk_test_wrong`);
    await see("This is not a complete test key");
    assert.ok(!(await address(page)).includes("wrong"));
    assert.deepEqual(await kept(page), []);
  });

  await step("a live key in a link is removed and refused, and not sent", async () => {
    const live = generateApiKey("live");
    await page.goto(`${origin}/console/#key=${live}`);
    await see("This is a live key");
    assert.equal(await field("Test key").inputValue(), "");
    assert.ok(!(await address(page)).includes(live));
    await page.waitForTimeout(300);
  });
});

consoleCase("a key that the tab keeps", async (step, { start, open }) => {
  const { page, field, see, press } = await open("#/transfers");

  await step("the page says where the key is kept", async () => {
    await see(/session storage of the browser then holds the key until you close/);
    assert.equal(await page.getByLabel("Keep the key in this tab").isChecked(), false);
  });

  await step("a reload continues on the same page", async () => {
    await field("Test key").fill(start.test_key);
    await page.getByLabel("Keep the key in this tab").check();
    await press("Open the sandbox");
    await see("No transfers yet");
    assert.deepEqual(await kept(page), KEPT);
    await page.reload();
    await see("No transfers yet");
  });

  await step("another tab asks for the key", async () => {
    const other = await page.context().newPage();
    await other.goto(page.url());
    await connectPage(other).waitFor();
    await other.close();
  });

  await step("a disposable sandbox survives a reload, and so does the way back", async () => {
    await press("Sandboxes…");
    await page.getByLabel("Name").fill("PR 17");
    await press("Make and switch");
    await page.locator(".account").getByText("PR 17").waitFor();
    await page.reload();
    await page.locator(".account").getByText("PR 17").waitFor();
    await press("Back to the first sandbox");
    await page.reload();
    await press("Sandboxes…", "Switch to PR 17");
    await page.locator(".account").getByText("PR 17").waitFor();
    await press("Back to the first sandbox");
  });

  await step("a user who changes their mind is asked again", async () => {
    await page.getByLabel("Keep key on reload").uncheck();
    assert.deepEqual(await kept(page), []);
    await page.getByLabel("Keep key on reload").check();
    assert.deepEqual(await kept(page), KEPT);
    await press("Forget key");
    await connectPage(page).waitFor();
    assert.deepEqual(await kept(page), []);
    await page.reload();
    await connectPage(page).waitFor();
  });

  await step("a key that the API refuses is not kept", async () => {
    await field("Test key").fill(start.test_key);
    await page.getByLabel("Keep the key in this tab").check();
    await press("Open the sandbox");
    await sections(page).waitFor();
    await page.route("**/v1/**", (route) =>
      route.fulfill({
        status: 401,
        headers: { "Access-Control-Allow-Origin": "*" },
        json: { error: { type: "authentication_error", code: "unauthorized", message: "Revoked" } },
      }));
    await connectPage(page).waitFor();
    assert.deepEqual(await kept(page), []);
  });

  await step("what another API has kept is not used", async () => {
    await page.unrouteAll();
    await page.evaluate(([item, api_key]) => {
      const session = { api_key, scopes: null, base_url: "https://other.example/functions/v1" };
      sessionStorage.setItem(item, JSON.stringify({ session, known_sandboxes: [] }));
    }, [KEPT[0]!, start.test_key] as const);
    await page.reload();
    await connectPage(page).waitFor();
    assert.deepEqual(await kept(page), []);
  });
});

consoleCase("the console refuses a live key before any request", async (step, { open, start }) => {
  const { live_key } = await readCredentials(start.data_dir);
  const { page, requests, press } = await open();
  const calls = () => requests.filter((request) => !request.includes("/console/"));
  await step("a live key with blanks is refused, and shown no more", async () => {
    await page.getByLabel("Test key").last().fill(` ${live_key}\n`);
    await press("Open the sandbox");
    await page.getByRole("alert").getByText("test_key_required").waitFor();
    assert.equal(await page.getByLabel("Test key").last().inputValue(), "");
    assert.deepEqual(calls(), []);
  });
  await step("a text that is not a key is not sent either", async () => {
    await page.getByLabel("Test key").last().fill(`${start.test_key}x`);
    await press("Open the sandbox");
    await page.getByRole("alert").getByText("not a complete test key").waitFor();
    assert.deepEqual(calls(), []);
  });
  await step("an unknown test key is refused by the API, shown at the field", async () => {
    const unknown = start.test_key.slice(0, -1) + (start.test_key.endsWith("a") ? "b" : "a");
    await page.getByLabel("Test key").last().fill(unknown);
    await press("Open the sandbox");
    await page.getByRole("alert").getByText("unauthorized").waitFor();
    assert.equal(await page.getByLabel("Test key").last().inputValue(), unknown);
  });
});

consoleCase("API keys are made, rotated and ended", async (step, { enter, start, send }) => {
  const few = await send("POST", "api_keys", { name: "few", scopes: ["payments:read"] });
  const on = await enter("#/keys");
  const { page, rows, press, see, submit, region, fault } = on;
  const works = async (key: string) =>
    (await fetch(`${start.base_url}/api-v1-payments/v1/payments?limit=1`, {
      headers: { Authorization: `Bearer ${key}` },
    })).status;
  const secret = () => region("API key").locator("code").innerText();
  const row = (name: string) => rows("API keys").filter({ hasText: name });
  let made = "";
  await step("a key with one scope is made, and its text is shown once", async () => {
    await press("Make a key…", "Make key");
    await fault().waitFor();
    await on.choose("Chosen scopes");
    await submit({ Name: "Reports", "Ends at": "tomorrow" }, "Make key");
    await fault(/^Not a time/).waitFor();
    await submit({ "Ends at": "" }, "Make key");
    await row("Reports").getByText("Works").waitFor();
    assert.match(await row("Reports").innerText(), /payments:read/);
    made = await secret();
    assert.equal(await works(made), 200);
    await press(/^API calls/);
    await page.getByRole("tab", { name: "Response" }).click();
    const response = await page.getByRole("tabpanel").innerText();
    assert.match(response, /"secret": "…"/);
    assert.ok(!response.includes(made.slice(8, -4)));
    await press(/^API calls/);
  });
  await step("a rotation ends the older secret at once, if the user wants it", async () => {
    await press("Rotate Reports…");
    await submit({ "Older secrets end": "Now" }, "Rotate key", "API key Reports rotated.");
    const rotated = await secret();
    assert.notEqual(rotated, made);
    assert.deepEqual([await works(made), await works(rotated)], [401, 200]);
    made = rotated;
    await press("I have stored it");
    assert.equal(await page.getByText(made).count(), 0);
  });
  await step("an ended key stays in the list, and works no more", async () => {
    await press("End Reports…", "End key");
    await row("Reports").getByText("Ended", { exact: true }).waitFor();
    assert.equal(await works(made), 401);
    assert.equal(await row("Reports").getByRole("button").count(), 0);
  });
  const own = row("This page");
  await step("a rotation of the page’s own key continues with the new secret", async () => {
    for (const older_end of ["Now", "After one day"]) {
      await own.getByRole("button", { name: /^Rotate/ }).click();
      await submit({ "Older secrets end": older_end }, "Rotate key", /^API key .* rotated\.$/);
      const rotated = await secret();
      assert.equal(await works(rotated), 200);
      await page.locator(".account .key").getByText(rotated.slice(-4)).waitFor();
      await own.waitFor();
      await press("I have stored it");
    }
  });
  await step("the end of the page’s own key asks for another one", async () => {
    assert.equal(await works(start.test_key), 401);
    assert.equal(await own.count(), 1);
    await own.getByRole("button", { name: /^End/ }).click();
    await see("This page uses the key");
    await press("End key");
    await connectPage(page).waitFor();
    await page.getByRole("alert").getByText("unauthorized").waitFor();
  });
  await step("a key without a scope: the page says so where the scope is needed", async () => {
    await pasteKey(page, few.secret);
    await see("The key of this page cannot read API keys. It lacks the scope keys:write.");
    await on.link("Payments").click();
    await see("No payments yet");
  });
});
