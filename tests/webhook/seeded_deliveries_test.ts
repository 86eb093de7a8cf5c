/**
 * The deliveries of a seeded sandbox repeat byte for byte (ADR 0023): two runs in two databases
 * send the same bodies and headers, through a URL and through an inbox. Only the time of the
 * signature differs, and the signature with it.
 */

import assert from "node:assert/strict";
import { verifyWebhook } from "../../packages/client/webhook_signature.ts";
import { until } from "../support/common/until.ts";
import { APPROVED_CARD, startService, type TestService } from "../support/service/service.ts";
import { APPROVED } from "../support/service/service_case.ts";
import { readInbox } from "../support/webhook/inbox_reader.ts";
import { ENDPOINTS, openRecorder } from "../support/webhook/recording_receiver.ts";

const V1 = "/api-v1-payments/v1";
const SANDBOX = "/api-v1-sandbox";
const cardOf = (number: string) => ({ card: { ...APPROVED_CARD, number } });
/** Headers that name the connection. */
const OF_CONNECTION: ReadonlySet<string> = new Set(["host", "connection", "accept-encoding"]);
/** The headers that contain the time of the signature. */
const OF_TIME: ReadonlySet<string> = new Set([
  "payment-signature",
  "webhook-signature",
  "webhook-timestamp",
]);

/** A delivery as a receiver gets it. */
interface Delivered {
  body: string;
  headers: Record<string, string>;
}

/** The deliveries of a run, in the order of their events and attempts, and the secret. */
type Run = Record<"url" | "inbox", { deliveries: Delivered[]; secret: string }>;

function inOrder(deliveries: { body: string; headers: Iterable<[string, string]> }[]): Delivered[] {
  const idOf = ({ headers }: Delivered) => `${headers["webhook-id"]} ${headers["webhook-attempt"]}`;
  return deliveries.map(({ body, headers }) => {
    const named = [...headers].map(([name, value]) => [name.toLowerCase(), value] as const);
    const own = named.filter(([name]) => !OF_CONNECTION.has(name)).sort();
    return { body, headers: Object.fromEntries(own) };
  }).sort((a, b) => idOf(a) < idOf(b) ? -1 : 1);
}

/** Makes payments, refunds, a transfer, disputes and an end by the clock, one after another. */
async function runOnce(service: TestService): Promise<Run> {
  const receiver = openRecorder(({ event, headers }) =>
    // The first attempts of some events fail, and the clock makes the second ones due.
    event.type === "payment.declined" && headers.get("Webhook-Attempt") === "1" ? 500 : 200
  );
  try {
    const made = await service.call("POST", `${SANDBOX}/sandboxes`, {
      body: { seed: "deliveries", expires_in: 3600 },
    });
    assert.equal(made.status, 201, made.text);
    const key = made.body.test_key;
    const post = async (path: string, body: unknown = {}) => {
      const response = await service.call("POST", path, { body, key });
      assert.ok(response.status < 500, response.text);
      return response.body;
    };
    const by_url = await post(ENDPOINTS, { url: receiver.url("/hook") });
    const by_inbox = await post(ENDPOINTS, { delivery: "inbox" });
    // The inbox has them of events that do not exist yet, so they fit in no earlier one.
    for (
      const [fault, event_type] of [
        ["duplicate", "refund.completed"],
        ["delay", "transfer.completed"],
        ["reorder", "transfer.created"],
      ]
    ) {
      const where = { endpoint_id: by_inbox.id, event_type };
      const delay_ms = fault === "delay" ? 5_000 : undefined;
      await post(`${SANDBOX}/faults`, { on: "delivery", fault, where, delay_ms });
    }
    const pay = (body: object) => post(`${V1}/payments`, { amount: 900, currency: "EUR", ...body });
    await pay(cardOf("4000 0000 0000 0002"));
    const paid = await pay(cardOf("4242 4242 4242 4242"));
    await post(`${V1}/payments/${paid.id}/refund`, { amount: 200 });
    await pay(APPROVED.stablecoin);
    const destination = APPROVED.sepa;
    await post(`${V1}/transfers`, { amount: 100, currency: "EUR", destination });
    const disputed = await pay(cardOf("4000 0000 0000 0259"));
    const path = `${V1}/disputes?payment_id=${disputed.id}`;
    const [dispute] = (await service.call("GET", path, { key })).body.data;
    await post(`${V1}/disputes/${dispute.id}/evidence`, { text: "winning_evidence" });
    await pay(cardOf("4000 0025 0000 3155"));
    for (let body: unknown = { advance: 90_000 }, more = true; more;) {
      const clock = await post(`${SANDBOX}/clock`, body);
      body = { to: clock.target };
      more = clock.has_more;
    }
    const inbox: { id: string; body: string; headers: Record<string, string> }[] = [];
    for (let cursor = "", more = true; more;) {
      const { body } = await readInbox(service, by_inbox.id, `limit=20${cursor}`, { key });
      inbox.push(...body.data);
      cursor = `&after=${body.next_cursor}`;
      more = body.data.length > 0;
    }
    await until("every delivery has arrived", () => {
      const arrived = new Set(receiver.arrivals.map(({ event }) => event.id));
      return inbox.every(({ headers }) => arrived.has(headers["Webhook-Id"]));
    }, 10_000);
    return {
      url: {
        deliveries: inOrder(
          receiver.arrivals.map(({ text, headers }) => ({ body: text, headers })),
        ),
        secret: by_url.secret,
      },
      inbox: {
        deliveries: inOrder(
          inbox.map(({ body, headers }) => ({ body, headers: Object.entries(headers) })),
        ),
        secret: by_inbox.secret,
      },
    };
  } finally {
    await receiver.close();
  }
}

