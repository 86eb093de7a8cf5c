/**
 * Every view of the console: axe in light and dark mode, and the width on a desktop and on phones.
 * The test writes a picture of each.
 */

import assert from "node:assert/strict";
import axe from "axe-core";
import type { Page } from "playwright-core";
import { openRecorder } from "../support/webhook/recording_receiver.ts";
import {
  consoleCase,
  DESKTOP,
  keepScreenshot,
  pasteKey,
  PHONE,
} from "../support/console/console_case.ts";

const SCHEMES = ["light", "dark"] as const;
const WIDTHS = { desktop: DESKTOP, phone: PHONE, small: { width: 320, height: 568 } };

/**
 * The faults of the current page in all widths, and on a desktop in both themes. Writes its
 * pictures.
 */
async function look(page: Page, name: string): Promise<string[]> {
  const faults: string[] = [];
  for (const colorScheme of SCHEMES) {
    await page.emulateMedia({ colorScheme });
    for (const [width, viewport] of Object.entries(WIDTHS)) {
      // Colours change no width.
      if (colorScheme === "dark" && viewport !== DESKTOP) continue;
      await page.setViewportSize(viewport);
      const at = `${name}-${colorScheme}-${width}`;
      // The phone shows the same elements in the same colours.
      const found = viewport === DESKTOP ? await violations(page, colorScheme) : [];
      faults.push(...found.map((fault) => `${at}: ${fault}`));
      if (await isTooWide(page)) faults.push(`${at}: wider than the screen`);
      await keepScreenshot(page, at);
    }
  }
  await page.setViewportSize(DESKTOP);
  return faults;
}

async function violations(page: Page, scheme: typeof SCHEMES[number]): Promise<string[]> {
  // The dark theme has the same elements in other colours.
  const options = scheme === "dark" ? { runOnly: ["color-contrast"] } : {};
  const result = await page.evaluate(async (options) => {
    // deno-lint-ignore no-explicit-any
    const { violations } = await (globalThis as any).axe.run(options);
    return violations as axe.Result[];
  }, options);
  return result.map(({ id, nodes }) => `${id} ${nodes.map(({ html }) => html).join(" ")}`);
}

/** True if people would have to scroll sideways. */
function isTooWide(page: Page): Promise<boolean> {
  return page.evaluate(() => {
    // deno-lint-ignore no-explicit-any
    const { documentElement: root } = (globalThis as any).document;
    return root.scrollWidth > root.clientWidth;
  });
}

