/**
 * A key with few scopes in the console: a page shows what the key may read, says what it may not,
 * and offers no action that the key cannot do. A key that only reads opens every page.
 */

import assert from "node:assert/strict";
import { keyLink } from "../../packages/sandbox/key_link.ts";
import { SCOPES } from "../../shared/core/vocabulary.ts";
import { type ConsoleCase, consoleCase } from "../support/console/console_case.ts";
import { makeOneOfEach } from "../support/console/one_of_each.ts";
import { look } from "../support/console/look.ts";

const EUR = { amount: 5_000, currency: "EUR" };
const VISA = { card: { token: "pm_card_visa" } };
const READING = SCOPES.filter((scope) => scope.endsWith(":read"));

/** Buttons of a page that send nothing but reads. */
const READS = /^(Copy|Export CSV|Clear|Save filter|Forget|API calls|Show|Hide)/;

/** The pages of a sandbox: sections, forms, a resource of each kind, a comparison. */
async function pagesOf(place: ConsoleCase): Promise<string[]> {
  const { ids, waiting, unreachable } = await makeOneOfEach(place);
  const [one, other] = waiting;
  return [
    ...["", "payments", "checkouts", "instruments", "refunds", "disputes", "transfers", "balance"],
    ...["ledger", "events", "webhooks", "requests", "faults", "keys", "search?q=ada"],
    ...["payments/new", "checkouts/new", "transfers/new", "webhooks/new", "faults/new"],
    ...waiting.map((id) => `payments/${id}`),
    ...["checkouts/chk_", "instruments/ins_", "transfers/tr_", "events/evt_", "webhooks/whe_"],
    ...["ledger/le_", "keys/key_", "requests/req_", "sandboxes/env_", "faults/flt_"],
    `webhooks/${unreachable}`,
    `compare?payment_id=${one}&other_id=${other}`,
  ].map((page) => page.replace(/[a-z]+_$/, (prefix) => ids[prefix]!));
}

consoleCase("a key that only reads", async (step, place) => {
  const { start, open, send } = place;
  const places = await pagesOf(place);
  const linkOf = async (scopes: readonly string[]) =>
    keyLink(start.base_url, (await send("POST", "api_keys", { name: "Review", scopes })).secret);
  const { page, see, link } = await open("", { url: await linkOf(READING) });
  const refused: string[] = [];
  page.on("response", (response) => {
    if (response.status() === 403) refused.push(response.url());
  });
  const root = page.url().split("#")[0];
  const show = async (at: string) => {
    await page.goto(`${root}#/${at}`);
    await page.locator("main h1").waitFor();
    await page.locator("main .loading").first().waitFor({ state: "detached" });
  };
  /** The buttons, links and forms of a page that change something. */
  const offers = async () => [
    ...(await page.getByRole("button").allInnerTexts()).filter((name) => !READS.test(name)),
    ...await page.locator('main a[href*="/new"]').allInnerTexts(),
    ...await page.locator("main form:not(.filters)").allInnerTexts(),
  ];

  for (const at of places) {
    await step(`sees no refusal and no action at #/${at}`, async () => {
      await show(at);
      assert.deepEqual(await page.getByRole("alert").allInnerTexts(), []);
      assert.deepEqual(await offers(), []);
      assert.deepEqual(refused, []);
    });
  }
  await step("has only the sections that it reads", async () => {
    const names = await page.getByRole("navigation", { name: "Sections" }).getByRole("link")
      .allInnerTexts();
    for (const name of ["Requests", "Faults", "API keys"]) assert.ok(!names.includes(name), name);
    assert.ok(names.includes("Payments"));
    await page.keyboard.press("Control+k");
    const found = (await page.getByRole("dialog").getByRole("listitem").allInnerTexts()).join();
    assert.match(found, /Transfers/);
    assert.doesNotMatch(found, /Requests|Create|Declare|Add/);
    await page.keyboard.press("Escape");
  });
  await step("sees changes of programs", async () => {
    await show("payments");
    await send("POST", "payments", { ...EUR, ...VISA, reference: "order-77" });
    await see("order-77");
  });
  await step("reads which scope a page needs, in any width", async () => {
    const faults: string[] = [];
    for (const at of ["", "requests", places.find((at) => at.startsWith("transfers/tr_"))!]) {
      await show(at);
      faults.push(...await look(page, `reads-${at.split("/")[0] || "home"}`));
    }
    assert.deepEqual(faults, []);
    await show("requests");
    await see("The key of this page cannot read requests. It lacks the scope sandbox:write.");
    await show("payments/new");
    await see("The key of this page cannot make a payment");
  });
  await step("comes with a link from the page of a sandbox", async () => {
    const owner = await place.enter(`#/${places.find((at) => at.startsWith("sandboxes/"))}`);
    await owner.press("Link…", "Make link");
    const url = await owner.region("Link").locator("code").innerText();
    const faults = await look(owner.page, "sandbox-link");
    const reader = await open("", { url });
    await reader.see("5 of 14 scopes", "No payments yet");
    assert.equal(await reader.link("Create the first payment").count(), 0);
    assert.deepEqual(faults, []);
  });
  await step("that reads payments only sees the rest of a payment as a sentence", async () => {
    await page.goto(await linkOf(["payments:read"]));
    await link("Payments").click();
    await link(/50.00/).first().click();
    await see(/cannot read ledger entries/, /cannot read deliveries/, /cannot read events/);
    assert.deepEqual([await page.getByRole("alert").count(), refused], [0, []]);
  });
});
