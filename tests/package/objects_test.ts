/** The commands that show and change payments, events and endpoints, and that delete them. */

import assert from "node:assert/strict";
import { until } from "../support/common/until.ts";
import { call } from "../support/package/command_line.ts";
import { withServedService } from "../support/service/served_service.ts";
import { openRecorder } from "../support/webhook/recording_receiver.ts";

const CARD = { token: "pm_card_visa" };

Deno.test("payments capture, refund, cancel, get and list do what the API does", () =>
  withServedService(async ({ service, base_url, client }) => {
    const env = { PAYMENTS_BASE_URL: base_url, PAYMENTS_API_KEY: service.key.text };
    const run = (...args: string[]) => call(["payments", ...args], env);
    const authorize = (reference: string) =>
      client.payments.create({
        amount: 1999,
        currency: "EUR",
        card: CARD,
        capture: "manual",
        reference,
        customer: { email: "ada@example.com", id: "user-7" },
      });
    const { id } = await authorize("order-7");
    const captured = await run("capture", id, "--amount", "1500");
    assert.equal(
      captured.stdout,
      `${id}  completed  19.99 EUR, captured 15.00 EUR\n`,
      captured.stderr,
    );
    assert.equal((await client.payments.retrieve(id)).amount_captured, 1500);

    const part = ["refund", id, "--amount", "500", "--reason", "duplicate"];
    const first = await run(...part, "--idempotency-key", "refund-7");
    assert.match(
      first.stdout,
      /^re_\w+ {2}completed {2}5\.00 EUR {2}pay_\w+ {2}partially_refunded\n$/,
    );
    const again = await run(...part, "--idempotency-key", "refund-7");
    assert.equal(again.stdout, first.stdout);
    const { data: [refund] } = await client.refunds.list({ payment_id: id });
    assert.equal(refund!.reason, "duplicate");
    const rest = await run("refund", id, "--json");
    assert.equal(JSON.parse(rest.stdout).amount, 1000);
    const nothing = await run("refund", id, "--json");
    assert.deepEqual([nothing.code, JSON.parse(nothing.stdout).error.code], [1, "invalid_state"]);
    const wrong = await run("refund", id, "--reason", "boredom", "--json");
    assert.deepEqual([wrong.code, JSON.parse(wrong.stdout).error.param], [2, "reason"]);

    const other = await authorize("order-\u001b[31m8");
    assert.equal((await run("cancel", other.id)).stdout, `${other.id}  cancelled  19.99 EUR\n`);
    const unknown = await run("cancel", "pay_00000000000000000000000000");
    assert.equal(unknown.code, 1);
    assert.match(unknown.stderr, /\(not_found\)\n$/);

    const shown = await run("get", id);
    assert.deepEqual(JSON.parse(shown.stdout), await client.payments.retrieve(id));
    const page = await run("list", "--limit", "1");
    // The reference cannot control the terminal.
    const line = `${other.id}  cancelled  19.99 EUR  ${other.created_at}  order- [31m8\n`;
    assert.deepEqual([page.stdout, page.stderr], [line, `More: --starting-after ${other.id}\n`]);
    const next = await run("list", "--limit", "1", "--starting-after", other.id, "--json");
    assert.deepEqual(JSON.parse(next.stdout).data.map(({ id }: { id: string }) => id), [id]);
    const filters = ["--status", "refunded", "--currency", "EUR", "--method-kind", "card"];
    const found = await run(
      "list",
      ...filters,
      "--reference",
      "order-7",
      "--customer-id",
      "user-7",
      "--created-after",
      "2020-01-01T00:00:00Z",
    );
    assert.match(found.stdout, new RegExp(`^${id}  refunded .*  order-7\n$`));
    for (const filter of [["--customer", "nobody@example.com"], ["--customer-id", "user-8"]]) {
      assert.equal((await run("list", ...filter)).stdout, "");
    }
    assert.equal((await run("list", "--status", "paid")).code, 2);
  }));

Deno.test("events list and resend, endpoints list and reset work on what the sandbox has", () =>
  withServedService(async ({ service, base_url, client }) => {
    const env = { PAYMENTS_BASE_URL: base_url, PAYMENTS_API_KEY: service.key.text };
    const receiver = openRecorder();
    try {
      const url = receiver.url("/hooks");
      const first = await client.webhookEndpoints.create({ url, events: ["payment.completed"] });
      const { id: inbox_id } = await client.webhookEndpoints.create({ delivery: "inbox" });
      const payment = await client.payments.create({ amount: 1, currency: "EUR", card: CARD });
      const listed = await call(["events", "list", "--type", "payment.completed"], env);
      const [event_id = ""] = listed.stdout.split("  ");
      const { created_at } = await client.events.retrieve(event_id);
      assert.equal(
        listed.stdout,
        `${event_id}  payment.completed  ${payment.id}  ${created_at}\n`,
      );
      const json = await call(["events", "list", "--payment", payment.id, "--json"], env);
      assert.equal(JSON.parse(json.stdout).data.length, 2);

      const endpoints = await call(["endpoints", "list"], env);
      assert.equal(
        endpoints.stdout,
        `${inbox_id}  enabled  inbox  *\n${first.id}  enabled  ${url}  payment.completed\n`,
      );
      await until("the event has arrived", () => receiver.arrivals.length === 1);
      const resent = await call(["events", "resend", event_id, "--endpoint", first.id], env);
      assert.match(
        resent.stdout,
        new RegExp(`^whd_\\w+  payment\\.completed  \\w+  ${first.id}\n$`),
      );
      await until("the event has arrived again", () => receiver.arrivals.length === 2);
      assert.deepEqual(receiver.arrivals.map(({ event }) => event.id), [event_id, event_id]);

      // Another endpoint gets the event, although one is disabled.
      await client.webhookEndpoints.update(first.id, { status: "disabled" });
      const both = await call(["events", "resend", event_id], env);
      assert.equal(both.code, 0);
      assert.match(
        both.stdout,
        new RegExp(`^whd_\\w+  payment\\.completed  available  ${inbox_id}\n$`),
      );
      assert.match(both.stderr, new RegExp(`^${first.id}: `));
      const alone = await call(["events", "resend", event_id, "--endpoint", first.id], env);
      assert.deepEqual([alone.code, alone.stdout], [1, ""]);
      assert.match((await call(["endpoints", "list"], env)).stdout, /disabled \(manual\)/);
      const [created] = (await client.events.list({ type: "payment.created" })).data;
      const none = ["events", "resend", created!.id, "--endpoint", first.id];
      assert.match((await call(none, env)).stderr, /^No endpoint has a delivery of evt_/);

      const reset = await call(["reset", "--yes"], env);
      const counts = "1 payment, 0 refunds, 0 transfers, 2 events";
      assert.equal(reset.stdout, `Deleted ${counts}, 0 webhook endpoints\n`, reset.stderr);
      const all = await call(["reset", "--yes", "--endpoints", "--json"], env);
      assert.equal(JSON.parse(all.stdout).deleted.webhook_endpoints, 2);
    } finally {
      await receiver.close();
    }
  }));
