/**
 * The requests of a run in a seeded sandbox. They cover every operation, with the ids of earlier
 * responses and without any random value, so a second run sends the same requests.
 */

import type { TestResponse } from "../service/service.ts";

/** Sends one request of the run with the key of its sandbox, and counts it. */
export type Send = (
  method: string,
  path: string,
  options?: { body?: unknown; idempotency_key?: string },
) => Promise<TestResponse>;

const PAYMENTS = "/api-v1-payments/v1";
const SANDBOX = "/api-v1-sandbox";

const CARD = { exp_month: 12, exp_year: 2034, cvc: "123" };
const cardOf = (number: string) => ({ card: { ...CARD, number } });

/** Instruments of every kind and behaviour. */
const INSTRUMENTS = [
  cardOf("4242 4242 4242 4242"),
  cardOf("4000 0000 0000 0002"),
  cardOf("4000 0000 0000 9995"),
  cardOf("4000 0025 0000 3155"),
  cardOf("4100 0000 0000 0019"),
  cardOf("4000 0000 0000 0069"),
  { card: { token: "pm_card_amex" } },
  { iban: "DE89 3704 0044 0532 0130 00" },
  { iban: "DE00 0000 0000 0000 0000 99" },
  { iban: "GB82 WEST 1234 5698 7654 32" },
  {
    iban: "DE89 3704 0044 0532 0130 00",
    mandate: { id: "M-1", signed_at: "2029-12-01", sequence: "recurring" },
  },
  { wallet: "0x000000000000000000000000000000000000dEaD" },
  { wallet: "0x0000000000000000000000000000000000000BAD" },
];

/** Lists whose items follow from the requests. */
const LISTS = [
  "payments",
  "refunds",
  "transfers",
  "disputes",
  "events",
  "ledger_entries",
  "webhook_endpoints",
  "webhook_deliveries",
  "api_keys",
];

/** An id of each kind that no run has. */
const UNKNOWN = "0".repeat(26);

/** Sends the requests of one round. */
export async function runRound(send: Send, round: number): Promise<void> {
  const key = (name: string) => `round-${round}-${name}`;
  const pay = (body: object) =>
    send("POST", `${PAYMENTS}/payments`, {
      body: { amount: 1000 + round, currency: "EUR", ...body },
    });

  // Nothing is delivered, because attempts depend on the speed of the receiver.
  const endpoint = await send("POST", `${PAYMENTS}/webhook_endpoints`, {
    body: { url: `https://shop.example/hooks/${round}`, events: ["payment.created"] },
    idempotency_key: key("endpoint"),
  });
  const endpoint_path = `${PAYMENTS}/webhook_endpoints/${endpoint.body.id}`;
  await send("PUT", endpoint_path, { body: { status: "disabled" } });
  for (const instrument of INSTRUMENTS) await pay(instrument);
  await money(send, key, pay);
  await disputes(send, pay);
  await transfers(send, key);
  await webhooks(send, endpoint_path);
  await inbox(send, key);
  await faults(send, pay);
  await keys(send, round);
  await mistakes(send);
  await clock(send);
  for (const list of LISTS) {
    const page = await send("GET", `${PAYMENTS}/${list}?limit=3`);
    const { next_cursor } = page.body;
    if (next_cursor !== null) {
      await send("GET", `${PAYMENTS}/${list}?limit=2&starting_after=${next_cursor}`);
    }
  }
  await send("GET", `${PAYMENTS}/balance`);
}

async function money(
  send: Send,
  key: (name: string) => string,
  pay: (body: object) => Promise<TestResponse>,
): Promise<void> {
  const manual = await pay({ ...INSTRUMENTS[0], capture: "manual" });
  await send("POST", `${PAYMENTS}/payments/${manual.body.id}/capture`, { body: { amount: 500 } });
  const cancelled = await pay({ ...INSTRUMENTS[0], capture: "manual" });
  await send("POST", `${PAYMENTS}/payments/${cancelled.body.id}/cancel`);

  const twice = {
    body: { amount: 4200, currency: "EUR", ...INSTRUMENTS[0] },
    idempotency_key: key("pay"),
  };
  const paid = await send("POST", `${PAYMENTS}/payments`, twice);
  await send("POST", `${PAYMENTS}/payments`, twice);
  await send("POST", `${PAYMENTS}/payments`, { ...twice, body: { ...twice.body, amount: 1 } });
  const refund = await send("POST", `${PAYMENTS}/payments/${paid.body.id}/refund`, {
    body: { amount: 200 },
  });
  await send("GET", `${PAYMENTS}/payments/${paid.body.id}`);
  await send("GET", `${PAYMENTS}/payments/${paid.body.id}/refunds`);
  await send("GET", `${PAYMENTS}/refunds/${refund.body.id}`);

  const slow = await send("POST", `${SANDBOX}/payments`, {
    body: { amount: 3000, currency: "EUR", settlement: "manual", ...INSTRUMENTS[7] },
  });
  await send("POST", `${SANDBOX}/payments/${slow.body.id}/advance`, { body: { to: "completed" } });
  const late = await send("POST", `${PAYMENTS}/payments/${slow.body.id}/refund`, { body: {} });
  await send("POST", `${SANDBOX}/refunds/${late.body.id}/advance`, { body: { to: "failed" } });
  await send("DELETE", `${PAYMENTS}/payments/${slow.body.id}/bank_details`);
  await send("GET", `${PAYMENTS}/payments?status=completed&limit=2`);
  const requested = await pay(INSTRUMENTS[3]!);
  await send("POST", `${SANDBOX}/payments/${requested.body.id}/authenticate`, { body: {} });
  const pending = await send("POST", `${SANDBOX}/payments`, {
    body: { amount: 700, currency: "USD", outcome: "pending", ...INSTRUMENTS[0] },
  });
  await send("POST", `${PAYMENTS}/sandbox/${pending.body.id}/advance`, {
    body: { to: "chargeback" },
  });
}

