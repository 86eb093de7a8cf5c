/**
 * Every view of the console: axe in light and dark mode, and the width on a desktop and on phones.
 * The test writes a picture of each.
 */

import assert from "node:assert/strict";
import type { Locator } from "playwright-core";
import { openRecorder } from "../support/webhook/recording_receiver.ts";
import { consoleCase, pasteKey } from "../support/console/console_case.ts";
import { look } from "../support/console/look.ts";

const IBAN = "DE89 3704 0044 0532 0130 00";
const RETURNED_IBAN = "DE00 0000 0000 0000 0000 99";
const card = (number: string) => ({ card: { number, exp_month: 12, exp_year: 2034, cvc: "123" } });
/** The longest amounts: nine digits, and three after the point. */
const LARGE = { amount_minor: 999_999_999_999, currency: "BHD", description: "Two towers" };
const CUSTOMER = { id: "user-1906", email: "grace@example.com" };
const LISTS = [
  ...["payments", "checkouts", "instruments", "refunds", "disputes", "transfers", "balance"],
  ...["ledger", "events", "webhooks", "faults"],
];

consoleCase("every view is accessible and not too wide", async (step, place) => {
  const { start, make, send } = place;
  const receiver = openRecorder(({ event }) => event.type === "refund.completed" ? 500 : 204);
  const on = await place.open();
  const { page, go, button, link, dialog, press, choose, fill, submit, region, heading } = on;
  const faults: string[] = [];
  const text = (shown: string | RegExp) => page.getByText(shown).locator("visible=true").first();
  const table = (name?: string | RegExp) =>
    page.getByRole("table", name === undefined ? {} : { name }).first();
  /**
   * Tests a view of a place; null: of the current one. Buttons are pressed and functions called
   * there, until `sign` is shown.
   */
  const view = (
    name: string,
    at: string | null,
    sign: string | RegExp | Locator,
    ...acts: (string | RegExp | (() => Promise<unknown>))[]
  ) =>
    step(name, async () => {
      if (at !== null) await go(at);
      for (const act of acts) await (typeof act === "function" ? act() : press(act));
      const shown = typeof sign === "string" || sign instanceof RegExp ? text(sign) : sign;
      await shown.waitFor();
      faults.push(...await look(page, name));
    });
  /** Tests a dialog of the current place, which Escape then closes. */
  const dialogView = async (
    name: string,
    opener: string | (() => Promise<unknown>),
    title: string,
    sign: Locator = dialog(title),
  ) => {
    await view(`dialog-${name}`, null, sign, opener);
    await page.keyboard.press("Escape");
  };

  const key = page.getByLabel("Test key").last();
  const refused = "This is not a complete test key";
  await view("connect", null, key);
  await view("connect-refused", null, refused, () => key.fill("sk_test"), "Open the sandbox");
  await view("home-empty", null, "No payments yet", () => pasteKey(page, start.test_key));
  for (const name of LISTS) await view(`${name}-empty`, name, page.locator(".empty"));
  const event_type = page.getByLabel("Event type");
  await view("fault-new", "faults/new", event_type, () => choose("Delivery"));
  await view("faults", null, "Delivery: Delay", async () => {
    await fill({ Fault: "delay" });
    await submit({ "Delay in milliseconds": "500" }, "Declare fault");
  });
  const left = dialog("Delete the fault?").getByText("1 of 1 is left");
  await view("dialog-fault", null, left, /^Delete the fault/);
  await step("a fault is deleted, or kept", async () => {
    await press("Keep fault", /^Delete the fault/);
    await dialog().getByRole("button", { name: "Delete fault" }).click();
    await text("No faults yet").waitFor();
  });
  const chosen = page.getByLabel("payment.refunded");
  await view("endpoint-new", "webhooks/new", chosen, () => choose("Chosen events"));
  await view("endpoint-secret", null, heading("Signing secret"), async () => {
    await choose("All events");
    await submit({ URL: receiver.url("/webhooks") }, "Add endpoint");
  });
  const endpoint = page.url().split("/").at(-1)!;

  const pay = (body: Record<string, unknown>) =>
    make("/api-v1-sandbox/payments", { amount_minor: 123_456, currency: "EUR", ...body });
  const completed = await pay({
    ...{ customer: CUSTOMER, description: "Two chairs and a table" },
    ...{ metadata: { order_id: "6735" }, ...card("4242424242424242") },
  });
  await make(`payments/${completed}/refund`, { amount: 3456 });
  const waiting = await pay(card("4000002500003155"));
  const failed = await pay({ iban: RETURNED_IBAN });
  const pending = await pay({ outcome: "pending" });
  for (const outcome of ["declined", "refunded", "chargeback", "success"]) await pay({ outcome });
  const disputed = await pay({ outcome: "success", description: "A lamp" });
  await make(`/api-v1-sandbox/payments/${disputed}/advance`, { to: "chargeback" });
  const authorized = await pay({
    ...{ card: { token: "pm_card_visa" }, capture: "manual", settlement: "manual" },
    return_url: "https://shop.example/orders/6735/return",
  });
  await pay({ wallet: "0x000000000000000000000000000000000000dEaD", currency: "USDC" });
  const refunded = await pay({ ...LARGE, outcome: "success" });
  await pay({ ...LARGE, outcome: "success" });
  await make(`payments/${refunded}/refund`);
  const largest = await pay({ ...LARGE, outcome: "chargeback" });

  await view("payments", "payments", table("Payments"));
  await view("payments-filter-refused", "payments?currency=EURO", page.locator("#currency-error"));
  await view("payments-no-match", "payments?status=processing", "No payment matches");
  const found = "payments?customer=grace@example.com&created_after=2026-01-01T00:00:00Z";
  await view("payments-filters", found, "Two chairs", "Save filter");
  const compared = `compare?payment_id=${completed}`;
  await view("compare-choose", compared, table("Payments to choose from"));
  await view("compare", `${compared}&other_id=${failed}`, table("Differences"));
  await dialogView("command", () => page.keyboard.press("Control+k"), "Go to a page or an action");
  for (const method of ["card", "token", "IBAN", "Wallet", "instrument", "outcome"]) {
    const name = new RegExp(`${method}$`);
    const create = button("Create payment");
    await view(`create-${method.toLowerCase()}`, "payments/new", create, () => choose(name));
  }
  await view("create-save", "payments/new", "MD01", async () => {
    await choose("IBAN");
    await fill({ "Save for later payments": "off_session" });
  });
  await view("create-idempotency", null, "Stored record of this key", async () => {
    await text("Idempotency and faults").click();
    await fill({ "Idempotency key": "order-1001", "Fault of this request": "delay" });
  });
  const expired = () => choose("Test card", /^Expired/);
  const fault = page.locator(".fault");
  await view("create-refused", null, fault, expired, "Add metadata", "Create payment");
  const attempt = page.getByRole("row").getByText("204").nth(1);
  await view("payment-partially-refunded", `payments/${completed}`, attempt);
  const payload = region("Payload of refund.completed");
  const completion = page.getByText("refund.completed", { exact: true }).first();
  await view("payment-payload", null, payload, () => completion.click());
  await dialogView("refund", "Refund…", "Refund");
  const trigger = "Trigger an event";
  await dialogView("trigger", `${trigger}…`, trigger, dialog(trigger).getByLabel("Endpoint"));
  await press(/^API calls/);
  for (const name of ["Request", "Response", "curl", "TypeScript"]) {
    const panel = page.getByRole("tabpanel", { name });
    const open = () => page.getByRole("tab", { name }).click();
    await view(`calls-${name.toLowerCase()}`, null, panel, open);
  }
  await press(/^API calls/);
  await view("payment-requires-action", `payments/${waiting}`, "3-D Secure is waiting");
  await view("payment-failed", `payments/${failed}`, "bank_return");
  await view("payment-pending", `payments/${pending}`, button("Cancel payment…"));
  await view("payment-chargeback", `payments/${disputed}`, button("Win the dispute"));
  await view("payment-large", `payments/${largest}`, table());
  await view("payment-large-refunded", `payments/${refunded}`, table());
  await view("payment-authorized", `payments/${authorized}`, button("Capture…"));
  await dialogView("capture", "Capture…", "Capture");
  await view("payment-refunds-pending", null, "processing_failed", async () => {
    await make(`payments/${authorized}/capture`, { amount: 100_000 });
    const reason = "requested_by_customer";
    const failing = await make(`payments/${authorized}/refund`, { amount: 1_000, reason });
    await make(`payments/${authorized}/refund`, { amount: 2_500, reason });
    await make(`/api-v1-sandbox/refunds/${failing}/advance`, { to: "failed" });
  });
  await view("payment-unknown", "payments/pay_nothing", "not_found");

  const charge = { amount: 4_900, currency: "EUR" };
  const save = { ...charge, customer: CUSTOMER, save: "off_session" };
  const signed = { signed_at: "2026-11-02" };
  const [declining, mandate] = await Promise.all([
    { ...save, card: { token: "pm_card_chargeCustomerFail" } },
    { ...save, iban: IBAN, mandate: signed },
    { ...save, card: { token: "pm_card_visa" } },
    { ...save, card: { token: "pm_card_chargeDeclined" } },
    { ...charge, iban: IBAN, mandate: { id: "M-17", sequence: "one_off", ...signed } },
  ].map((body) => send("POST", "payments", body)));
  for (const { instrument_id: instrument } of [declining, mandate]) {
    await send("POST", "payments", { ...charge, off_session: true, instrument });
  }
  await view("instruments", "instruments", table("Instruments"));
  await view("instrument", `instruments/${declining.instrument_id}`, table("Payments"));
  await dialogView("charge", "Charge…", "Charge");
  await dialogView("end", "End…", "End the instrument?");
  await view("payment-off-session", null, "Not present", () => link(/^49.00/).first().click());
  await send("DELETE", `instruments/${mandate.instrument_id}`);
  await view("instrument-ended", `instruments/${mandate.instrument_id}`, "instrument.ended");

  const sold = { ...charge, customer: CUSTOMER, save: "off_session", max_payments: null };
  const checkout = await make("checkouts", {
    ...{ ...sold, description: "Two chairs and a table", reference: "order-6735" },
    other_prices: [{ amount_minor: 5_900_000, currency: "USDC" }],
  });
  await make(`/api-v1-sandbox/checkouts/${checkout}/pay`, { card: { token: "pm_card_visa" } });
  await view("create-checkout", "checkouts/new", button("Create checkout"));
  await view("checkout-refused", null, fault, () => fill({ Amount: "0" }), "Create checkout");
  await view("checkout", `checkouts/${checkout}`, table("Payments"));
  await dialogView("pay", "Pay as the payer…", "Pay as the payer");
  await dialogView("cancel-checkout", "Cancel checkout…", "Cancel the checkout?");
  await view("checkouts", "checkouts", "Two chairs");

  const transfer = (body: Record<string, unknown>) =>
    make("transfers", { amount: 2_500, currency: "EUR", destination: { iban: IBAN }, ...body });
  const typed = () => fill({ IBAN: "DE00 1" });
  await view("create-transfer", "transfers/new", /EUR available/);
  await view("create-transfer-refused", null, fault, typed, "Create transfer");
  const paid = await transfer({ description: "Payout of May" });
  await view("transfer-completed", `transfers/${paid}`, table(/^Transfer completed/));
  const manual = await transfer({ settlement: "manual" });
  await view("transfer-pending", `transfers/${manual}`, button("Cancel transfer…"));
  await dialogView("cancel", "Cancel transfer…", "Cancel the transfer?");
  const returned = await transfer({ destination: { iban: RETURNED_IBAN } });
  await view("transfer-failed", `transfers/${returned}`, "bank_return");
  const large = await transfer({
    ...{ amount: LARGE.amount_minor, currency: LARGE.currency },
    destination: { iban: "GB82 WEST 1234 5698 7654 32" },
  });
  await view("transfer-large", `transfers/${large}`, table(/^Transfer completed/));
  const unmatched = { iban: IBAN, holder_name: "No match Ltd" };
  const unsure = await transfer({ destination: unmatched });
  await view("transfer-payee", `transfers/${unsure}`, heading("Payee: no match"));
  await view("transfers", "transfers", "Payout of May");
  await view("balance", "balance", table());
  await view("refunds", "refunds", table("Refunds"));
  await view("disputes", "disputes", table("Disputes"));
  await view("ledger", "ledger?account=available", table("Ledger entries"));
  const { data: [entry] } = await send("GET", "ledger_entries?limit=1");
  await view("ledger-entry", `ledger/${entry.id}`, page.locator("tr[aria-current]"));
  await view("keys", "keys", table());
  const scope = dialog("Make an API key").getByLabel("ledger:read");
  await view("dialog-key", null, scope, "Make a key…", () => choose("Chosen scopes"));
  const named = () => fill({ Name: "Reports" });
  await view("key-secret", null, heading("API key"), named, "Make key");
  await view("events", "events", page.locator(".timeline li").first());

  /** Sends a request of a program. */
  const post = async (headers: Record<string, string>, body: string | null = null) => {
    const response = await fetch(`${start.base_url}/api-v1-payments/v1/payments`, {
      ...{ method: "POST", body },
      headers: { Authorization: `Bearer ${start.test_key}`, ...headers },
    });
    await response.text();
  };
  const keyed = { "Content-Type": "application/json", "Idempotency-Key": "order-1001" };
  for (let i = 0; i < 2; i++) await post(keyed, '{"amount":700,"currency":"EUR"}');
  await view("requests", "requests", "replay");
  await view("idempotency-key", "idempotency_keys/order-1001", region("The stored response"));
  const replay = () => text("replay").click();
  await view("request", "requests", region("Request body as JSON"), replay);
  await dialogView("send-again", "Send again…", "", dialog("Send again").getByLabel("Body"));
  const openEvent = () => page.locator(".timeline summary").first().click();
  const openPage = () => link(/^evt_/).click();
  await view("event", "events", heading("Payload"), openEvent, openPage);
  await view("search", "search?q=towers", "No transfer matches");
  await view("webhooks", "webhooks", table());
  await view("endpoint", `webhooks/${endpoint}`, "Attempt 1");
  /** Opens the requests and responses of the newest delivery with this result. */
  const open = (status: string) =>
    region("Deliveries").locator(".records > li").filter({
      has: page.locator(".response", { hasText: status }),
    }).first().getByText("Requests and responses").click();
  const responses = page.getByRole("region", { name: /^Response to attempt 1/ });
  await view("endpoint-exchanges", null, responses.first(), () => open("204"));
  const failing = "The newest attempt to deliver an event failed.";
  await view("endpoint-failing", null, failing, async () => {
    receiver.judge = () => new Response("down for maintenance", { status: 503 });
    await pay({ outcome: "success" });
    await text(/^1 later event waits for it/).waitFor();
    // The event waits from its creation on, before the first attempt has failed.
    await open("503");
    await responses.filter({ hasText: "down for maintenance" }).waitFor();
  });
  await view("webhooks-failing", "webhooks", "Failing");
  await post({});
  const next = region("What comes next").getByText("Time to authenticate ends").first();
  await view("home", "", next, async () => {
    await page.getByRole("img", { name: /^Volume in EUR/ }).waitFor();
    await text("Show as a table").click();
    await region("Failing endpoints").getByText("Failing", { exact: true }).waitFor();
    await region("Last errors").getByText("400").first().waitFor();
  });
  const coming = dialog("Set the clock of the sandbox?").getByText("1 × Time to authenticate ends");
  await dialogView("clock", () => page.locator(".clock").click(), "", coming);
  await view("event-deliveries", "events", /^Waits for/, openEvent);
  await go(`webhooks/${endpoint}`);
  await dialogView("edit", "Edit…", "Edit the endpoint");
  await dialogView("recover", "Recover since…", "Recover deliveries");
  await dialogView("rotate", "Rotate secret…", "Rotate the signing secret");
  await dialogView("delete", "Delete…", "Delete the endpoint?");
  await dialogView("reset", "Reset sandbox", "Reset the sandbox?");
  await make("/api-v1-sandbox/sandboxes", { name: "PR 17" });
  const other = dialog("Disposable sandboxes").getByText("PR 17");
  await view("dialog-sandboxes", null, other, "Sandboxes…");
  const title = page.locator("h1", { hasText: "PR 17" });
  await view("sandbox", null, title, () => link("PR 17").click());
  const long_name = "PR18".repeat(25);
  const name_it = () => fill({ Name: long_name });
  const banner = `This is the disposable sandbox ${long_name}`;
  await view("disposable-sandbox", null, banner, "Sandboxes…", name_it, "Make and switch");
  await press("Back to the first sandbox");
  await view("nothing-here", "nowhere", "No such page");
  await step("no view has a violation or is wider than the screen", () => {
    assert.deepEqual(faults, []);
    return Promise.resolve();
  });
  await receiver.close();
});
