/**
 * The requests of a shop with a test key in the sandbox, and with a live key at the double of
 * Stripe: responses and events are equal, without ids, times, the mode, addresses and the
 * settlement, which only a sandbox has. At the end Stripe and the ledger have the same books.
 */

import assert from "node:assert/strict";
import {
  callAsPayer,
  callPage,
  challengePath,
  CHECKOUT_URL,
  openCheckout,
  tokenOf,
} from "../support/service/payer_page.ts";
import { deliver, eventsOf, Money } from "../support/live/live_actions.ts";
import { type LiveCase, liveCase, workAfter } from "../support/live/live_case.ts";
import type { TestResponse } from "../support/service/service.ts";

/** Members that differ by intent. `request` of an event names the request that caused it. */
const LEFT_OUT = ["livemode", "settlement", "request", "request_id", "idempotency_key"]
  // The account takes cards alone.
  .concat("methods", "publishable_key", "created_at");
const ID = /\b(pay|chk|re|dp|evt|req)_[0-9a-z]{26}\b/g;
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
  return name.endsWith("url") && name !== "return_url" ? "url" : value.replace(ID, "$1_");
}

/** Statuses and events before the provider's response, when only the sandbox knows the card. */
const BEFORE_RESPONSE = ["processing", "payment.created", "payment.processing"];

/** Returns a payment or another object in a comparable form. */
function shown(object: object, state: string): unknown {
  return comparable(BEFORE_RESPONSE.includes(state) ? { ...object, method: null } : object);
}

/** The key of a mode, and people whom the shop does not control. */
interface Mode {
  key: string;
  authenticate(payment: TestResponse["body"], result: "success" | "failure"): Promise<unknown>;
  dispute(id: string): Promise<unknown>;
  winDispute(id: string): Promise<unknown>;
  settleRefund(id: string, to: "completed" | "failed"): Promise<unknown>;
  /** Makes the next refund pending at first. Returns the token of a card for its payment. */
  slowRefundToken(): Promise<string>;
  /** Makes the result of the next payment late. Returns the token of its card. */
  lateToken(): Promise<string>;
}

function inTheSandbox({ service }: LiveCase): Mode {
  const ask = async (path: string, body: object) => {
    const response = await service.call("POST", `/api-v1-sandbox/${path}`, { body });
    assert.ok(response.status < 300, response.text);
  };
  return {
    key: service.key.text,
    authenticate: (payment, result) => callAsPayer(service, challengePath(payment), result),
    dispute: (id) => ask(`payments/${id}/advance`, { to: "chargeback" }),
    winDispute: (id) => ask(`payments/${id}/advance`, { to: "completed" }),
    settleRefund: (id, to) => ask(`refunds/${id}/advance`, { to }),
    async slowRefundToken() {
      await ask("faults", { on: "provider", fault: "timeout", where: { operation: "refund" } });
      return "visa";
    },
    lateToken: () => Promise.resolve("late"),
  };
}

function atStripe(given: LiveCase): Mode {
  const { double, service } = given;
  const learn = async () => await deliver(given, await eventsOf(given));
  return {
    key: service.live.text,
    async authenticate({ next_action: { url } }, result) {
      const page = await fetch(`${url}?result=${result}`, { redirect: "manual" });
      await page.body?.cancel();
      // Stripe leads back to the page of checkouts, which then leads to the shop.
      assert.ok(page.headers.get("Location")!.startsWith(CHECKOUT_URL));
      await learn();
    },
    dispute: (id) => new Money(given, id).dispute({ reason: "general" }),
    winDispute: (id) => new Money(given, id).close("won"),
    async settleRefund(id, to) {
      await new Money(given, id).settle(to === "completed" ? "succeeded" : "failed");
      await learn();
    },
    slowRefundToken: () => Promise.resolve("pendingRefund"),
    async lateToken() {
      await double.plant({
        ...{ method: "POST", path: "^/v1/payment_intents$", at: "after", act: "error" },
      });
      return "visa";
    },
  };
}

/** An order of 25.00 EUR. */
interface Order extends Mode {
  /** Pays as the page of the checkout does, with the token of a card. */
  pay(token: string): Promise<TestResponse>;
  /** Calls an operation of the newest payment. */
  move(op: "capture" | "cancel" | "refund", body?: object): Promise<TestResponse>;
  /** The newest payment. */
  payment(): Promise<TestResponse["body"]>;
  later(): Promise<void>;
}

/** A visit to the shop. It returns the responses that are compared, in their order. */
type Visit = (order: Order) => Promise<TestResponse[]>;

