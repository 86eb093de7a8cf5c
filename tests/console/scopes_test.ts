/**
 * A key with few scopes in the console: a page shows what the key may read, says what it may not,
 * and offers no action that the key cannot do. A key that only reads opens every page.
 */

import assert from "node:assert/strict";
import { keyLink } from "../../packages/sandbox/key_link.ts";
import { SCOPES } from "../../shared/core/vocabulary.ts";
import { type ConsoleCase, consoleCase } from "../support/console/console_case.ts";
import { look } from "../support/console/look.ts";

const IBAN = "DE89 3704 0044 0532 0130 00";
const EUR = { amount: 5_000, currency: "EUR" };
const VISA = { card: { token: "pm_card_visa" } };
const CUSTOMER = { id: "user-1906", email: "grace@example.com" };
const READING = SCOPES.filter((scope) => scope.endsWith(":read"));

/** Buttons of a page that send nothing but reads. */
const READS = /^(Copy|Export CSV|Clear|Save filter|Forget|API calls|Show|Hide)/;

/** Makes resources that wait for all kinds of actions. Returns the pages. */
async function fillSandbox({ make, send }: ConsoleCase): Promise<string[]> {
  const pay = (body: Record<string, unknown>) => make("payments", { ...EUR, ...body });
  const advance = (id: string, body: unknown) =>
    make(`/api-v1-sandbox/payments/${id}/advance`, body);
  const inbox = await make("webhook_endpoints", { delivery: "inbox" });
  const url = await make("webhook_endpoints", { url: "http://127.0.0.1:47999/hook" });
  const waiting = await pay({ card: { token: "pm_card_authenticationRequired" } });
  const authorized = await pay({ ...VISA, capture: "manual" });
  const disputed = await pay({ outcome: "success" });
  await advance(disputed, { to: "chargeback" });
  const refunding = await pay({ ...VISA, settlement: "manual" });
  await make(`payments/${refunding}/refund`, { amount: 1_000 });
  const deposit = await pay({
    currency: "USDC",
    amount: 5_000_000,
    capability: "stablecoin_payment",
  });
  const late = await pay({ method_kind: "sepa" });
  await make(`payments/${late}/cancel`);
  const { instrument_id } = await send("POST", "payments", {
    ...{ ...EUR, ...VISA, customer: CUSTOMER, save: "off_session" },
  });
  await pay({ instrument: instrument_id, off_session: true });
  const checkout = await make("checkouts", EUR);
  const transfer = await make("transfers", {
    ...{ amount: 1_000, currency: "EUR", destination: { iban: IBAN, holder_name: "No match Ltd" } },
  });
  const { data: [event] } = await send("GET", "events?limit=1");
  const { data: [entry] } = await send("GET", "ledger_entries?limit=1");
  const { data: [request] } = await send("GET", "/api-v1-sandbox/requests?limit=1");
  const { data: [key] } = await send("GET", "api_keys?limit=1");
  const sandbox = await make("/api-v1-sandbox/sandboxes", { name: "PR 17" });
  const fault = await make("/api-v1-sandbox/faults", { on: "delivery", fault: "duplicate" });
  return [
    ...[
      "",
      "payments",
      "checkouts",
      "instruments",
      "refunds",
      "disputes",
      "transfers",
      "balance",
      "ledger",
    ],
    ...["events", "webhooks", "requests", "faults", "keys", "search?q=grace"],
    ...["payments/new", "checkouts/new", "transfers/new", "webhooks/new", "faults/new"],
    ...[waiting, authorized, disputed, refunding, deposit, late].map((id) => `payments/${id}`),
    `checkouts/${checkout}`,
    ...[`instruments/${instrument_id}`, `transfers/${transfer}`, `events/${event.id}`],
    ...[`webhooks/${inbox}`, `webhooks/${url}`, `ledger/${entry.id}`, `keys/${key.id}`],
    ...[`requests/${request.id}`, `sandboxes/${sandbox}`, `faults/${fault}`],
    `compare?payment_id=${disputed}&other_id=${refunding}`,
  ];
}

consoleCase("a key that only reads", async (step, place) => {
  const { start, open, send } = place;
  const places = await fillSandbox(place);
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
    assert.deepEqual([faults, reader.requests.filter((sent) => sent.includes("sk_test_"))], [
      [],
      [],
    ]);
  });
  await step("that reads payments only sees the rest of a payment as a sentence", async () => {
    await page.goto(await linkOf(["payments:read"]));
    await link("Payments").click();
    await link(/50.00/).first().click();
    await see(/cannot read ledger entries/, /cannot read deliveries/, /cannot read events/);
    assert.deepEqual([await page.getByRole("alert").count(), refused], [0, []]);
  });
});
