/**
 * The path of a user through the whole console, from the API key to a delivered webhook, refunds,
 * the balance and a reset.
 */

import assert from "node:assert/strict";
import { verifyWebhook } from "../../packages/client/webhook_signature.ts";
import { outputOf } from "../support/common/running_command.ts";
import { until } from "../support/common/until.ts";
import { openRecorder } from "../support/webhook/recording_receiver.ts";
import { consoleCase, keepScreenshot } from "../support/console/console_case.ts";

const ROOT = new URL("../../", import.meta.url);

consoleCase("from an API key to a delivered webhook", async (step, place) => {
  const { start, send, make } = place;
  const receiver = openRecorder(() => 204);
  const url = receiver.url("/hook");
  const on = await place.enter("", { permissions: ["clipboard-read", "clipboard-write"] });
  const { page, button, link, region, heading, dialog, status, said, see, press, submit } = on;
  let secret = "";

  await step("an endpoint is created, and its secret is shown once", async () => {
    await see("No payments yet");
    await link("Webhooks").click();
    await link("Add the first endpoint").click();
    await submit({ URL: url }, "Add endpoint", "All events");
    secret = await region("Signing secret").locator("code").innerText();
    assert.match(secret, /^whsec_/);
    await press("I have stored it");
    assert.equal(await page.getByText(secret).count(), 0);
  });

  await step("a payment by test card in variant A is completed", async () => {
    await link("Payments").click();
    await link("Create payment").click();
    await submit({ Amount: "1234.56", Description: "Two chairs" }, "Create payment");
    await heading("1,234.56 EUR").waitFor();
    await status("Completed").waitFor();
    await said(/Payment created: completed/).waitFor();
  });

  await step("its events, ledger entries and deliveries appear without a reload", async () => {
    await region("Timeline").getByText("payment.completed", { exact: true }).waitFor();
    const capture = page.getByRole("table", { name: /^Capture/ });
    assert.match(await capture.innerText(), /processor\s+1,234\.56\s+available\s+1,234\.56/i);
    const deliveries = region("Webhook deliveries");
    await deliveries.getByText("Delivered").nth(1).waitFor();
    assert.equal(await deliveries.getByText("204").count(), 2);
    await keepScreenshot(page, "journey-payment");
  });

  await step("the delivery is signed with the secret that was shown", async () => {
    const types = [];
    for (const { bytes, headers } of receiver.arrivals) {
      const event = await verifyWebhook(bytes, headers.get("Payment-Signature"), secret);
      types.push((event as unknown as { type: string }).type);
    }
    assert.deepEqual(types, ["payment.created", "payment.completed"]);
  });

  await step("the copied curl and TypeScript get the same response", async () => {
    await press(/^API calls/, /^POST \/v1\/payments 201/);
    const copied = async (tab: string) => {
      await page.getByRole("tab", { name: tab }).click();
      await press(`Copy ${tab}`);
      await button("Copied").waitFor();
      return await page.evaluate(() => navigator.clipboard.readText());
    };
    const id = page.url().split("/").at(-1)!;
    const env = { PAYMENTS_API_KEY: start.test_key, PAYMENTS_BASE_URL: start.base_url };
    const curl = `${await copied("curl")} -sS -i`;
    const response = await outputOf(["sh", "-s"], { env, input: curl });
    assert.match(response, /idempotent-replayed: true/i);
    assert.ok(response.includes(`"id":"${id}"`), response);
    const imports = { "@payments-api/client": new URL("packages/client/mod.ts", ROOT).href };
    const map = encodeURIComponent(JSON.stringify({ imports }));
    const args = ["run", "-A", "--no-config", `--import-map=data:application/json,${map}`, "-"];
    const program = { env, input: await copied("TypeScript") };
    const printed = await outputOf([Deno.execPath(), ...args], program);
    assert.ok(printed.includes(`id: "${id}"`), printed);
    await press(/^API calls/);
  });

  await step("a refund of a part, then of the rest", async () => {
    await press("Refund…");
    await submit({ "Amount in EUR": "34.56", Reason: "duplicate" }, "Refund", "34.56 EUR refunded");
    await status("Partially refunded").waitFor();
    await region("Refunds").getByText("duplicate").waitFor();
    await press("Refund…");
    assert.equal(await on.field("Amount in EUR").inputValue(), "1200.00");
    await submit({ "Amount in EUR": "" }, "Refund");
    await status("Refunded").waitFor();
    await see("Refunded is final: no other status can follow.");
    assert.equal(await button("Refund…").count(), 0);
    const tables = page.getByRole("table", { name: /^Refund/ });
    await tables.nth(1).waitFor();
    assert.equal(await tables.count(), 2);
    const refunds = page.getByRole("list", { name: "Refunds" }).getByRole("listitem");
    await refunds.nth(1).waitFor();
    assert.equal(await refunds.count(), 2);
  });

  await step("an event is triggered and redelivered", async () => {
    const before = receiver.arrivals.length;
    await press("Trigger an event…");
    await on.field("Event").selectOption("payment.chargeback");
    await press("Send now");
    await see("Delivered: the endpoint returned 204.");
    await region("Timeline").getByText("triggered", { exact: true }).waitFor();
    await region("Webhook deliveries").getByRole("link", { name: "payment.chargeback" }).click();
    await press(/^Redeliver/);
    await region("Webhook deliveries").getByText("Attempt 2").waitFor();
    assert.ok(receiver.arrivals.length >= before + 2);
  });

  await step("a declined card shows the code and the stored payment", async () => {
    await on.go("payments/new");
    await on.choose(/···· 9995/);
    await press("Create payment");
    await said("insufficient_funds").waitFor();
    await see("Try the same method again in hours or days. retry_later");
    await status("Declined").waitFor();
  });

  await step("a card is saved without a charge, after 3-D Secure", async () => {
    await on.go("payments/new");
    await on.choose("Card token", /authenticationRequired\b/);
    await submit({ Amount: "0", "Save for later payments": "off_session" }, "Create payment");
    await on.fault(/customer\.id/).waitFor();
    await submit({ "Your id of the customer": "user-9" }, "Create payment");
    await on.fault(/return_url/).waitFor();
    await submit({ "Return URL": "https://shop.example/back" }, "Create payment");
    await status("Requires action").waitFor();
    await region("Details").getByText("Present", { exact: true }).waitFor();
    await link(/^ins_/).click();
    await status("Pending").waitFor();
    assert.equal(await button("Charge…").count(), 0);
    await region("Payments").getByText("0.00").click();
    await press("Authenticate");
    await status("Completed").waitFor();
  });

  await step("a charge without the payer is declined, and one with the payer asks", async () => {
    await link(/^ins_/).click();
    await press("Charge…");
    await submit({}, "Charge", "Enter an amount");
    await submit({ Amount: "7" }, "Charge");
    await said("authentication_required").waitFor();
    await see("Let the payer authenticate a new payment. authenticate", "Not present");
    await link("Charge with the payer").click();
    const { instrument, ...others } = await on.preview();
    assert.match(instrument, /^ins_/);
    assert.deepEqual(others, { currency: "EUR", amount: 1999 });
    const charge = on.hash().slice("#/".length);
    await on.go("payments/new");
    await until("a form without it", async () => !("instrument" in await on.preview()));
    await on.go(charge);
    await until("a form with it", async () => (await on.preview()).instrument === instrument);
    await submit({ "Return URL": "https://shop.example/back" }, "Create payment");
    await status("Requires action").waitFor();
  });

  await step("the instruments of a customer, and the end of one", async () => {
    await link("user-9").waitFor();
    await region("Details").getByRole("link", { name: "Of this customer" }).click();
    await on.showsRows("Instruments", 1);
    await on.field("Status").selectOption("ended");
    await see("No instrument matches");
    await on.field("Status").selectOption("active");
    await on.field("Method").selectOption("card");
    await link("Visa ···· 3184").click();
    await on.showsRows("Payments", 3);
    await press("End…", "Keep instrument", "End…", "End instrument");
    await status("Ended").waitFor();
    await see("You have ended it. deleted");
    await region("Timeline").getByText("instrument.ended").click();
    await link(/^evt_/).click();
    await region("Details").getByRole("link", { name: /^ins_/ }).click();
    await status("Ended").waitFor();
    assert.equal(await button("End…").count(), 0);
  });

  await step("one pending payment is advanced, another is cancelled", async () => {
    await on.go("payments/new");
    await on.choose("Forced outcome", /^Pending/);
    await press("Create payment");
    const advance = (to: RegExp) => region("Advance").getByRole("button", { name: to }).click();
    await advance(/^Processing/);
    await status("Processing").waitFor();
    assert.equal(await button("Cancel payment…").count(), 0);
    await advance(/^Completed/);
    await status("Completed").waitFor();
    await on.go(`payments/${await make("payments", { amount: 5, currency: "JPY" })}`);
    await heading("5 JPY").waitFor();
    await press("Cancel payment…", "Keep payment");
    await status("Pending").waitFor();
    await press("Cancel payment…", "Cancel payment");
    await status("Cancelled").waitFor();
  });

  await step("the endpoint: disabled, enabled, edited, secret rotated, deleted", async () => {
    await link("Webhooks").click();
    await link(url).click();
    await region("Deliveries").getByText("204").first().waitFor();
    await press("Disable");
    await status("Disabled").waitFor();
    await press("Enable");
    await status("Enabled").waitFor();
    await press("Edit…");
    await on.choose("Chosen events");
    await on.checkbox("payment.refunded").check();
    await press("Save");
    await region("Details").getByText("payment.refunded").waitFor();
    await press("Rotate secret…");
    await submit({ "Older secrets expire": "After one hour" }, "Rotate secret");
    assert.notEqual(await region("Signing secret").locator("code").innerText(), secret);
    await press("Delete…", "Delete endpoint");
    await see("No endpoints yet");
  });

  await step("a disposable sandbox: made, used, left, opened again, deleted", async () => {
    await on.go("payments");
    await see("1,234.56 EUR");
    await press("Sandboxes…");
    await see("No disposable sandboxes yet");
    await submit({ Name: "PR 17" }, "Make and switch", "This is the disposable sandbox PR 17.");
    await see("No payments yet");
    await page.locator(".account").getByText("Ends").waitFor();
    await press("Back to the first sandbox");
    await see("1,234.56 EUR");
    await press("Sandboxes…", "Switch to PR 17");
    await see("No payments yet");
    const { data: [{ id }] } = await send("GET", "/api-v1-sandbox/sandboxes");
    await send("DELETE", `/api-v1-sandbox/sandboxes/${id}`);
    await see("The disposable sandbox or its key has ended.", "1,234.56 EUR");
  });

  await step("a sandbox of a program: opened by its link with a key of its own", async () => {
    const made = await send("POST", "/api-v1-sandbox/sandboxes", { name: "PR 18" });
    await on.go(`sandboxes/${made.id}`);
    await press("Switch to PR 18");
    await see("This is the disposable sandbox PR 18.", "No payments yet");
    const keys = await fetch(`${start.base_url}/api-v1-payments/v1/api_keys`, {
      headers: { Authorization: `Bearer ${made.test_key}` },
    });
    const { data: [key] } = await keys.json();
    assert.deepEqual([key.name, key.scopes, key.expires_at], ["Console", null, made.expires_at]);
    const last4 = key.secrets[0].last4;
    assert.match(await page.locator(".account .key").innerText(), new RegExp(`${last4}$`));
    await press("Back to the first sandbox", "Sandboxes…", "Switch to PR 18");
    await see("No payments yet");
    await press("Back to the first sandbox", "Sandboxes…", "Delete PR 18");
    await button("Delete sandbox").click();
    await dialog("Disposable sandboxes").getByText("No disposable sandboxes yet").waitFor();
    await press("Close");
  });

  await receiver.close();
});
