/**
 * The same shop runs with a test key in the sandbox and with a live key at the double of Stripe.
 * The responses of the shop, the exchanges of its client, the events and the order book are equal,
 * without ids, times, the mode, addresses and the settlement, which only a sandbox has. Without
 * localstripe the test is skipped.
 */

import assert from "node:assert/strict";
import type { Event, Exchange } from "../../packages/client/mod.ts";
import { no_stripe_double, startStripeDouble } from "../support/stripe/double.ts";
import {
  type OfficeResponse,
  type ShopPage,
  type ShopWorld,
  startShopWorld,
} from "../support/shop/shop_world.ts";

/** Members that differ by intent. `request` of an event names the request that caused it. */
const LEFT_OUT = ["livemode", "settlement", "request", "request_id", "idempotency_key"]
  // The account takes cards alone.
  .concat("methods");
const ID = /\b(pay|chk|re|dp|evt|req)_[0-9a-z]{26}\b/g;
/** The token of a checkout, and the shop's own id of an order. */
const TOKEN = /\bcht_[0-9a-f]{48}\b/g;
const ORDER = /\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g;
const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;
const CARD = ["last4", "exp_month", "exp_year"];

/** Returns a value without the parts that differ by intent. */
function comparable(value: unknown, name = ""): unknown {
  if (Array.isArray(value)) return value.map((one) => comparable(one));
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(
      Object.entries(value).filter(([member]) => !LEFT_OUT.includes(member))
        .map(([member, one]) => [member, comparable(one, member)]),
    );
  }
  // Each mode has test cards of its own.
  if (CARD.includes(name)) return typeof value;
  if (typeof value !== "string") return value;
  if (TIME.test(value)) return "time";
  const text = value.replace(ID, "$1_").replace(ORDER, "order").replace(TOKEN, "token");
  return name.endsWith("url") && name !== "return_url" ? "url" : text;
}

/** Statuses and events before the provider's response, when only the sandbox knows the card. */
const BEFORE_RESPONSE = ["processing", "payment.created", "payment.processing"];

/** Returns a request and its response in a comparable form. */
function comparableExchange({ request, response }: Exchange) {
  const { pathname } = new URL(request.url);
  const body = JSON.parse(response?.body ?? "null");
  return comparable({
    requested: `${request.method} ${pathname}`,
    status: response?.status,
    body: withoutEarlyCard(body, body?.status),
  });
}

/** Returns an event in a comparable form. */
function comparableEvent({ type, sequence, data }: Event) {
  return comparable({ type, sequence, object: withoutEarlyCard(data.object, type) });
}

function withoutEarlyCard(object: object, state: string): object {
  return BEFORE_RESPONSE.includes(state) ? { ...object, method: null } : object;
}

/** A visit to the shop. Returns the pages and responses of the shop. */
type Visit = (world: ShopWorld, order: string) => Promise<(ShopPage | OfficeResponse)[]>;

const VISA = "pm_card_visa";
/** The visits that order a frame, which ships later. The others order a print. */
const SHIPS_LATER = [
  "an order is captured when it ships",
  "an authorized order with 3-D Secure ships",
  "an authorized order is cancelled",
];

const pay = ({ pay }: ShopWorld, order: string, token: string) => pay(order, token);

/** Buys with 3-D Secure, and returns to the shop. */
const authenticated = (result: "success" | "failure"): Visit => async (world, order) => {
  const first = await pay(world, order, "pm_card_authenticationRequired");
  const payment = await world.reaches(order, "waiting");
  await world.others.authenticate(payment, result);
  await world.reaches(order, result === "success" ? "paid" : "declined");
  return [first, await world.browse(`/orders/${order}`)];
};

