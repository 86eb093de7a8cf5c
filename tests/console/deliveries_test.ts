/**
 * The console shows a failed delivery: what it sent and got, the events that wait for it, and that
 * its endpoint fails. It shows the requests of programs as they arrive.
 */

import assert from "node:assert/strict";
import { openRecorder } from "../support/webhook/recording_receiver.ts";
import { consoleCase } from "../support/console/console_case.ts";

const PAID = { amount_minor: 900, currency: "EUR", outcome: "success" };

consoleCase("a failed delivery is explained", async (step, { enter, make }) => {
  const receiver = openRecorder(() =>
    new Response("<h1>Bad signature</h1>", { status: 401, headers: { "X-Reason": "signature" } })
  );
  const id = await make("webhook_endpoints", { url: receiver.url("/hook") });
  const { page, go, see, press, region, showOnlyWaiting } = await enter();
  const response = page.getByRole("region", { name: /^Response to attempt 1/ });
  try {
    await make("/api-v1-sandbox/payments", PAID);
    await step("the list and the page say that the endpoint fails", async () => {
      await go("webhooks");
      await page.getByRole("cell", { name: "Failing" }).waitFor();
      await go(`webhooks/${id}`);
      await see("The newest attempt to deliver an event failed.");
    });
    await step("a failed delivery names the event that waits for it", async () => {
      await see("1 later event waits for it: payment.completed");
    });
    await step("the request and the response are shown as they were", async () => {
      const failed = region("Deliveries").getByRole("listitem").filter({ hasText: "Attempt 1" });
      await failed.first().getByText("Requests and responses").click();
      await response.waitFor();
      const text = await response.innerText();
      assert.match(text, /^HTTP\/1\.1 401 [^]*x-reason: signature[^]*<h1>Bad signature<\/h1>$/i);
      const request = await region(/^Request of attempt 1/).innerText();
      const [arrival] = receiver.arrivals;
      assert.ok(request.startsWith(`POST ${receiver.url("/hook")}\n`), request);
      assert.ok(request.includes(arrival!.headers.get("Payment-Signature")!), request);
      assert.ok(request.includes(arrival!.event.id), request);
      assert.equal(await page.locator("h1", { hasText: "Bad signature" }).count(), 0);
    });
    await step(
      "they stay open when newer deliveries move the delivery to another page",
      async () => {
        await showOnlyWaiting();
        for (let i = 0; i < 2; i++) {
          await page.waitForResponse(/webhook_deliveries\?.*limit=20/);
          assert.ok(await response.isVisible());
        }
        await page.unrouteAll({ behavior: "wait" });
      },
    );
    await step("an event on the page of events shows its deliveries", async () => {
      await go("events");
      await page.locator(".timeline summary").first().click();
      await region("Deliveries of this event").getByText(
        /^Waits for payment.created of the same payment, whose attempt \d failed: 401$/,
      ).waitFor();
    });
    await step("nothing fails after a success", async () => {
      receiver.judge = () => 200;
      await go(`webhooks/${id}`);
      await press(/^Redeliver payment.created/);
      await page.getByText("Failing").waitFor({ state: "detached" });
      await page.getByText(/waits for it/).waitFor({ state: "detached" });
    });
  } finally {
    await receiver.close();
  }
});

consoleCase("requests of programs appear by themselves", async (step, { enter, send }) => {
  const { link, press, see, field, ...on } = await enter("#/requests");
  const rows = on.rows("Requests");
  const pay = (currency: string) => send("POST", "payments", { amount: 700, currency });
  await step("there is none before", () => see("No requests yet"));
  await step("a request of a program appears without a reload", async () => {
    await pay("EUR");
    await rows.filter({ hasText: "POST /payments" }).waitFor();
  });
  await step("so does the next one, at the top", async () => {
    await pay("EURO");
    await rows.first().getByText("400").waitFor();
    assert.equal(await rows.count(), 2);
  });
  await step("a request of this page is in the list only on request", async () => {
    await link("Faults").click();
    await link(/Declare/).first().click();
    await press("Declare fault");
    await see(/[01] of 1/);
    await link("Requests").click();
    await rows.nth(1).waitFor();
    assert.equal(await rows.filter({ hasText: "web page" }).count(), 0);
    await field("Sent by").selectOption("Any");
    await rows.filter({ hasText: "web page" }).first().waitFor();
  });
});
