/**
 * An endpoint that fails: its success over time, what a failed delivery sent and got, the events
 * that wait for it, and the recovery of a period. And an inbox.
 */

import assert from "node:assert/strict";
import { until } from "../support/common/until.ts";
import { consoleCase } from "../support/console/console_case.ts";
import { openRecorder } from "../support/webhook/recording_receiver.ts";

const ROUTE = /webhook_deliveries\?.*limit=20/;

consoleCase("a failing endpoint is explained and recovered", async (step, { enter, make }) => {
  const refuse = () =>
    new Response("<h1>Bad signature</h1>", { status: 401, headers: { "X-Reason": "signature" } });
  const receiver = openRecorder(refuse);
  const url = receiver.url("/hook");
  const endpoint = await make("webhook_endpoints", { url, description: "Shop" });
  const pay = () =>
    make("/api-v1-sandbox/payments", { amount_minor: 900, currency: "EUR", outcome: "refunded" });
  const paid = await pay();
  const { page, heading, region, press, see, submit, fault, go, button } = await enter(
    "#/webhooks",
  );
  const items = region("Deliveries").locator(".records > li");
  const response = region(/^Response to attempt 1/);
  try {
    await step("the list and the page say that the endpoint fails", async () => {
      await page.getByRole("cell", { name: "Failing" }).waitFor();
      await go(`webhooks/${endpoint}`);
      await see("The newest attempt to deliver an event failed.");
    });
    await step("the newest failures name their result, and nothing has succeeded", async () => {
      await region("Newest failures").getByText("401").first().waitFor();
      await region("Newest failures").getByText("payment.created").first().waitFor();
      assert.match(await region("Success").innerText(), /^Success\s+0 %/);
      await region("Success").getByRole("img", { name: /Delivered 0, Failed [1-9]\d*$/ }).waitFor();
    });
    await step("the deliveries that wait are below the one that blocks them", async () => {
      await items.getByText(/^4 later events wait for it: payment.completed, /).waitFor();
      assert.equal(await items.count(), 1);
    });
    await step("the request and the response are shown as they were", async () => {
      await items.getByText("Requests and responses").click();
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
    await step("a page of the list without the one that blocks reads it, still open", async () => {
      await page.route(ROUTE, async (route) => {
        const response = await route.fetch();
        const body = await response.json();
        const data = body.data.filter(({ blocked_by }: { blocked_by?: object }) => blocked_by);
        await route.fulfill({ response, json: { ...body, data } });
      });
      await page.waitForRequest(/webhook_deliveries\/whd_/);
      for (let i = 0; i < 2; i++) {
        await page.waitForResponse(ROUTE);
        assert.ok(await response.isVisible());
      }
      await go("webhooks");
      await page.getByRole("cell", { name: "Failing" }).waitFor();
      await go(`webhooks/${endpoint}`);
      await items.getByText("payment.created", { exact: true }).waitFor();
      assert.equal(await items.count(), 1);
      await page.unrouteAll({ behavior: "wait" });
    });
    await step(
      "a payment shows them by event and endpoint, and the receiver's reason",
      async () => {
        await go(`payments/${paid}`);
        const matrix = page.getByRole("table", { name: "Deliveries by event and endpoint" });
        await matrix.getByRole("columnheader", { name: "Shop" }).waitFor();
        const rows = matrix.locator("tbody tr");
        assert.deepEqual(
          (await rows.allInnerTexts()).map((text) => text.split(/\s+/)).map(([type, status]) =>
            `${type} ${status}`
          ),
          [
            "payment.refunded Waits",
            "refund.completed Waits",
            "refund.created Waits",
            "payment.completed Waits",
            "payment.created Pending",
          ],
        );
        await rows.last().getByText("401").waitFor();
        await region("Webhook deliveries").getByText(
          "The receiver responded: <h1>Bad signature</h1>",
          { exact: true },
        ).waitFor();
        assert.equal(await region("Webhook deliveries").locator(".records > li").count(), 1);
        await rows.first().click();
        await heading("payment.refunded").waitFor();
        await region("Webhook deliveries").getByRole("link", { name: "Shop" }).waitFor();
        await region("Payload of payment.refunded").getByRole("link", { name: paid }).click();
        await matrix.waitFor();
        await go(`webhooks/${endpoint}`);
      },
    );
    await step("an event on the page of events shows its deliveries", async () => {
      await go("events");
      await page.locator(".timeline summary").first().click();
      await region("Deliveries of this event").getByText(
        /^Waits for payment.created of the same payment, whose attempt \d failed: 401$/,
      ).waitFor();
    });
    await step("what was missed is recovered, from a time on, and nothing fails", async () => {
      await go(`webhooks/${endpoint}`);
      // The disabled endpoint cancels what waits.
      await press("Disable");
      await see("Endpoint disabled.");
      await button("Recover since…").waitFor({ state: "detached" });
      await press("Enable");
      receiver.judge = () => 204;
      receiver.arrivals.length = 0;
      await button("Recover since…").click();
      await submit({ Since: "last week" }, "Recover");
      await fault(/^Not a time/).waitFor();
      const since = new Date(Date.now() - 3_600_000).toISOString();
      await submit({ Since: since }, "Recover", "5 deliveries are pending again.");
      await until("they arrive", () => receiver.arrivals.length === 5);
      await region("Success").getByText(/^[1-9][\d.]* %$/).waitFor();
      await page.getByText("Failing").waitFor({ state: "detached" });
      await page.getByText(/waits? for it/).waitFor({ state: "detached" });
    });
    await step("a long period is recovered in parts", async () => {
      const bodies: Record<string, unknown>[] = [];
      await page.route("**/recover", (route) => {
        bodies.push(route.request().postDataJSON());
        const has_more = bodies.length === 1;
        const recovery = { object: "recovery", endpoint_id: endpoint, has_more };
        const rest = has_more ? { count: 5_000, next_cursor: "whd_1" } : { count: 7 };
        return route.fulfill({ status: 202, json: { next_cursor: null, ...recovery, ...rest } });
      });
      await press("Recover since…", "Recover");
      await see("5,000 deliveries recovered. The period has more.");
      await press("Recover the rest");
      await see("5,007 deliveries are pending again.");
      const [first, second] = bodies;
      assert.deepEqual(second, { ...first, starting_after: "whd_1" });
      await page.unrouteAll({ behavior: "wait" });
    });
    await step("a delivery that failed without an attempt is open", async () => {
      await make("/api-v1-sandbox/faults", { on: "delivery", fault: "drop_until_recovered" });
      await go(`payments/${await pay()}`);
      await region("Webhook deliveries").getByText("Dropped without an attempt").waitFor();
      assert.equal(await region("Webhook deliveries").locator(".records > li").count(), 1);
    });
    await step("an inbox is acknowledged", async () => {
      const metadata = { team: "shop" };
      const inbox = await make("webhook_endpoints", { delivery: "inbox", metadata });
      await pay();
      await go(`webhooks/${inbox}`);
      await see("metadata.team");
      await press("Acknowledge these 5");
      await see("5 deliveries acknowledged.", "The inbox is empty");
    });
  } finally {
    await receiver.close();
  }
});
