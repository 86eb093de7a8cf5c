/**
 * The delivery log (contract §4, security §2) shows the status of a real response, and the same
 * record for every failure before a response. Redirects are not followed.
 */

import assert from "node:assert/strict";
import type { Settings } from "../../shared/functions/settings.ts";
import type { LogLine } from "../../shared/http/log_line.ts";
import { startService } from "../support/service/service.ts";
import { PUBLIC_ADDRESS } from "../support/webhook/live_endpoint.ts";
import { openReceiver, say } from "../support/webhook/loopback_receiver.ts";
import {
  addEndpoint,
  deliveriesOf,
  openRecorder,
  settle,
} from "../support/webhook/recording_receiver.ts";
import { EXPIRED_CERTIFICATE, TEST_AUTHORITY } from "../support/webhook/test_certificates.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";
import { until } from "../support/common/until.ts";

const AT = Date.parse("2026-08-09T10:11:12.013Z");
const FAR_AWAY = "203.0.113.1";

Deno.test("the delivery log has one record for every failure before a response", async (t) => {
  const closed = openReceiver(say(""));
  await closed.close();
  const resetting = openReceiver((conn) => conn.close());
  const expired = openReceiver(say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), {
    ...EXPIRED_CERTIFICATE,
  });
  const plain = openReceiver(say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
  const babbling = openReceiver(say("this is no HTTP\r\n\r\n"), undefined);
  const canary = openRecorder();
  /** Names, their addresses, and the port on loopback that a checked address leads to. */
  const names: Record<string, [address: string, port: number]> = {
    "refused.example.com": [PUBLIC_ADDRESS, closed.port],
    "filtered.example.com": [PUBLIC_ADDRESS, -1],
    "reset.example.com": [PUBLIC_ADDRESS, resetting.port],
    "expired.example.com": [PUBLIC_ADDRESS, expired.port],
    "plain.example.com": [PUBLIC_ADDRESS, plain.port],
    "babbling.example.com": [PUBLIC_ADDRESS, babbling.port],
    "loopback.example.com": ["127.0.0.1", canary.port],
    "metadata.example.com": ["169.254.169.254", canary.port],
    "unknown.example.com": ["", 0],
  };
  let last = "";
  const options: Partial<Settings> = {
    allow_private_webhooks: false,
    webhook_sender: {
      timeouts: { connect_ms: 400, total_ms: 30_000 },
      resolve(name) {
        last = name;
        const [address] = names[name]!;
        return address ? Promise.resolve([address]) : Promise.reject(new Error("NXDOMAIN"));
      },
      seam: {
        ca_certs: [TEST_AUTHORITY],
        dial(address) {
          const [, port] = names[last]!;
          assert.equal(address, PUBLIC_ADDRESS);
          // Nobody responds at this address, which is reserved for documentation.
          return port < 0 ? { address: FAR_AWAY, port: 443 } : { address: "127.0.0.1", port };
        },
      },
    },
  };
  const service = await startService(options);
  try {
    const records = new Map<string, unknown>();
    for (const name of Object.keys(names)) {
      await service.setClock(AT);
      const { id } = await addEndpoint(service, `https://${name}/`, {
        events: ["payment.created"],
      });
      await service.make({ outcome: "pending" });
      await settle(service);
      const [delivery] = await deliveriesOf(service, `&endpoint_id=${id}`);
      const { status, attempts, next_attempt_at } = delivery;
      records.set(name, { status, attempts, next_attempt_at });
      await service.sql`delete from pay.webhook_endpoints`;
      await service.sql`delete from pay.webhook_deliveries`;
    }
    const at = new Date(AT).toISOString();
    for (const [name, record] of records) {
      await t.step(name, () => {
        assert.deepEqual(record, {
          status: "pending",
          attempts: [
            { number: 1, at, response_status: null, duration_ms: 0, error: "connection_failed" },
          ],
          next_attempt_at: new Date(AT + 5_000).toISOString(),
        });
      });
    }
    await t.step("no blocked address was called", () => {
      assert.equal(canary.arrivals.length, 0);
    });
  } finally {
    await service.close();
    await Promise.all([resetting, expired, plain, babbling, canary].map((one) => one.close()));
  }
});

