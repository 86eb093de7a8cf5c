/**
 * The deliveries of a seeded sandbox repeat byte for byte (ADR 0023): two runs in two databases
 * send the same bodies and headers, through a URL and through an inbox. Only the time of the
 * signature differs, and the signature with it.
 */

import assert from "node:assert/strict";
import { verifyWebhook } from "../../packages/client/webhook_signature.ts";
import { until } from "../support/common/until.ts";
import { APPROVED_CARD, startService, type TestService } from "../support/service/service.ts";
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

/** The deliveries of a run, in the order of their events and attempts, and the secrets. */
interface Run {
  by_url: Delivered[];
  by_inbox: Delivered[];
  secrets: { by_url: string; by_inbox: string };
}

const idOf = ({ headers }: Delivered) => `${headers["webhook-id"]} ${headers["webhook-attempt"]}`;
const inOrder = (deliveries: Delivered[]) => deliveries.sort((a, b) => idOf(a) < idOf(b) ? -1 : 1);

function readHeaders(headers: Iterable<[string, string]>): Record<string, string> {
  return Object.fromEntries(
    [...headers].map(([name, value]) => [name.toLowerCase(), value] as [string, string])
      .filter(([name]) => !OF_CONNECTION.has(name)).sort(),
  );
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
    await pay({ iban: "DE89 3704 0044 0532 0130 00" });
    await pay({ wallet: "0x000000000000000000000000000000000000dEaD", currency: "USDC" });
    await post(`${V1}/transfers`, {
      amount: 100,
      currency: "EUR",
      destination: { iban: "DE89 3704 0044 0532 0130 00" },
    });
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
    const inbox: Delivered[] = [];
    for (let cursor = "", more = true; more;) {
      const query = `limit=20&${cursor && `after=${cursor}`}`;
      const page = await service.call("GET", `${ENDPOINTS}/${by_inbox.id}/inbox?${query}`, { key });
      assert.equal(page.status, 200, page.text);
      for (const { headers, body } of page.body.data) {
        inbox.push({ body, headers: readHeaders(Object.entries(headers)) });
      }
      cursor = page.body.next_cursor;
      more = page.body.data.length > 0;
    }
    await until("every delivery has arrived", () => {
      const arrived = new Set(receiver.arrivals.map(({ event }) => event.id));
      return inbox.every(({ headers }) => arrived.has(headers["webhook-id"]));
    }, 10_000);
    return {
      by_url: inOrder(
        receiver.arrivals.map(({ text, headers }) => ({
          body: text,
          headers: readHeaders(headers),
        })),
      ),
      by_inbox: inOrder(inbox),
      secrets: { by_url: by_url.secret, by_inbox: by_inbox.secret },
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
  for (const way of ["by_url", "by_inbox"] as const) {
    await t.step(`${way}: the bytes and the headers`, () => {
      assert.ok(first[way].length > 15, `${first[way].length} deliveries`);
      assert.deepEqual(second[way].map(withoutTime), first[way].map(withoutTime));
    });
    await t.step(`${way}: the signatures, with the secret of the other run`, async () => {
      assert.equal(second.secrets[way], first.secrets[way]);
      for (const { body, headers } of second[way]) {
        await verifyWebhook(body, headers["payment-signature"]!, first.secrets[way]);
      }
    });
  }
  await t.step("a retry has its number", () => {
    const retried = first.by_url.filter(({ headers }) => headers["webhook-attempt"] === "2");
    assert.deepEqual(retried.map(({ body }) => JSON.parse(body).type), ["payment.declined"]);
  });
  await t.step("declared faults of the inbox repeat", () => {
    const faulty = first.by_inbox.filter(({ headers }) => headers["sandbox-fault"]);
    assert.deepEqual(
      faulty.map(({ body, headers }) => `${JSON.parse(body).type} ${headers["sandbox-fault"]}`)
        .toSorted(),
      [
        "refund.completed duplicate",
        "refund.completed duplicate",
        "transfer.completed delay",
        "transfer.created reorder",
      ],
    );
  });
  await t.step("the inbox and the URL get the same bodies", () => {
    const bodies = (deliveries: Delivered[]) => [...new Set(deliveries.map(({ body }) => body))];
    assert.deepEqual(bodies(first.by_url), bodies(first.by_inbox));
  });
});