const VISITS: Record<string, Visit> = {
  "a declined order is paid with another card": async ({ pay }) => [
    await pay("chargeDeclined"),
    await pay("visa"),
  ],
  "the payer authenticates": authenticated("success"),
  "the payer fails to authenticate": authenticated("failure"),
  "an order that waits for the payer is cancelled": async ({ pay, move }) => [
    await pay("authenticationRequired"),
    await move("cancel"),
  ],
  "an order is captured once": async ({ pay, move }) => [
    await pay("visa"),
    await move("capture", { amount: 1000 }),
    await move("capture"),
  ],
  "an order with 3-D Secure is captured": async (order) => [
    ...await authenticated("success")(order),
    await order.move("capture"),
  ],
  "an authorized order is cancelled": async ({ pay, move }) => [
    await pay("visa"),
    await move("cancel"),
    await move("capture"),
  ],
  "an order is refunded in parts": async ({ pay, move }) => [
    await pay("visa"),
    await move("refund", { amount: 700 }),
    await move("refund", { amount: 1801 }),
    await move("refund"),
    await move("refund"),
  ],
  "a pending refund completes": slowRefund("completed"),
  "a pending refund fails": slowRefund("failed"),
  "a dispute is won": async ({ pay, move, payment, ...order }) => {
    const first = await pay("visa");
    const { id } = await payment();
    await order.dispute(id);
    const refund = await move("refund");
    await order.winDispute(id);
    return [first, refund];
  },
  "a late response completes the payment": async (order) => {
    const { body } = await order.pay(await order.lateToken());
    assert.equal(body.attempt.status, "processing");
    await order.later();
    return [];
  },
};

/** The visits whose payments are captured later. */
const CAPTURED_LATER = Object.keys(VISITS).filter((name) => /captured|authorized/.test(name));

function authenticated(result: "success" | "failure"): Visit {
  return async ({ pay, payment, authenticate }) => {
    const first = await pay("authenticationRequired");
    await authenticate(await payment(), result);
    return [first];
  };
}

function slowRefund(result: "completed" | "failed"): Visit {
  return async ({ pay, move, ...order }) => {
    const first = await pay(await order.slowRefundToken());
    const refund = await move("refund", { amount: 700 });
    await order.settleRefund(refund.body.id, result);
    return [first, refund];
  };
}

type Numbered = { sequence: number };

/** Plays a visit in a mode. Returns the responses, the payments and their events. */
async function play(given: LiveCase, mode: Mode, name: string, visit: Visit) {
  const { service } = given;
  const { key } = mode;
  const call = async (method: string, path: string, body?: object) =>
    await service.call(method, `/api-v1-payments/v1/${path}`, { key, ...(body && { body }) });
  const { id: checkout_id, token } = await openCheckout(service, {
    amount: 2500,
    methods: ["card"],
    capture: CAPTURED_LATER.includes(name) ? "manual" : "automatic",
  }, { key });
  const payments = async () => (await call("GET", `payments?checkout_id=${checkout_id}`)).body.data;
  const responses = await visit({
    ...mode,
    pay: (name) => callPage(service, token, { body: tokenOf(name) }),
    payment: async () => (await payments())[0],
    move: async (op, body = {}) => {
      const [{ id }] = await payments();
      return await call("POST", `payments/${id}/${op}`, op === "cancel" ? undefined : body);
    },
    // Longer than the first delay before the service asks again for an unknown result.
    later: () => workAfter(given, 6),
  });
  const found: TestResponse["body"][] = await payments();
  const events = await Promise.all(found.map(async ({ id }) => {
    const { data } = (await call("GET", `events?payment_id=${id}&limit=100`)).body;
    data.sort((a: Numbered, b: Numbered) => a.sequence - b.sequence);
    return data.map(({ type, sequence, data }: TestResponse["body"]) => [
      ...[type, sequence, shown(data.object, type)],
    ]);
  }));
  return {
    responses: responses.map(({ status, body }) => [status, shown(body, body.status)]),
    payments: found.map((payment) => shown(payment, payment.status)),
    events,
  };
}

liveCase("a shop sees the same with a test key and with a live key", async (given, t) => {
  for (const [name, visit] of Object.entries(VISITS)) {
    await t.step(name, async () => {
      const sandbox = await play(given, inTheSandbox(given), name, visit);
      assert.deepEqual(await play(given, atStripe(given), name, visit), sandbox);
    });
  }
}, { checkout_url: CHECKOUT_URL, account: { publishable_key: "pk_live_51Both" } });
