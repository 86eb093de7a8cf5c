/**
 * The console shows a failed delivery: what it sent and got, the events that wait for it, and that
 * its endpoint fails. It shows the requests of programs as they arrive.
 */

import assert from "node:assert/strict";
import { openRecorder } from "../support/webhook/recording_receiver.ts";
import { consoleCase } from "../support/console/console_case.ts";

consoleCase("a failed delivery is explained", async (step, { enter, start, origin }) => {
  const receiver = openRecorder(() =>
    new Response("<h1>Bad signature</h1>", { status: 401, headers: { "X-Reason": "signature" } })
  );
  const endpoint = await start.call("POST", "/api-v1-payments/v1/webhook_endpoints", {
    url: receiver.url("/hook"),
  });
  const { id } = endpoint.body as { id: string };
  const { page } = await enter();
  try {
    await start.call("POST", "/api-v1-sandbox/payments", {
      amount_minor: 900,
      currency: "EUR",
      outcome: "success",
    });
    await step("the list says that the endpoint fails", async () => {
      await page.goto(`${origin}/console/#/webhooks`);
      await page.getByRole("cell", { name: "Failing" }).waitFor();
    });
    await step("its page says what that means", async () => {
      await page.goto(`${origin}/console/#/webhooks/${id}`);
      await page.getByText("The newest attempt to deliver an event failed.").waitFor();
    });
    await step("a failed delivery names the event that waits for it", async () => {
      await page.getByText("1 later event waits for it: payment.completed").waitFor();
    });
    await step("the request and the response are shown as they were", async () => {
      const failed = page.getByRole("region", { name: "Deliveries", exact: true })
        .getByRole("listitem").filter({ hasText: "Attempt 1" }).first();
      await failed.getByText("Requests and responses").click();
      const response = page.getByRole("region", { name: "Response to attempt 1" });
      await response.waitFor();
      const text = await response.innerText();
      assert.match(text, /^HTTP\/1\.1 401 [^]*x-reason: signature[^]*<h1>Bad signature<\/h1>$/i);
      const request = await page.getByRole("region", { name: "Request of attempt 1" }).innerText();
      const [arrival] = receiver.arrivals;
      assert.ok(request.startsWith(`POST ${receiver.url("/hook")}\n`), request);
      assert.ok(request.includes(arrival!.headers.get("Payment-Signature")!), request);
      assert.ok(request.includes(arrival!.event.id), request);
      assert.equal(await page.locator("h1", { hasText: "Bad signature" }).count(), 0);
    });
    await step("an event on the page of events shows its deliveries", async () => {
      await page.goto(`${origin}/console/#/events`);
      await page.locator(".timeline summary").first().click();
      const deliveries = page.getByRole("region", { name: "Deliveries of this event" });
      await deliveries.getByText(
        "Waits for payment.created of the same payment, whose attempt 1 failed: 401",
      ).waitFor();
    });
    await step("nothing fails after a success", async () => {
      receiver.judge = () => 200;
      await page.goto(`${origin}/console/#/webhooks/${id}`);
      await page.getByRole("button", { name: /^Redeliver payment.created/ }).click();
      await page.getByText("Failing").waitFor({ state: "detached" });
      await page.getByText(/waits for it/).waitFor({ state: "detached" });
    });
  } finally {
    await receiver.close();
  }
});

consoleCase("requests of programs appear by themselves", async (step, { enter, start }) => {
  const { page } = await enter("#/requests");
  const rows = page.getByRole("table", { name: "Requests" }).locator("tbody tr");
  const pay = (currency: string) =>
    start.call("POST", "/api-v1-payments/v1/payments", { amount: 700, currency });
  await step("there is none before", () => page.getByText("No requests yet").waitFor());
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
    await page.getByRole("link", { name: "Faults" }).click();
    await page.getByRole("link", { name: /Declare/ }).first().click();
    await page.getByRole("button", { name: "Declare fault" }).click();
    await page.getByText("0 of 1").or(page.getByText("1 of 1")).first().waitFor();
    await page.getByRole("link", { name: "Requests" }).click();
    await rows.nth(1).waitFor();
    assert.equal(await rows.filter({ hasText: "web page" }).count(), 0);
    await page.getByLabel("Sent by").selectOption("Any");
    await rows.filter({ hasText: "web page" }).first().waitFor();
  });
});