/** Makes a run in a new database. Another installation has another master secret. */
async function freshRun(webhook_master_secret: string): Promise<Run> {
  const service = await startService({ webhook_master_secret });
  try {
    return await runOnce(service);
  } finally {
    await service.close();
  }
}

const withoutTime = ({ body, headers }: Delivered) => ({
  body,
  headers: Object.entries(headers).map(([name, value]) =>
    OF_TIME.has(name)
      ? [name, value.replaceAll(/[0-9A-Za-z+/]{40,}=*|\d{10}/g, "…")]
      : [name, value]
  ),
});

Deno.test("the deliveries of a seeded sandbox are the same in another database", async (t) => {
  const first = await freshRun("a".repeat(32));
  const second = await freshRun("b".repeat(32));
  for (const way of ["url", "inbox"] as const) {
    await t.step(`by ${way}: bytes, headers, and signatures with the same secret`, async () => {
      const { deliveries, secret } = second[way];
      assert.ok(deliveries.length > 15, `${deliveries.length} deliveries`);
      assert.deepEqual(deliveries.map(withoutTime), first[way].deliveries.map(withoutTime));
      assert.equal(secret, first[way].secret);
      for (const { body, headers } of deliveries) {
        await verifyWebhook(body, headers["payment-signature"]!, secret);
      }
    });
  }
  await t.step("a retry has its number", () => {
    const retried = first.url.deliveries.filter(({ headers }) =>
      headers["webhook-attempt"] === "2"
    );
    assert.deepEqual(retried.map(({ body }) => JSON.parse(body).type), ["payment.declined"]);
  });
  await t.step("declared faults of the inbox repeat", () => {
    const faulty = first.inbox.deliveries.flatMap(({ body, headers }) =>
      headers["sandbox-fault"] ? [`${JSON.parse(body).type} ${headers["sandbox-fault"]}`] : []
    );
    assert.deepEqual(faulty.toSorted(), [
      "refund.completed duplicate",
      "refund.completed duplicate",
      "transfer.completed delay",
      "transfer.created reorder",
    ]);
  });
  await t.step("the inbox and the URL get the same bodies", () => {
    const [by_url, by_inbox] = [first.url, first.inbox].map(({ deliveries }) =>
      new Set(deliveries.map(({ body }) => body))
    );
    assert.deepEqual(by_url, by_inbox);
  });
});
