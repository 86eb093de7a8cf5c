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

consoleCase("every view is accessible and not too wide", async (step, place) => {
  const { start, make } = place;
  const receiver = openRecorder(({ event }) => event.type === "refund.completed" ? 500 : 204);
  const on = await place.open();
  const { page, go, button, dialog, press, choose, fill, region, heading } = on;
  const faults: string[] = [];
  const text = (shown: string | RegExp) => page.getByText(shown).locator("visible=true").first();
  const table = (name?: string | RegExp) =>
    page.getByRole("table", name === undefined ? {} : { name }).first();
  const pay = (body: Record<string, unknown>) =>
    make("/api-v1-sandbox/payments", { amount_minor: 123_456, currency: "EUR", ...body });
  const transfer = (body: Record<string, unknown>) =>
    make("transfers", { amount: 2_500, currency: "EUR", destination: { iban: IBAN }, ...body });
  /** Tests a view: a place or a function opens it, and it is shown when `sign` is. */
  const view = (
    name: string,
    reach: string | (() => Promise<unknown>),
    sign: string | RegExp | Locator,
  ) =>
    step(name, async () => {
      await (typeof reach === "string" ? go(reach) : reach());
      const shown = typeof sign === "string" || sign instanceof RegExp ? text(sign) : sign;
      await shown.waitFor();
      faults.push(...await look(page, name));
    });
  /** Tests a dialog, which Escape then closes. */
  const dialogView = async (
    name: string,
    opener: string,
    title: string,
    sign: Locator = dialog(title),
  ) => {
    await view(`dialog-${name}`, () => press(opener), sign);
    await page.keyboard.press("Escape");
  };

  const key = page.getByLabel("Test key").last();
  await view("connect", () => Promise.resolve(), key);
  await view("connect-refused", async () => {
    await key.fill("sk_test_wrong");
    await press("Open the sandbox");
  }, "This is not a complete test key");
  await view("home-empty", () => pasteKey(page, start.test_key), "No payments yet");
  for (
    const name of [
      ...["payments", "instruments", "refunds", "disputes", "transfers", "balance"],
      ...["ledger", "events", "webhooks", "faults"],
    ]
  ) await view(`${name}-empty`, name, page.locator(".empty"));
  await view("fault-new", async () => {
    await go("faults/new");
    await choose("Delivery");
  }, page.getByLabel("Event type"));
  await view("faults", async () => {
    await fill({ Fault: "delay" });
    await on.submit({ "Delay in milliseconds": "500" }, "Declare fault");
  }, "Delivery: Delay");
  await view(
    "dialog-fault",
    () => press(/^Delete the fault/),
    dialog("Delete the fault?").getByText("1 of 1 is left"),
  );
  await step("a fault is deleted, or kept", async () => {
    await press("Keep fault");
    await text("1 of 1").waitFor();
    await press(/^Delete the fault/);
    await dialog().getByRole("button", { name: "Delete fault" }).click();
    await text("No faults yet").waitFor();
  });
  await view("endpoint-new", async () => {
    await go("webhooks/new");
    await choose("Chosen events");
  }, page.getByLabel("payment.refunded"));
  await view("endpoint-secret", async () => {
    await choose("All events");
    await on.submit({ URL: receiver.url("/webhooks") }, "Add endpoint");
  }, heading("Signing secret"));
  const endpoint = page.url().split("/").at(-1)!;

  const completed = await pay({
    customer: { id: "user-1906", email: "grace@example.com" },
    description: "Two chairs and a table",
    metadata: { order_id: "6735" },
    ...card("4242424242424242"),
  });
  await make(`payments/${completed}/refund`, { amount: 3456 });
  const waiting = await pay(card("4000002500003155"));
  const failed = await pay({ iban: RETURNED_IBAN });
  const pending = await pay({ outcome: "pending" });
  for (const outcome of ["declined", "refunded", "chargeback", "success"]) await pay({ outcome });
  const disputed = await pay({ outcome: "success", description: "A lamp" });
  await make(`/api-v1-sandbox/payments/${disputed}/advance`, { to: "chargeback" });
  const authorized = await pay({
    card: { token: "pm_card_visa" },
    capture: "manual",
    settlement: "manual",
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
  const methods = ["Test card", "Card token", "IBAN", "Wallet", "Saved instrument"];
  for (const method of [...methods, "Forced outcome"]) {
    await view(`create-${method.split(" ").at(-1)!.toLowerCase()}`, async () => {
      await go("payments/new");
      await choose(method);
    }, button("Create payment"));
  }
  await view("create-save", async () => {
    await go("payments/new");
    await choose("IBAN");
    await fill({ "Save for later payments": "off_session" });
  }, "MD01");
  await view("create-idempotency", async () => {
    await text("Idempotency and faults").click();
    await fill({ "Idempotency key": "order-1001", "Fault of this request": "delay" });
  }, "Stored record of this key");
  await view("create-refused", async () => {
    await choose("Test card", /^Expired/);
    await press("Add metadata", "Create payment");
  }, page.locator(".fault"));
  await view(
    "payment-partially-refunded",
    `payments/${completed}`,
    page.getByText("Attempt 1").nth(1),
  );
  await view(
    "payment-payload",
    () => page.getByText("refund.completed", { exact: true }).first().click(),
    region("Payload of refund.completed"),
  );
  await dialogView("refund", "Refund…", "Refund");
  const trigger = "Trigger an event";
  await dialogView("trigger", `${trigger}…`, trigger, dialog(trigger).getByLabel("Endpoint"));
  await press(/^API calls/);
  for (const name of ["Request", "Response", "curl", "TypeScript"]) {
    await view(
      `calls-${name.toLowerCase()}`,
      () => page.getByRole("tab", { name }).click(),
      page.getByRole("tabpanel", { name }),
    );
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
  await view("payment-refunds-pending", async () => {
    await make(`payments/${authorized}/capture`, { amount: 100_000 });
    const reason = "requested_by_customer";
    const failing = await make(`payments/${authorized}/refund`, { amount: 1_000, reason });
    await make(`payments/${authorized}/refund`, { amount: 2_500, reason });
    await make(`/api-v1-sandbox/refunds/${failing}/advance`, { to: "failed" });
  }, "processing_failed");
  const customer = { id: "user-1906", email: "grace@example.com" };
  const save = { customer, save: "off_session", amount: 4_900, currency: "EUR" };
  const token = (name: string) => ({ card: { token: `pm_card_${name}` } });
  const signed = { mandate: { signed_at: "2026-11-02" } };
  const [, declining, , mandate] = await Promise.all([
    token("visa"),
    token("chargeCustomerFail"),
    token("chargeDeclined"),
    { iban: IBAN, ...signed },
    {
      iban: IBAN,
      save: undefined,
      mandate: { id: "M-17", sequence: "one_off", ...signed.mandate },
    },
  ].map((body) => place.send("POST", "payments", { ...save, ...body })));
  const charge = { amount: 4_900, currency: "EUR", off_session: true };
  for (const { instrument_id: instrument } of [declining, mandate]) {
    await place.send("POST", "payments", { ...charge, instrument });
  }
  await view("instruments", "instruments", table("Instruments"));
  await view("instrument", `instruments/${declining.instrument_id}`, table("Payments"));
  await dialogView("charge", "Charge…", "Charge");
  await dialogView("end", "End…", "End the instrument?");
  await view("payment-off-session", () => on.link(/^49.00/).first().click(), "Not present");
  await view("instrument-ended", async () => {
    await place.send("DELETE", `instruments/${mandate.instrument_id}`);
    await go(`instruments/${mandate.instrument_id}`);
  }, "instrument.ended");
  await view("payment-unknown", "payments/pay_nothing", "not_found");
  await view(
    "payments-filters",
    "payments?customer=grace@example.com&created_after=2026-01-01T00:00:00Z",
    "Two chairs",
  );
  await view("create-transfer", "transfers/new", /EUR available/);
  await view(
    "create-transfer-refused",
    () => on.submit({ IBAN: "DE00 1" }, "Create transfer"),
    page.locator(".fault"),
  );
  await view(
    "transfer-completed",
    `transfers/${await transfer({ description: "Payout of May" })}`,
    table(/^Transfer completed/),
  );
  const manual = await transfer({ settlement: "manual" });
  await view("transfer-pending", `transfers/${manual}`, button("Cancel transfer…"));
  await dialogView("cancel", "Cancel transfer…", "Cancel the transfer?");
  const returned = await transfer({ destination: { iban: RETURNED_IBAN } });
  await view("transfer-failed", `transfers/${returned}`, "bank_return");
  const largest_transfer = await transfer({
    amount: LARGE.amount_minor,
    currency: LARGE.currency,
    destination: { iban: "GB82 WEST 1234 5698 7654 32" },
  });
  await view("transfer-large", `transfers/${largest_transfer}`, table(/^Transfer completed/));
  await view("transfers", "transfers", "Payout of May");
  await view("balance", "balance", table());
  await view("refunds", "refunds", table("Refunds"));
  await view("disputes", "disputes", table("Disputes"));
  await view("ledger", "ledger?account=available", table("Ledger entries"));
  const { data: [entry] } = await place.send("GET", "ledger_entries?limit=1");
  await view("ledger-entry", `ledger/${entry.id}`, page.locator("tr[aria-current]"));
  await view("keys", "keys", table());
  await view("dialog-key", async () => {
    await press("Make a key…");
    await choose("Chosen scopes");
  }, dialog("Make an API key").getByLabel("ledger:read"));
  await view("key-secret", () => on.submit({ Name: "Reports" }, "Make key"), heading("API key"));
  await view("events", "events", page.locator(".timeline li").first());
  await view("requests", async () => {
    for (let i = 0; i < 2; i++) {
      const response = await fetch(`${start.base_url}/api-v1-payments/v1/payments`, {
        method: "POST",
        headers: {
          Authorization: `Bearer ${start.test_key}`,
          "Content-Type": "application/json",
          "Idempotency-Key": "order-1001",
        },
        body: JSON.stringify({ amount: 700, currency: "EUR" }),
      });
      await response.text();
    }
    await go("requests");
  }, "replay");
  await view("idempotency-key", "idempotency_keys/order-1001", region("The stored response"));
  await go("requests");
  await view("request", () => text("replay").click(), region("Request body as JSON"));
  await dialogView(
    "send-again",
    "Send again…",
    "Send again",
    dialog("Send again").getByLabel("Body"),
  );
  const openEvent = () => page.locator(".timeline summary").first().click();
  await view("event", async () => {
    await go("events");
    await openEvent();
    await on.link("Open the event").click();
  }, heading("Payload"));
  await view("search", "search?q=towers", "No transfer matches");
  await view("webhooks", "webhooks", table());
  await view("endpoint", `webhooks/${endpoint}`, "Attempt 1");
  /** The newest delivery with this result, and its requests and responses. */
  const delivery = (status: string) =>
    region("Deliveries").locator(".records > li").filter({
      has: page.locator(".response", { hasText: status }),
    }).first();
  const responses = page.getByRole("region", { name: /^Response to attempt 1/ });
  await view(
    "endpoint-exchanges",
    () => delivery("204").getByText("Requests and responses").click(),
    responses.first(),
  );
  await view("endpoint-failing", async () => {
    receiver.judge = () => new Response("down for maintenance", { status: 503 });
    await pay({ outcome: "success" });
    await text(/^1 later event waits for it/).waitFor();
    // The event waits from its creation on, before the first attempt has failed.
    await delivery("503").getByText("Requests and responses").click();
    await responses.filter({ hasText: "down for maintenance" }).waitFor();
  }, "The newest attempt to deliver an event failed.");
  await view("webhooks-failing", "webhooks", "Failing");
  await view("home", async () => {
    const path = `${start.base_url}/api-v1-payments/v1/payments`;
    await fetch(path, { method: "POST", headers: { Authorization: `Bearer ${start.test_key}` } });
    await go("");
    await page.getByRole("img", { name: /^Volume in EUR/ }).waitFor();
    await text("Show as a table").click();
    await region("Failing endpoints").getByText("Failing", { exact: true }).waitFor();
    await region("Last errors").getByText("400").first().waitFor();
  }, region("What comes next").getByText("Time to authenticate ends").first());
  await view(
    "dialog-clock",
    () => page.locator(".clock").click(),
    dialog("Set the clock of the sandbox?").getByText("1 × Time to authenticate ends"),
  );
  await page.keyboard.press("Escape");
  await view("event-deliveries", () => go("events").then(openEvent), /^Waits for/);
  await go(`webhooks/${endpoint}`);
  await dialogView("edit", "Edit…", "Edit the endpoint");
  await dialogView("recover", "Recover since…", "Recover deliveries");
  await dialogView("rotate", "Rotate secret…", "Rotate the signing secret");
  await dialogView("delete", "Delete…", "Delete the endpoint?");
  await dialogView("reset", "Reset sandbox", "Reset the sandbox?");
  await make("/api-v1-sandbox/sandboxes", { name: "PR 17" });
  await view(
    "dialog-sandboxes",
    () => press("Sandboxes…"),
    dialog("Disposable sandboxes").getByText("PR 17"),
  );
  await view("sandbox", () => on.link("PR 17").click(), page.locator("h1", { hasText: "PR 17" }));
  const long_name = "PR18".repeat(25);
  await view("disposable-sandbox", async () => {
    await press("Sandboxes…");
    await on.submit({ Name: long_name }, "Make and switch");
  }, `This is the disposable sandbox ${long_name}`);
  await press("Back to the first sandbox");
  await view("nothing-here", "nowhere", "No such page");
  await step("no view has a violation or is wider than the screen", () => {
    assert.deepEqual(faults, []);
    return Promise.resolve();
  });
  await receiver.close();
});
