/**
 * The path of a user through the whole console, from the API key to a delivered webhook, refunds,
 * the balance and a reset.
 */

import assert from "node:assert/strict";
import { verifyWebhook } from "../../packages/client/webhook_signature.ts";
import type { Page } from "playwright-core";
import { openRecorder } from "../support/webhook/recording_receiver.ts";
import { consoleCase, keepScreenshot } from "../support/console/console_case.ts";

const ROOT = new URL("../../", import.meta.url);

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const heading = (page: Page, name: string | RegExp) => page.getByRole("heading", { name });
const section = (page: Page, name: string) => page.getByRole("region", { name, exact: true });
const status = (page: Page) => page.locator(".under-title .status");
const said = (page: Page) => page.locator("[aria-live] .notice");

/** Runs a program with a script on standard input. Returns its output. */
async function runText(
  program: string,
  args: string[],
  script: string,
  env: Record<string, string>,
): Promise<string> {
  const options = { args, env, stdin: "piped", stdout: "piped", stderr: "piped" } as const;
  const child = new Deno.Command(program, options).spawn();
  const input = child.stdin.getWriter();
  await input.write(new TextEncoder().encode(script));
  await input.close();
  const { success, stdout, stderr } = await child.output();
  assert.ok(success, new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}

consoleCase("from an API key to a delivered webhook", async (step, { enter, start }) => {
  const receiver = openRecorder(() => 204);
  const url = receiver.url("/hook");
  const { page } = await enter("", { permissions: ["clipboard-read", "clipboard-write"] });
  let secret = "";

  await step("an empty sandbox shows the next step", async () => {
    await page.getByText("No payments yet").waitFor();
  });

  await step("an endpoint is created, and its secret is shown once", async () => {
    await page.getByRole("link", { name: "Webhooks" }).click();
    await page.getByRole("link", { name: "Add the first endpoint" }).click();
    await page.getByLabel("URL").fill(url);
    await button(page, "Add endpoint").click();
    secret = await section(page, "Signing secret").locator("code").innerText();
    assert.match(secret, /^whsec_/);
    await button(page, "I have stored it").click();
    assert.equal(await page.getByText(secret).count(), 0);
    const details = await section(page, "Details").innerText();
    assert.match(details, /All events/);
  });

  await step("a payment by test card in variant A is completed", async () => {
    await page.getByRole("link", { name: "Payments", exact: true }).click();
    await page.getByRole("link", { name: "Create payment" }).click();
    await page.getByLabel("Amount", { exact: true }).fill("1234.56");
    await page.getByLabel(/^Description/).fill("Two chairs");
    await button(page, "Create payment").click();
    await heading(page, "1,234.56 EUR").waitFor();
    assert.equal(await status(page).innerText(), "Completed");
    assert.match(await said(page).innerText(), /Payment created: completed/);
  });

  await step("its events, ledger entries and deliveries appear without a reload", async () => {
    await section(page, "Timeline").getByText("payment.completed", { exact: true }).waitFor();
    const capture = page.getByRole("table", { name: /^Capture/ });
    assert.match(await capture.innerText(), /processor\s+1,234\.56\s+available\s+1,234\.56/i);
    const deliveries = section(page, "Webhook deliveries");
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

  await step(
    "the copied curl and TypeScript send the same request and get the same response",
    async () => {
      await page.getByRole("button", { name: /^API calls/ }).click();
      await page.getByRole("button", { name: /^POST \/v1\/payments 201/ }).click();
      const copied = async (tab: string) => {
        await page.getByRole("tab", { name: tab }).click();
        await button(page, `Copy ${tab}`).click();
        await button(page, "Copied").waitFor();
        // deno-lint-ignore no-explicit-any
        return await page.evaluate(() => (globalThis as any).navigator.clipboard.readText());
      };
      const id = page.url().split("/").at(-1)!;
      const env = { PAYMENTS_API_KEY: start.test_key, PAYMENTS_BASE_URL: start.base_url };
      const response = await runText("sh", ["-s"], `${await copied("curl")} -sS -i`, env);
      assert.match(response, /idempotent-replayed: true/i);
      assert.ok(response.includes(`"id":"${id}"`), response);
      const import_map = {
        imports: { "@payments-api/client": new URL("packages/client/mod.ts", ROOT).href },
      };
      const map = `--import-map=data:application/json,${
        encodeURIComponent(JSON.stringify(import_map))
      }`;
      const args = ["run", "-A", "--no-config", map, "-"];
      const printed = await runText(Deno.execPath(), args, await copied("TypeScript"), env);
      assert.ok(printed.includes(`id: "${id}"`), printed);
      await page.getByRole("button", { name: /^API calls/ }).click();
    },
  );

  await step("a refund of a part, then of the rest", async () => {
    await button(page, "Refund…").click();
    const dialog = page.getByRole("dialog", { name: "Refund" });
    await dialog.getByLabel("Amount in EUR").fill("34.56");
    await dialog.getByLabel("Reason").selectOption("duplicate");
    await dialog.getByRole("button", { name: "Refund" }).click();
    await page.getByText("34.56 EUR refunded.").waitFor();
    await page.locator(".under-title").getByText("Partially refunded").waitFor();
    await section(page, "Refunds").getByText("duplicate").waitFor();
    await button(page, "Refund…").click();
    assert.equal(await dialog.getByLabel("Amount in EUR").inputValue(), "1200.00");
    await dialog.getByLabel("Amount in EUR").fill("");
    await dialog.getByRole("button", { name: "Refund" }).click();
    await page.locator(".under-title").getByText("Refunded", { exact: true }).waitFor();
    await page.getByText("Refunded is final: no other status can follow.").waitFor();
    assert.equal(await button(page, "Refund…").count(), 0);
    const tables = page.getByRole("table", { name: /^Refund/ });
    await tables.nth(1).waitFor();
    assert.equal(await tables.count(), 2);
    const refunds = page.getByRole("list", { name: "Refunds" }).getByRole("listitem");
    await refunds.nth(1).waitFor();
    assert.equal(await refunds.count(), 2);
  });

  await step("an event is triggered and redelivered", async () => {
    const before = receiver.arrivals.length;
    await button(page, "Trigger an event…").click();
    await page.getByLabel("Event", { exact: true }).selectOption("payment.chargeback");
    await button(page, "Send now").click();
    await page.getByText("Delivered: the endpoint returned 204.").waitFor();
    await section(page, "Timeline").getByText("triggered", { exact: true }).waitFor();
    const triggered = section(page, "Webhook deliveries").getByRole("listitem").filter({
      hasText: "payment.chargeback",
    });
    await triggered.getByRole("button", { name: /^Redeliver/ }).click();
    await triggered.getByText("Attempt 2").waitFor();
    assert.ok(receiver.arrivals.length >= before + 2);
  });

  await step("a 3-D Secure payment in variant B is authenticated by the user", async () => {
    await page.goto(`${page.url().split("#")[0]}#/payments/new`);
    await page.getByRole("radio", { name: /···· 3155/ }).check();
    await page.getByRole("radio", { name: /^B / }).check();
    const preview = JSON.parse(await section(page, "Body of the request").innerText());
    assert.deepEqual(Object.keys(preview), [
      "amount_minor",
      "currency",
      "method_kind",
      "payer",
      "card",
    ]);
    await button(page, "Create payment").click();
    await heading(page, "3-D Secure is waiting").waitFor();
    await button(page, "Authenticate").click();
    await page.locator(".under-title").getByText("Completed").waitFor();
  });

  await step("a declined card shows the code and the stored payment", async () => {
    await page.goto(`${page.url().split("#")[0]}#/payments/new`);
    await page.getByRole("radio", { name: /···· 9995/ }).check();
    await button(page, "Create payment").click();
    await said(page).getByText("insufficient_funds").waitFor();
    await page.getByText("Try the same method again in hours or days. retry_later").waitFor();
    assert.equal(await status(page).innerText(), "Declined");
  });

  await step("IBAN, wallet and forced outcome", async () => {
    const cases: [instrument: string, value: RegExp, status: string][] = [
      ["IBAN", /^SEPA return/, "Failed"],
      ["IBAN", /^SWIFT/, "Completed"],
      ["Wallet", /^Reverted/, "Failed"],
      ["Wallet", /^Approved/, "Completed"],
      ["Forced outcome", /^Chargeback/, "Chargeback"],
      ["Forced outcome", /^Declined/, "Declined"],
      ["Forced outcome", /^Pending/, "Pending"],
    ];
    for (const [instrument, value, expected] of cases) {
      await page.goto(`${page.url().split("#")[0]}#/payments/new`);
      await page.getByRole("radio", { name: instrument, exact: true }).check();
      await page.getByRole("radio", { name: value }).check();
      await button(page, "Create payment").click();
      await page.locator(".under-title .status").waitFor();
      assert.equal(await status(page).innerText(), expected, `${instrument} ${value}`);
    }
  });

  await step("one pending payment is advanced, another is cancelled", async () => {
    await section(page, "Advance").getByRole("button", { name: /^Processing/ }).click();
    await page.locator(".under-title").getByText("Processing").waitFor();
    assert.equal(await button(page, "Cancel payment…").count(), 0);
    await section(page, "Advance").getByRole("button", { name: /^Completed/ }).click();
    await page.locator(".under-title").getByText("Completed").waitFor();
    const { body } = await start.call("POST", "/api-v1-payments/v1/payments", {
      amount: 5,
      currency: "JPY",
    });
    await page.goto(`${page.url().split("#")[0]}#/payments/${(body as { id: string }).id}`);
    await heading(page, "5 JPY").waitFor();
    await button(page, "Cancel payment…").click();
    await button(page, "Keep payment").click();
    await page.locator(".under-title").getByText("Pending").waitFor();
    await button(page, "Cancel payment…").click();
    await button(page, "Cancel payment").click();
    await page.locator(".under-title").getByText("Cancelled").waitFor();
  });

  await step("the open list shows new payments, filters and pages", async () => {
    await page.getByRole("link", { name: "Payments", exact: true }).click();
    const rows = page.getByRole("table", { name: "Payments" }).locator("tbody tr");
    await rows.first().waitFor();
    const count = await rows.count();
    await start.call("POST", "/api-v1-payments/v1/payments", {
      amount: 777,
      currency: "CHF",
      reference: "order-777",
    });
    await page.getByText("7.77 CHF").waitFor();
    assert.equal(await rows.count(), count + 1);
    await page.getByLabel("Currency").fill("chf");
    await page.getByLabel("Currency").blur();
    await page.waitForFunction(() =>
      // deno-lint-ignore no-explicit-any
      (globalThis as any).document.querySelectorAll("tbody tr").length === 1
    );
    assert.match(page.url(), /#\/payments\?currency=chf$/);
    await button(page, "Clear filter").click();
    for (let amount = 1; amount <= 20; amount++) {
      await start.call("POST", "/api-v1-payments/v1/payments", { amount, currency: "EUR" });
    }
    await page.getByText("0.20 EUR").waitFor();
    assert.equal(await rows.count(), 20);
    await page.getByRole("link", { name: "Older" }).click();
    await page.getByText("7.77 CHF").waitFor();
    await page.getByRole("link", { name: "Newest" }).click();
    await page.getByText("0.20 EUR").waitFor();
  });

  await step("the balance is shown by currency", async () => {
    await page.getByRole("link", { name: "Balance" }).click();
    const accounts = page.getByRole("table", { name: "Accounts in EUR" });
    await accounts.getByText("available").waitFor();
    const { body } = await start.call("GET", "/api-v1-payments/v1/balance");
    const { balances } = body as {
      balances: { currency: string; account: string; amount_minor: number }[];
    };
    const { amount_minor } = balances.find(({ currency, account }) =>
      currency === "EUR" && account === "available"
    )!;
    const shown = await heading(page, / EUR$/).innerText();
    assert.equal(shown.replace(/[^\d]/g, ""), String(amount_minor).padStart(3, "0"));
  });

  await step("a reload stays on the page and asks for the key again", async () => {
    await page.getByRole("link", { name: "Webhooks" }).click();
    await page.getByRole("link", { name: url }).click();
    await section(page, "Deliveries").getByText("204").first().waitFor();
    const address = page.url();
    await page.reload();
    await heading(page, "Open your sandbox").waitFor();
    assert.equal(page.url(), address);
    await page.getByLabel("Test key", { exact: true }).last().fill(start.test_key);
    await button(page, "Open the sandbox").click();
    await heading(page, url).waitFor();
  });

  await step("the endpoint: disabled, enabled, edited, secret rotated, deleted", async () => {
    await button(page, "Disable").click();
    await page.locator(".under-title").getByText("Disabled").waitFor();
    await button(page, "Enable").click();
    await page.locator(".under-title").getByText("Enabled").waitFor();
    await button(page, "Edit…").click();
    await page.getByRole("radio", { name: "Chosen events" }).check();
    await page.getByRole("checkbox", { name: "payment.refunded" }).check();
    await button(page, "Save").click();
    await section(page, "Details").getByText("payment.refunded").waitFor();
    await button(page, "Rotate secret…").click();
    await page.getByLabel("Older secrets expire").selectOption({ label: "After one hour" });
    await button(page, "Rotate secret").click();
    const rolled = await section(page, "Signing secret").locator("code").innerText();
    assert.notEqual(rolled, secret);
    await button(page, "Delete…").click();
    await button(page, "Delete endpoint").click();
    await page.getByText("No endpoints yet").waitFor();
  });

  await step("a disposable sandbox: made, used, left, opened again, deleted", async () => {
    const dialog = page.getByRole("dialog", { name: "Disposable sandboxes" });
    await button(page, "Sandboxes…").click();
    await dialog.getByText("No disposable sandboxes yet").waitFor();
    await dialog.getByLabel("Name").fill("PR 17");
    await dialog.getByRole("button", { name: "Make and switch" }).click();
    await page.getByText("This is the disposable sandbox PR 17.").waitFor();
    await page.getByText("No payments yet").waitFor();
    await page.locator(".account").getByText("Ends").waitFor();
    await button(page, "Back to the first sandbox").click();
    await page.getByText("0.20 EUR").waitFor();
    await button(page, "Sandboxes…").click();
    await dialog.getByRole("button", { name: "Switch to PR 17" }).click();
    await page.getByText("No payments yet").waitFor();
    const sandboxes = await start.call("GET", "/api-v1-sandbox/sandboxes");
    const [{ id }] = (sandboxes.body as { data: [{ id: string }] }).data;
    await start.call("DELETE", `/api-v1-sandbox/sandboxes/${id}`);
    await page.getByText("The disposable sandbox has ended.").waitFor();
    await page.getByText("0.20 EUR").waitFor();
    await start.call("POST", "/api-v1-sandbox/sandboxes", { name: "PR 18" });
    await button(page, "Sandboxes…").click();
    await dialog.getByRole("button", { name: "Delete PR 18" }).click();
    await button(page, "Delete sandbox").click();
    await dialog.getByText("No disposable sandboxes yet").waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
  });

  await step("a reset asks for confirmation, and can be cancelled", async () => {
    await button(page, "Reset sandbox").click();
    await button(page, "Keep everything").click();
    await page.getByRole("link", { name: "Payments", exact: true }).click();
    await page.getByText("0.20 EUR").waitFor();
    await button(page, "Reset sandbox").click();
    await button(page, "Delete everything").click();
    await page.getByText(/^Reset: \d+ payments/).waitFor();
    await page.getByText("No payments yet").waitFor();
    const { body } = await start.call("GET", "/api-v1-payments/v1/payments");
    assert.deepEqual((body as { data: unknown[] }).data, []);
  });

  await receiver.close();
});

consoleCase("a long ledger is cut, and the page says so", async (step, place) => {
  const path = "/api-v1-payments/v1/payments";
  const { body } = await place.start.call("POST", path, {
    amount: 500,
    currency: "EUR",
    outcome: "success",
  });
  const { id } = body as { id: string };
  const refundOnce = () => place.start.call("POST", `${path}/${id}/refund`, { amount: 1 });
  for (let made = 0; made < 49; made++) await refundOnce();
  const { page } = await place.enter(`#/payments/${id}`);
  const ledger = page.getByRole("region", { name: "Ledger" });
  const cut = ledger.getByText("The newest 100 are shown");
  await step("the page says nothing while it shows all entries", async () => {
    await ledger.getByText("Capture").waitFor();
    assert.equal(await cut.count(), 0);
  });
  await step("the page says so when entries do not fit on a page of the API", async () => {
    await refundOnce();
    await cut.waitFor();
    assert.equal(await ledger.getByText("Capture").count(), 0);
  });
});