const RESPONSES: [status: number, delivered: boolean][] = [
  [200, true],
  [201, true],
  [204, true],
  [299, true],
  [301, false],
  [302, false],
  [303, false],
  [304, false],
  [307, false],
  [308, false],
  [400, false],
  [404, false],
  [429, false],
  [500, false],
  [503, false],
];
webhookCase("only 2xx is delivered, and 3xx is not followed", async (t, service, hooks) => {
  const canary = openRecorder();
  await service.setClock(AT);
  try {
    await addEndpoint(service, hooks.url("/"), { events: ["payment.created"] });
    for (const [status, delivered] of RESPONSES) {
      await t.step(`${status}`, async () => {
        const headers = { Location: canary.url("/internal"), "Retry-After": "5" };
        hooks.judge = () => new Response(null, { status, headers });
        const { body: payment } = await service.make({ outcome: "pending" });
        await settle(service);
        const [delivery] = await deliveriesOf(service, `&payment_id=${payment.id}`);
        assert.equal(delivery.status, delivered ? "delivered" : "pending");
        const [{ response_status, error }] = delivery.attempts;
        assert.deepEqual([response_status, error], [status, null]);
        assert.equal(canary.arrivals.length, 0);
      });
    }
  } finally {
    await canary.close();
  }
});

webhookCase("a receiver without a response in time is a timeout", async (_, service, hooks) => {
  await addEndpoint(service, hooks.url("/"));
  let respond = () => {};
  hooks.judge = () => new Promise((resolve) => respond = () => resolve(200));
  await service.make({ outcome: "pending" });
  await settle(service);
  respond();
  const [delivery] = await deliveriesOf(service);
  const [{ response_status, error, duration_ms }] = delivery.attempts;
  assert.deepEqual([response_status, error, duration_ms], [null, "timeout", 500]);
}, { webhook_sender: { timeouts: { connect_ms: 300, total_ms: 500 } } });

webhookCase(
  "a delivery and the log have nothing of a receiver's response",
  async (_, service, hooks) => {
    await addEndpoint(service, hooks.url("/"));
    hooks.judge = () =>
      new Response("response-canary-body", {
        status: 500,
        headers: { "X-Canary": "response-canary" },
      });
    await service.make({ outcome: "pending" });
    await settle(service);
    // A sandbox keeps the beginning of a response in a table of its own (attempt_log_test.ts).
    const rows = await service.sql`select t::text as row from pay.webhook_deliveries t`;
    assert.ok(rows.length > 0 && !rows.some(({ row }) => row.includes("canary")));
    assert.ok(!JSON.stringify(await deliveriesOf(service)).includes("canary"));
    assert.ok(!JSON.stringify(service.logs).includes("canary"));
  },
);

webhookCase(
  "the log has a line for each attempt, with the id of the event's request",
  async (_, service, receiver) => {
    const { body: endpoint } = await service.call(
      "POST",
      "/api-v1-payments/v1/webhook_endpoints",
      { body: { url: receiver.url("/"), events: ["payment.completed"] } },
    );
    const text = '"request":{"id":"req_of_a_stranger"';
    const paid = await service.pay({ outcome: "success", metadata: { text } });
    const lines = () => service.logs.filter(({ route }) => route === "webhook attempt");
    await until("the attempt is logged", () => lines().length === 1);
    const { body: deliveries } = await service.call(
      "GET",
      `/api-v1-payments/v1/webhook_deliveries?payment_id=${paid.body.id}`,
    );
    const [{ time: _time, ms: _ms, ...line }] = lines() as [LogLine];
    assert.deepEqual(line, {
      request_id: paid.headers.get("Request-Id"),
      key_id: null,
      route: "webhook attempt",
      status: 200,
      code: null,
      event_id: deliveries.data[0].event_id,
      delivery_id: deliveries.data[0].id,
      endpoint_id: endpoint.id,
      attempt: 1,
    });
  },
);