/** A dispute that is won, and one that is given up. */
async function disputes(send: Send, pay: (body: object) => Promise<TestResponse>): Promise<void> {
  const path = `${PAYMENTS}/disputes`;
  for (const action of ["evidence", "accept"]) {
    const disputed = await pay(cardOf("4000 0000 0000 0259"));
    const page = await send("GET", `${path}?payment_id=${disputed.body.id}`);
    const { id } = page.body.data[0];
    const body = action === "evidence" ? { text: "winning_evidence" } : undefined;
    await send("POST", `${path}/${id}/${action}`, { body });
    await send("GET", `${path}/${id}`);
  }
}

async function transfers(send: Send, key: (name: string) => string): Promise<void> {
  const create = (name: string) =>
    send("POST", `${PAYMENTS}/transfers`, {
      body: {
        amount: 100,
        currency: "EUR",
        destination: { iban: "DE89370400440532013000", holder_name: "Ada Lovelace" },
      },
      idempotency_key: key(name),
    });
  const first = await create("transfer");
  await send("POST", `${SANDBOX}/transfers/${first.body.id}/advance`, {
    body: { to: "completed" },
  });
  const second = await create("cancelled transfer");
  await send("POST", `${PAYMENTS}/transfers/${second.body.id}/cancel`);
  await send("DELETE", `${PAYMENTS}/transfers/${first.body.id}/bank_details`);
  await send("GET", `${PAYMENTS}/transfers/${first.body.id}`);
  // This key has no replay, because replays are counted behind their responses.
  await send("GET", `${PAYMENTS}/idempotency_keys/${encodeURIComponent(key("transfer"))}`);
}

async function webhooks(send: Send, path: string): Promise<void> {
  await send("GET", path);
  await send("POST", `${path}/rotate_secret`, { body: {} });
  await send("POST", `${path}/rotate_secret`, { body: { expires_in: 3600 } });
  const events = await send("GET", `${PAYMENTS}/events?limit=1`);
  await send("GET", `${PAYMENTS}/events/${events.body.data[0].id}`);
  await send("GET", `${PAYMENTS}/webhook_deliveries/whd_${UNKNOWN}`);
  await send("POST", `${PAYMENTS}/webhook_deliveries/whd_${UNKNOWN}/redeliver`);
  await send("DELETE", path);
}

/** An inbox without deliveries, because the headers of a delivery have the real time. */
async function inbox(send: Send, key: (name: string) => string): Promise<void> {
  const endpoint = await send("POST", `${PAYMENTS}/webhook_endpoints`, {
    body: { delivery: "inbox", events: ["transfer.failed"] },
    idempotency_key: key("inbox"),
  });
  const path = `${PAYMENTS}/webhook_endpoints/${endpoint.body.id}`;
  await send("GET", `${path}/inbox?wait=0`);
  await send("POST", `${path}/recover`, { body: { since: endpoint.body.created_at } });
  await send("DELETE", path);
}

/** A declared fault that happens, and one that is deleted. */
async function faults(send: Send, pay: (body: object) => Promise<TestResponse>): Promise<void> {
  const path = `${SANDBOX}/faults`;
  const where = { method: "POST", path: "/v1/payments" };
  const declared = await send("POST", path, {
    body: { on: "request", fault: "rate_limited", where },
  });
  await pay(INSTRUMENTS[0]!);
  await pay(INSTRUMENTS[0]!);
  await send("GET", `${path}/${declared.body.id}`);
  const other = await send("POST", path, {
    body: { on: "provider", fault: "declined", where: { method_kind: "card" } },
  });
  await send("GET", `${path}?limit=2`);
  await send("DELETE", `${path}/${other.body.id}`);
}

/** The clock moves on, and a payment that waits for the payer expires. */
async function clock(send: Send): Promise<void> {
  await send("POST", `${SANDBOX}/payments`, {
    body: { amount: 900, currency: "EUR", ...INSTRUMENTS[3] },
  });
  await send("GET", `${SANDBOX}/clock`);
  await send("POST", `${SANDBOX}/clock`, { body: { advance: 86_400 } });
}

async function keys(send: Send, round: number): Promise<void> {
  const made = await send("POST", `${PAYMENTS}/api_keys`, { body: { name: `Key ${round}` } });
  const path = `${PAYMENTS}/api_keys/${made.body.id}`;
  await send("GET", path);
  // The older of two secrets of the same time is not known.
  await send("POST", `${SANDBOX}/clock`, { body: { advance: 1 } });
  await send("POST", `${path}/rotate`, { body: {} });
  await send("DELETE", path);
}

async function mistakes(send: Send): Promise<void> {
  await send("POST", `${PAYMENTS}/payments`, { body: { amount: -1, currency: "EUR" } });
  await send("POST", `${PAYMENTS}/payments`, { body: "not an object" });
  await send("GET", `${PAYMENTS}/payments/pay_${UNKNOWN}`);
  await send("GET", `${PAYMENTS}/nothing`);
  await send("POST", `${SANDBOX}/webhooks/trigger`, {
    body: {
      endpoint_id: `whe_${UNKNOWN}`,
      event: "payment.created",
      payment_id: "x",
    },
  });
  await send("POST", `${SANDBOX}/sandboxes`, { body: { seed: "another" } });
  await send("GET", `${SANDBOX}/sandboxes`);
  await send("GET", `${SANDBOX}/sandboxes/env_${UNKNOWN}`);
  await send("DELETE", `${SANDBOX}/sandboxes/env_${UNKNOWN}`);
}