const VISITS: Record<string, Visit> = {
  "a declined order is paid with another card": async (world, order) => {
    const first = await pay(world, order, "pm_card_chargeDeclined");
    await world.reaches(order, "declined", { failure_code: "payment_declined" });
    const again = await pay(world, order, VISA);
    await world.reaches(order, "paid", { fulfilled: 1 });
    return [first, again];
  },
  "the payer authenticates and returns": authenticated("success"),
  "the payer fails to authenticate": authenticated("failure"),
  "an order is captured when it ships": async (world, order) => {
    const first = await pay(world, order, VISA);
    await world.reaches(order, "authorized", { fulfilled: 0 });
    const shipped = await world.office("POST", `/orders/${order}/ship`, { amount: 1000 });
    await world.reaches(order, "paid");
    return [first, shipped, await world.office("POST", `/orders/${order}/ship`, {})];
  },
  "an authorized order with 3-D Secure ships": async (world, order) => {
    const first = await pay(world, order, "pm_card_authenticationRequired");
    await world.others.authenticate(await world.reaches(order, "waiting"), "success");
    await world.reaches(order, "authorized");
    const returned = await world.browse(`/orders/${order}`);
    const shipped = await world.office("POST", `/orders/${order}/ship`, {});
    await world.reaches(order, "paid");
    return [first, returned, shipped];
  },
  "an authorized order is cancelled": async (world, order) => {
    const first = await pay(world, order, VISA);
    await world.reaches(order, "authorized");
    const cancelled = await world.office("POST", `/orders/${order}/cancel`);
    await world.reaches(order, "cancelled");
    const late = await world.office("POST", `/orders/${order}/ship`, {});
    return [first, cancelled, late];
  },
  "an order that waits for the payer is cancelled": async (world, order) => {
    const first = await pay(world, order, "pm_card_authenticationRequired");
    await world.reaches(order, "waiting");
    const cancelled = await world.office("POST", `/orders/${order}/cancel`);
    await world.reaches(order, "cancelled");
    return [first, cancelled];
  },
  "an order is refunded in parts": async (world, order) => {
    const first = await pay(world, order, VISA);
    await world.reaches(order, "paid");
    const part = await world.office("POST", `/orders/${order}/refund`, { amount: 700 });
    await world.reaches(order, "paid", { refunded: 700 });
    const too_much = await world.office("POST", `/orders/${order}/refund`, { amount: 1801 });
    const rest = await world.office("POST", `/orders/${order}/refund`, {});
    await world.reaches(order, "paid", { refunded: 2500 });
    const again = await world.office("POST", `/orders/${order}/refund`, {});
    return [first, part, too_much, rest, again];
  },
  "a pending refund completes": async (world, order) => await slowRefund(world, order, "completed"),
  "a pending refund fails": async (world, order) => await slowRefund(world, order, "failed"),
  "a dispute is won": async (world, order) => {
    const first = await pay(world, order, VISA);
    const payment = await world.reaches(order, "paid");
    await world.others.dispute(payment);
    await world.reaches(order, "disputed");
    const refund = await world.office("POST", `/orders/${order}/refund`, {});
    await world.others.winDispute(payment);
    await world.reaches(order, "paid", { fulfilled: 1 });
    return [first, refund];
  },
  // Last, because it moves the clock on.
  "a late response completes the payment": async (world, order) => {
    const first = await pay(world, order, await world.others.lateToken());
    await world.reaches(order, "processing", { fulfilled: 0 });
    await world.later();
    await world.reaches(order, "paid", { fulfilled: 1 });
    return [first];
  },
};

async function slowRefund(
  world: ShopWorld,
  order: string,
  result: "completed" | "failed",
): Promise<(ShopPage | OfficeResponse)[]> {
  const { others, client } = world;
  const first = await pay(world, order, await others.slowRefundToken());
  const { id } = await world.reaches(order, "paid");
  const refund = await world.office("POST", `/orders/${order}/refund`, { amount: 700 });
  const [pending] = await Array.fromAsync(client.payments.listRefunds(id));
  await others.settleRefund(pending!.id, result);
  const expected = result === "completed" ? { refunded: 700 } : { failed_refunds: 1 };
  await world.reaches(order, "paid", expected);
  return [first, refund];
}

/** Everything that a visit left behind, in a comparable form. */
async function seen(world: ShopWorld, name: string, visit: Visit) {
  world.takeExchanges();
  const product = SHIPS_LATER.includes(name) ? "frame" : "print";
  const opened = await world.browse("/orders", { product });
  const order = await world.newest();
  const responses = [opened, ...await visit(world, order)];
  // A second click, and a retry of a response that did not come in time, have the key of the first
  // request: only the last response counts.
  const by_key = Map.groupBy(
    world.takeExchanges(),
    ({ request }, at) => request.headers["Idempotency-Key"] ?? at,
  );
  const exchanges = [...by_key.values()].map((all) => comparableExchange(all.at(-1)!));
  const book = await world.order(order);
  const found = world.client.events.list({ payment_id: book.payment_id! });
  const events = (await Array.fromAsync(found) as Event[]).reverse();
  return {
    responses: comparable(responses),
    exchanges,
    book: comparable(book),
    events: events.map(comparableEvent),
  };
}

Deno.test({
  name: "a shop sees the same in the sandbox and with a live key at the double of Stripe",
  ignore: no_stripe_double,
  async fn(t) {
    const double = await startStripeDouble();
    assert.ok(double, "localstripe is not installed");
    const worlds: ShopWorld[] = [];
    try {
      worlds.push(await startShopWorld(null), await startShopWorld(double));
      for (const [name, visit] of Object.entries(VISITS)) {
        await t.step(name, async () => {
          const [sandbox, live] = await Promise.all(
            worlds.map((world) => seen(world, name, visit)),
          );
          assert.deepEqual(live, sandbox);
        });
      }
    } finally {
      for (const world of worlds) await world.close();
      await double.close();
    }
  },
});
