/**
 * The deliveries of a seeded sandbox repeat byte for byte (ADR 0023): two runs in two databases
 * send the same bodies and headers, through a URL and through an inbox. Only the time of the
 * signature differs, and the signature with it.
 */

import assert from "node:assert/strict";
import { until } from "../support/common/until.ts";
import { startService } from "../support/service/service.ts";
import { APPROVED, card, commandClock, SANDBOX } from "../support/service/service_case.ts";
import { addInbox, readInbox } from "../support/webhook/inbox_reader.ts";
import { addEndpoint, DELIVERIES, openRecorder } from "../support/webhook/recording_receiver.ts";

const V1 = "/api-v1-payments/v1";

/** Shows what a receiver got, without what names the connection or the time of the signature. */
function shown(body: string, headers: Iterable<[string, string]>): string {
  const lines = [...headers].map(([name, value]) => `${name.toLowerCase()}: ${value}`)
    .filter((line) => !/^(host|connection|accept-encoding):/.test(line)).sort();
  const without_time = lines.map((line) =>
    /^(payment-signature|webhook-(signature|timestamp)):/.test(line)
      ? line.replaceAll(/[0-9A-Za-z+/]{40,}=*|\d{10}/g, "…")
      : line
  );
  return [...without_time, body].join("\n");
}

/**
 * Makes payments, a refund, a transfer and a dispute in a new database, whose installation has
 * another master secret. Returns the secrets of the two endpoints, and all that they got.
 */
async function runOnce(webhook_master_secret: string) {
  await using service = await startService({ webhook_master_secret });
  // The first attempts of an event fail, and the clock makes the second one due.
  await using receiver = openRecorder(({ event, headers }) =>
    event.type === "payment.declined" && headers.get("Webhook-Attempt") === "1" ? 500 : 200
  );
  const seed = { seed: "deliveries", expires_in: 3600 };
  const made = await service.post(`${SANDBOX}/sandboxes`, seed);
  const options = { key: made.test_key };
  const post = async (path: string, body: unknown = {}) =>
    (await service.call("POST", path, { body, ...options })).body;
  const by_url = await addEndpoint(service, receiver.url("/hook"), {}, options);
  const by_inbox = await addInbox(service, {}, options);
  const faults = { duplicate: "refund.completed", delay: "transfer.completed" };
  for (const [fault, event_type] of Object.entries(faults)) {
    const where = { endpoint_id: by_inbox.id, event_type };
    const delay_ms = fault === "delay" ? 5_000 : undefined;
    await post(`${SANDBOX}/faults`, { on: "delivery", fault, where, delay_ms });
  }
  const pay = (method: object) =>
    post(`${V1}/payments`, { amount: 900, currency: "EUR", ...method });
  await pay(card("4000 0000 0000 0002"));
  const paid = await pay(APPROVED.card);
  await post(`${V1}/payments/${paid.id}/refund`, { amount: 200 });
  await pay(APPROVED.stablecoin);
  const destination = APPROVED.sepa;
  await post(`${V1}/transfers`, { amount: 100, currency: "EUR", destination });
  await pay(card("4000 0000 0000 0259"));
  await commandClock(service, { advance: 90_000 }, options);
  const inbox = (await readInbox(service, by_inbox.id, "limit=100", options)).body.data;
  await until(
    "every delivery has succeeded",
    async () => (await service.get(`${DELIVERIES}?status=pending`, options)).data.length === 0,
  );
  return {
    secrets: [by_url.secret, by_inbox.secret],
    url: receiver.arrivals.map(({ text, headers }) => shown(text, headers)).sort(),
    inbox: inbox.map((one: { body: string; headers: Record<string, string> }) =>
      shown(one.body, Object.entries(one.headers))
    ).sort(),
  };
}

Deno.test("the deliveries of a seeded sandbox are the same in another database", async () => {
  const first = await runOnce("a".repeat(32));
  assert.deepEqual(await runOnce("b".repeat(32)), first);
  assert.equal(first.url.filter((text) => text.includes("webhook-attempt: 2")).length, 1);
  const faults = first.inbox.flatMap((text: string) =>
    /sandbox-fault: (\w+)/.exec(text)?.[1] ?? []
  );
  assert.deepEqual(faults.toSorted(), ["delay", "duplicate", "duplicate"]);
  assert.ok(first.inbox.length > 15, `${first.inbox.length} deliveries`);
});