consoleCase("every view is accessible and not too wide", async (step, { open, start, origin }) => {
  const receiver = openRecorder(({ event }) => event.type === "refund.completed" ? 500 : 204);
  const { page } = await open();
  const faults: string[] = [];
  await page.evaluate(axe.source);
  const go = (place: string) => page.goto(`${origin}/console/#/${place}`);
  const button = (name: string | RegExp) => page.getByRole("button", { name });
  const dialog = (name: string) => page.getByRole("dialog", { name });
  const make = async (body: Record<string, unknown>) => {
    const response = await start.call("POST", "/api-v1-sandbox/payments", {
      amount_minor: 123_456,
      currency: "EUR",
      ...body,
    });
    return (response.body as { id: string }).id;
  };
  /** Tests a view: `reach` opens it, `sign` waits until it is shown. */
  const view = (name: string, reach: () => Promise<unknown>, sign: () => Promise<unknown>) =>
    step(name, async () => {
      await reach();
      await sign();
      faults.push(...await look(page, name));
    });

  await view("connect", async () => {}, () => page.getByLabel("Test key").last().waitFor());
  await view("connect-refused", async () => {
    await page.getByLabel("Test key").last().fill("sk_test_wrong");
    await button("Open the sandbox").click();
  }, () => page.getByText("This is not a complete test key").waitFor());
  await view(
    "home-empty",
    () => pasteKey(page, start.test_key),
    () => page.getByText("No payments yet").waitFor(),
  );
  await view(
    "payments-empty",
    () => go("payments"),
    () => page.getByText("No payments yet").waitFor(),
  );
  const empty = ["refunds", "disputes", "transfers", "balance", "ledger", "events", "webhooks"];
  for (const place of [...empty, "faults"]) {
    await view(
      `${place}-empty`,
      () => go(place),
      () => page.locator(".empty").waitFor(),
    );
  }
  await view(
    "fault-new",
    () => go("faults/new").then(() => page.getByRole("radio", { name: "Delivery" }).check()),
    () => page.getByLabel("Event type").waitFor(),
  );
  await view("faults", async () => {
    await page.getByLabel("Fault", { exact: true }).selectOption("delay");
    await page.getByLabel("Delay in milliseconds").fill("500");
    await button("Declare fault").click();
  }, () => page.getByText("Delivery: Delay").waitFor());
  await view(
    "dialog-fault",
    () => button(/^Delete the fault/).click(),
    () => dialog("Delete the fault?").getByText("1 of 1 is left").waitFor(),
  );
  await step("a fault is deleted, or kept", async () => {
    await button("Keep fault").click();
    await page.getByText("1 of 1").waitFor();
    await button(/^Delete the fault/).click();
    await button("Delete fault").last().click();
    await page.getByText("No faults yet").waitFor();
  });
  await view(
    "endpoint-new",
    () => go("webhooks/new").then(() => page.getByRole("radio", { name: "Chosen" }).check()),
    () => page.getByLabel("payment.refunded").waitFor(),
  );
  await view("endpoint-secret", async () => {
    await page.getByRole("radio", { name: "All events" }).check();
    await page.getByLabel("URL").fill(receiver.url("/webhooks"));
    await button("Add endpoint").click();
  }, () => page.getByRole("heading", { name: "Signing secret" }).waitFor());
  const endpoint = page.url().split("/").at(-1)!;

  const completed = await make({
    customer: { id: "user-1906", email: "grace@example.com" },
    description: "Two chairs and a table",
    metadata: { order_id: "6735" },
    card: { number: "4242424242424242", exp_month: 12, exp_year: 2034, cvc: "123" },
  });
  await start.call("POST", `/api-v1-payments/v1/payments/${completed}/refund`, { amount: 3456 });
  const waiting = await make({
    card: { number: "4000002500003155", exp_month: 12, exp_year: 2034, cvc: "123" },
  });
  const failed = await make({ iban: "DE00 0000 0000 0000 0000 99" });
  const pending = await make({ outcome: "pending" });
  for (const outcome of ["declined", "refunded", "chargeback", "success"]) await make({ outcome });
  const disputed = await make({ outcome: "success", description: "A lamp" });
  await start.call("POST", `/api-v1-sandbox/payments/${disputed}/advance`, { to: "chargeback" });
  const authorized = await make({
    card: { token: "pm_card_visa" },
    capture: "manual",
    settlement: "manual",
    return_url: "https://shop.example/orders/6735/return",
  });
  await make({ wallet: "0x000000000000000000000000000000000000dEaD", currency: "USDC" });
  // The longest amounts: nine digits, and three after the point.
  const large = { amount_minor: 999_999_999_999, currency: "BHD", description: "Two towers" };
  const refunded = await make({ ...large, outcome: "success" });
  await make({ ...large, outcome: "success" });
  await start.call("POST", `/api-v1-payments/v1/payments/${refunded}/refund`);
  const largest = await make({ ...large, outcome: "chargeback" });

  await view("payments", () => go("payments"), () => page.getByText("Chargeback").last().waitFor());
  await view(
    "payments-filter-refused",
    () => go("payments?currency=EURO"),
    () => page.locator("#currency-error").waitFor(),
  );
  await view(
    "payments-no-match",
    () => go("payments?status=processing"),
    () => page.getByText("No payment matches").waitFor(),
  );
  for (const instrument of ["Test card", "Card token", "IBAN", "Wallet", "Forced outcome"]) {
    await view(
      `create-${instrument.split(" ").at(-1)!.toLowerCase()}`,
      () => go("payments/new"),
      () => page.getByRole("radio", { name: instrument, exact: true }).check(),
    );
  }
  await view("create-idempotency", async () => {
    await page.getByText("Idempotency and faults").click();
    await page.getByLabel(/^Idempotency key/).fill("order-1001");
    await page.getByLabel(/^Fault of this request/).selectOption("delay");
  }, () => page.getByText("Stored record of this key").waitFor());
  await view("create-refused", async () => {
    await page.getByRole("radio", { name: "Test card", exact: true }).check();
    await page.getByRole("radio", { name: /^Expired/ }).check();
    await button("Add metadata").click();
    await button("Create payment").click();
  }, () => page.locator(".fault").waitFor());
  await view(
    "payment-partially-refunded",
    () => go(`payments/${completed}`),
    () => page.getByText("Attempt 1").nth(1).waitFor(),
  );
  await view(
    "payment-payload",
    () => page.getByText("refund.completed", { exact: true }).first().click(),
    () => page.getByRole("region", { name: "Payload of refund.completed" }).waitFor(),
  );
  await view(
    "dialog-refund",
    () => button("Refund…").click(),
    () => dialog("Refund").waitFor(),
  );
  await page.keyboard.press("Escape");
  await view(
    "dialog-trigger",
    () => button("Trigger an event…").click(),
    () => dialog("Trigger an event").getByLabel("Endpoint").waitFor(),
  );
  await page.keyboard.press("Escape");
  for (const tab of ["Request", "Response", "curl", "TypeScript"]) {
    await view(`calls-${tab.toLowerCase()}`, async () => {
      if (tab === "Request") await button(/^API calls/).click();
      await page.getByRole("tab", { name: tab }).click();
    }, () => page.getByRole("tabpanel", { name: tab }).waitFor());
  }
  await button(/^API calls/).click();
  await view(
    "payment-requires-action",
    () => go(`payments/${waiting}`),
    () => page.getByRole("heading", { name: "3-D Secure is waiting" }).waitFor(),
  );
  await view(
    "payment-failed",
    () => go(`payments/${failed}`),
    () => page.getByText("bank_return").waitFor(),
  );
  await view(
    "payment-pending",
    () => go(`payments/${pending}`),
    () => button("Cancel payment…").waitFor(),
  );
  await view(
    "payment-chargeback",
    () => go(`payments/${disputed}`),
    () => button("Win the dispute").waitFor(),
  );
  for (const [name, id] of [["payment-large", largest], ["payment-large-refunded", refunded]]) {
    await view(
      name!,
      () => go(`payments/${id}`),
      () => page.getByRole("table").first().waitFor(),
    );
  }
  await view(
    "payment-authorized",
    () => go(`payments/${authorized}`),
    () => button("Capture…").waitFor(),
  );
  await view(
    "dialog-capture",
    () => button("Capture…").click(),
    () => dialog("Capture").waitFor(),
  );
  await page.keyboard.press("Escape");
  await view("payment-refunds-pending", async () => {
    const payment = `/api-v1-payments/v1/payments/${authorized}`;
    await start.call("POST", `${payment}/capture`, { amount: 100_000 });
    const [failing] = await Promise.all([1_000, 2_500].map(async (amount) => {
      const { body } = await start.call("POST", `${payment}/refund`, {
        amount,
        reason: "requested_by_customer",
      });
      return (body as { id: string }).id;
    }));
    await start.call("POST", `/api-v1-sandbox/refunds/${failing}/advance`, { to: "failed" });
  }, () => page.getByText("processing_failed").waitFor());
  await view(
    "payment-unknown",
    () => go("payments/pay_nothing"),
    () => page.getByText("not_found").waitFor(),
  );
  await view(
    "payments-filters",
    () => go("payments?customer=grace@example.com&created_after=2026-01-01T00:00:00Z"),
    () => page.getByText("Two chairs").waitFor(),
  );
  await view(
    "create-transfer",
    () => go("transfers/new"),
    () => page.getByText(/EUR available/).waitFor(),
  );
  await view("create-transfer-refused", async () => {
    await page.getByLabel("IBAN", { exact: true }).fill("DE00 1");
    await page.getByRole("button", { name: "Create transfer" }).click();
  }, () => page.locator(".fault").waitFor());
  const transfer = async (body: Record<string, unknown>) => {
    const response = await start.call("POST", "/api-v1-payments/v1/transfers", {
      amount: 2_500,
      currency: "EUR",
      destination: { iban: "DE89 3704 0044 0532 0130 00" },
      ...body,
    });
    return (response.body as { id: string }).id;
  };
  await view(
    "transfer-completed",
    async () => go(`transfers/${await transfer({ description: "Payout of May" })}`),
    () => page.getByRole("table", { name: /^Transfer completed/ }).waitFor(),
  );
  await view(
    "transfer-pending",
    async () => go(`transfers/${await transfer({ settlement: "manual" })}`),
    () => button("Cancel transfer…").waitFor(),
  );
  await view(
    "dialog-cancel",
    () => button("Cancel transfer…").click(),
    () => dialog("Cancel the transfer?").waitFor(),
  );
  await page.keyboard.press("Escape");
  await view(
    "transfer-failed",
    async () =>
      go(
        `transfers/${await transfer({ destination: { iban: "DE00 0000 0000 0000 0000 99" } })}`,
      ),
    () => page.getByText("bank_return").waitFor(),
  );
  await view(
    "transfer-large",
    async () => {
      const { amount_minor: amount, currency } = large;
      const destination = { iban: "GB82 WEST 1234 5698 7654 32" };
      await go(`transfers/${await transfer({ amount, currency, destination })}`);
    },
    () => page.getByRole("table", { name: /^Transfer completed/ }).waitFor(),
  );
  await view("transfers", () => go("transfers"), () => page.getByText("Payout of May").waitFor());
  await view("balance", () => go("balance"), () => page.getByRole("table").first().waitFor());
  for (const [place, name] of [["refunds", "Refunds"], ["disputes", "Disputes"]] as const) {
    await view(place, () => go(place), () => page.getByRole("table", { name }).waitFor());
  }
  await view(
    "ledger",
    () => go("ledger?account=available"),
    () => page.getByRole("table", { name: "Ledger entries" }).waitFor(),
  );
  await view("ledger-entry", async () => {
    const { body } = await start.call("GET", "/api-v1-payments/v1/ledger_entries?limit=1");
    await go(`ledger/${(body as { data: { id: string }[] }).data[0]!.id}`);
  }, () => page.locator("tr[aria-current]").waitFor());
  await view("keys", () => go("keys"), () => page.getByRole("table").waitFor());
  await view("dialog-key", async () => {
    await button("Make a key…").click();
    await page.getByRole("radio", { name: "Chosen scopes" }).check();
  }, () => dialog("Make an API key").getByLabel("ledger:read").waitFor());
  await view("key-secret", async () => {
    await page.getByLabel("Name").fill("Reports");
    await button("Make key").click();
  }, () => page.getByRole("heading", { name: "API key", exact: true }).waitFor());
  await view("events", () => go("events"), () => page.locator(".timeline li").first().waitFor());
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
  }, () => page.getByText("replay").first().waitFor());
  await view(
    "idempotency-key",
    () => go("idempotency_keys/order-1001"),
    () => page.getByRole("region", { name: "The stored response" }).waitFor(),
  );
  await go("requests");
  await view(
    "request",
    () => page.getByText("replay").first().click(),
    () => page.getByRole("region", { name: "Request body as JSON" }).waitFor(),
  );
  await view(
    "dialog-send-again",
    () => button("Send again…").click(),
    () => dialog("Send again").getByLabel("Body").waitFor(),
  );
  await page.keyboard.press("Escape");
  await view(
    "event",
    () =>
      go("events").then(() => page.locator(".timeline summary").first().click())
        .then(() => page.getByRole("link", { name: "Open the event" }).click()),
    () => page.getByRole("heading", { name: "Payload" }).waitFor(),
  );
  await view(
    "search",
    () => go("search?q=towers"),
    () => page.getByText("No transfer matches").waitFor(),
  );
  await view("webhooks", () => go("webhooks"), () => page.getByRole("table").waitFor());
  await view(
    "endpoint",
    () => go(`webhooks/${endpoint}`),
    () => page.getByText("Attempt 1").first().waitFor(),
  );
  await view(
    "endpoint-exchanges",
    () => page.getByText("Requests and responses").first().click(),
    () => page.getByRole("region", { name: "Response to attempt 1" }).first().waitFor(),
  );
  await view("endpoint-failing", async () => {
    receiver.judge = () => new Response("down for maintenance", { status: 503 });
    await make({ outcome: "success" });
    await page.getByText(/^1 later event waits for it/).waitFor();
    // A click can miss what the list has moved meanwhile.
    await page.getByRole("listitem").filter({ hasText: "503" }).locator("details").first()
      .evaluate((details) => details.setAttribute("open", ""));
    await page.getByRole("region", { name: "Response to attempt 1" }).first().waitFor();
  }, () => page.getByText("The newest attempt to deliver an event failed.").waitFor());
  await view("webhooks-failing", () => go("webhooks"), () => page.getByText("Failing").waitFor());
  await view("home", async () => {
    const path = `${start.base_url}/api-v1-payments/v1/payments`;
    await fetch(path, { method: "POST", headers: { Authorization: `Bearer ${start.test_key}` } });
    await go("");
  }, async () => {
    await page.getByRole("img", { name: /^Volume in EUR/ }).waitFor();
    await page.getByText("Show as a table").first().click();
    await page.getByRole("region", { name: "Failing endpoints" }).getByText("Failing").last()
      .waitFor();
    await page.getByRole("region", { name: "Last errors" }).getByText("400").first().waitFor();
    await page.getByRole("region", { name: "What comes next" }).getByText(
      "Time to authenticate ends",
    )
      .first().waitFor();
  });
  await view(
    "dialog-clock",
    () => page.locator(".clock").click(),
    () =>
      dialog("Set the clock of the sandbox?").getByText("1 × Time to authenticate ends").waitFor(),
  );
  await page.keyboard.press("Escape");
  await view(
    "event-deliveries",
    () => go("events").then(() => page.locator(".timeline summary").first().click()),
    () => page.getByText(/^Waits for/).waitFor(),
  );
  await go(`webhooks/${endpoint}`);
  for (
    const [name, title] of [["Edit…", "Edit the endpoint"], [
      "Recover since…",
      "Recover deliveries",
    ], [
      "Rotate secret…",
      "Rotate the signing secret",
    ], ["Delete…", "Delete the endpoint?"]] as const
  ) {
    await view(
      `dialog-${name.split(/[ …]/)[0]!.toLowerCase()}`,
      () => button(name).click(),
      () => dialog(title).waitFor(),
    );
    await page.keyboard.press("Escape");
  }
  await view(
    "dialog-reset",
    () => button("Reset sandbox").click(),
    () => dialog("Reset the sandbox?").waitFor(),
  );
  await page.keyboard.press("Escape");
  await start.call("POST", "/api-v1-sandbox/sandboxes", { name: "PR 17" });
  await view(
    "dialog-sandboxes",
    () => button("Sandboxes…").click(),
    () => dialog("Disposable sandboxes").getByText("PR 17").waitFor(),
  );
  await view(
    "sandbox",
    () => page.getByRole("link", { name: "PR 17" }).click(),
    () => page.getByRole("heading", { level: 1, name: "PR 17" }).waitFor(),
  );
  await button("Sandboxes…").click();
  const long_name = "PR18".repeat(25);
  await page.getByLabel("Name").fill(long_name);
  await button("Make and switch").click();
  await view(
    "disposable-sandbox",
    async () => {},
    () => page.getByText(`This is the disposable sandbox ${long_name}`).waitFor(),
  );
  await button("Back").click();
  await view("nothing-here", () => go("nowhere"), () => page.getByText("No such page").waitFor());
  await step("no view has a violation or is wider than the screen", () => {
    assert.deepEqual(faults, []);
    return Promise.resolve();
  });
  await receiver.close();
});
