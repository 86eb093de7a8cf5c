/**
 * Capture, cancel, refund and authenticate from every status (contract §2): the effect of each
 * where it is allowed, and elsewhere 409 without a change.
 */

import assert from "node:assert/strict";
import type { TestService } from "../support/service/service.ts";
import { changesBetween, recordOf } from "../support/database/payment_records.ts";
import {
  assertRefused,
  card,
  paymentIn,
  PAYMENTS,
  SANDBOX,
  serviceCase,
  STATUSES,
} from "../support/service/service_case.ts";

const MADE_AT = Date.parse("2026-05-01T10:00:00.000Z");
const MOVED = "2026-05-02T11:12:13.141Z";

/** The statuses that can follow a status by any means. The message of a refused move lists them. */
const NEXT: Record<string, string> = {
  pending: "requires_action processing completed declined failed cancelled",
  requires_action: "completed declined failed cancelled",
  processing: "completed declined failed",
  authorized: "completed failed cancelled",
  completed: "partially_refunded refunded chargeback",
  declined: "",
  failed: "",
  cancelled: "",
  partially_refunded: "refunded chargeback",
  refunded: "",
  chargeback: "completed",
};

/** The effect of a move where it is allowed. */
interface Effect {
  http: number;
  status: string;
  events: string[];
  ledger: string[];
  members: Record<string, unknown>;
}

const CANCEL: Effect = {
  http: 200,
  status: "cancelled",
  events: ["payment.cancelled"],
  ledger: [],
  members: { cancelled_at: MOVED, next_action: null },
};

/** A cancel that releases an authorization. */
const RELEASE: Effect = { ...CANCEL, members: { ...CANCEL.members, capture_before: null } };

function refunded(amount: number): Effect {
  return {
    http: 201,
    status: "refunded",
    events: ["refund.created", "refund.completed", "payment.refunded"],
    ledger: [`refund available>processor ${amount} EUR`],
    members: { amount_refunded: 1000 },
  };
}

const AUTHENTICATED: Effect = {
  http: 200,
  status: "completed",
  events: ["payment.completed"],
  ledger: ["capture processor>available 1000 EUR"],
  members: { completed_at: MOVED, next_action: null, amount_captured: 1000 },
};

const CAPTURED: Effect = {
  ...AUTHENTICATED,
  members: { ...AUTHENTICATED.members, capture_before: null },
};

const NOT_AUTHENTICATED: Effect = {
  http: 402,
  status: "declined",
  events: ["payment.declined"],
  ledger: [],
  members: {
    next_action: null,
    failure_code: "authentication_failed",
    failure_message: "The payer failed to authenticate",
    advice: "authenticate",
  },
};

const COMMANDS: [string, (id: string) => string, unknown, Record<string, Effect>][] = [
  ["POST /v1/payments/{id}/capture", (id) => `${PAYMENTS}/${id}/capture`, undefined, {
    authorized: CAPTURED,
  }],
  ["POST /v1/payments/{id}/cancel", (id) => `${PAYMENTS}/${id}/cancel`, undefined, {
    pending: CANCEL,
    requires_action: CANCEL,
    authorized: RELEASE,
  }],
  ["POST /v1/payments/{id}/cancel with {}", (id) => `${PAYMENTS}/${id}/cancel`, {}, {
    pending: CANCEL,
    requires_action: CANCEL,
    authorized: RELEASE,
  }],
  ["POST /v1/payments/{id}/refund", (id) => `${PAYMENTS}/${id}/refund`, undefined, {
    completed: refunded(1000),
    partially_refunded: refunded(600),
  }],
  [
    "POST /payments/{id}/authenticate",
    (id) => `${SANDBOX}/payments/${id}/authenticate`,
    undefined,
    {
      requires_action: AUTHENTICATED,
    },
  ],
  [
    "POST /v1/payments/{id}/authenticate success",
    (id) => `${SANDBOX}/v1/payments/${id}/authenticate`,
    {
      result: "success",
    },
    { requires_action: AUTHENTICATED },
  ],
  ["POST /payments/{id}/authenticate failure", (id) => `${SANDBOX}/payments/${id}/authenticate`, {
    result: "failure",
  }, { requires_action: NOT_AUTHENTICATED }],
];

for (const [name, address, body, effects] of COMMANDS) {
  serviceCase(`${name} from every status`, async (t, service) => {
    for (const from of STATUSES) {
      const effect = effects[from];
      await t.step(`${from} → ${effect?.status ?? "409"}`, async () => {
        service.trySetClock(MADE_AT);
        const payment = await paymentIn(service, from);
        const is_set = service.trySetClock(Date.parse(MOVED));
        await check(service, is_set, payment, address(payment.id), body, effect);
      });
    }
  });
}

async function check(
  service: TestService,
  is_set: boolean,
  // deno-lint-ignore no-explicit-any
  payment: any,
  url: string,
  body: unknown,
  effect: Effect | undefined,
): Promise<void> {
  const before = await recordOf(service, payment.id);
  const response = await service.call("POST", url, { body });
  const after = await recordOf(service, payment.id);
  if (!effect) {
    assertRefused(response, 409, "invalid_state");
    const { current_status, allowed } = response.body.error;
    assert.equal(current_status, payment.status);
    assert.deepEqual(allowed.toSorted(), NEXT[payment.status]!.split(" ").filter(Boolean).sort());
    return assert.equal(after.text, before.text);
  }
  assert.equal(response.status, effect.http, response.text);
  const { events, sequences, ledger } = changesBetween(before, after);
  assert.deepEqual({ events, ledger }, { events: effect.events, ledger: effect.ledger });
  assert.deepEqual(sequences, sequences.map((_, i) => i + 1));
  const stored = await service.call("GET", `${PAYMENTS}/${payment.id}`);
  const moved = is_set ? MOVED : stored.body.updated_at;
  const expected = {
    ...payment,
    status: effect.status,
    sequence: sequences.length,
    updated_at: moved,
    ...JSON.parse(JSON.stringify(effect.members ?? {}).replaceAll(MOVED, moved)),
  };
  assert.deepEqual(stored.body, expected);
  assert.deepEqual(after.events.at(-1)!.payload.data.object, expected);
  if (effect.http === 200) assert.equal(response.text, stored.text);
  if (effect.http === 402) {
    assertRefused(response, 402, "authentication_failed");
    assert.deepEqual(response.body.error.payment, expected);
  }
}

serviceCase("POST /payments/{id}/authenticate settles a 3-D Secure card", async (t, service) => {
  for (
    const [result, http, status] of [["success", 200, "completed"], ["failure", 402, "declined"]]
  ) {
    await t.step(`${result} → ${http} ${status}`, async () => {
      const { body: payment } = await service.pay(card("4000 0025 0000 3155"));
      const path = new URL(payment.next_action.url).pathname.replace("/functions/v1", "");
      const response = await service.call("POST", path, { body: { result } });
      assert.equal(response.status, http);
      const { body } = await service.call("GET", `${PAYMENTS}/${payment.id}`);
      assert.deepEqual([body.status, body.next_action, body.method], [
        status,
        null,
        payment.method,
      ]);
    });
  }
  for (const result of ["maybe", "", null, true]) {
    await t.step(`${JSON.stringify(result)} → 400`, async () => {
      const { body: payment } = await service.pay(card("4000 0025 0000 3155"));
      const path = `${SANDBOX}/payments/${payment.id}/authenticate`;
      const before = await recordOf(service, payment.id);
      const response = await service.call("POST", path, { body: { result } });
      assertRefused(response, 400, "invalid_parameter", "result");
      assert.equal((await recordOf(service, payment.id)).text, before.text);
    });
  }
});

serviceCase("a payment of another environment is 404", async (t, service) => {
  const { body: foreign } = await service.make({ outcome: "pending" }, { key: service.other.text });
  const ids: [string, string][] = [
    ["another environment's", foreign.id],
    ["unknown", `pay_${"0".repeat(26)}`],
    ["a refund's id", `re_${"0".repeat(26)}`],
    ["no id", "pay_1"],
    ["odd characters", "%00%27%3B--"],
  ];
  const routes: [method: string, (id: string) => string, body?: unknown][] = [
    ["GET", (id) => `${PAYMENTS}/${id}`],
    ["POST", (id) => `${PAYMENTS}/${id}/capture`],
    ["POST", (id) => `${PAYMENTS}/${id}/cancel`],
    ["POST", (id) => `${PAYMENTS}/${id}/refund`],
    ["GET", (id) => `${PAYMENTS}/${id}/refunds`],
    ["GET", (id) => `/api-v1-payments/v1/refunds/${id}`],
    ["POST", (id) => `${SANDBOX}/payments/${id}/advance`, { to: "completed" }],
    ["POST", (id) => `/api-v1-payments/v1/sandbox/${id}/advance`, { to: "completed" }],
    ["POST", (id) => `${SANDBOX}/payments/${id}/authenticate`],
    ["POST", (id) => `${SANDBOX}/refunds/${id}/advance`, { to: "completed" }],
  ];
  const before = await recordOf(service, foreign.id);
  for (const [method, path, body] of routes) {
    const messages = new Map<string, string>();
    for (const [name, id] of ids) {
      await t.step(`${method} ${path("{id}")} with ${name}`, async () => {
        const response = await service.call(method, path(id), { body });
        assertRefused(response, 404, "not_found");
        assert.ok(!response.text.includes(id), "the id is repeated");
        messages.set(name, response.body.error.message);
      });
    }
    await t.step(`${method} ${path("{id}")} treats foreign ids like unknown ones`, () => {
      assert.equal(messages.get("another environment's"), messages.get("unknown"));
      for (const name of ["no id", "odd characters"]) {
        assert.match(messages.get(name)!, /which begins with "(pay|re)_"/);
      }
    });
  }
  assert.equal((await recordOf(service, foreign.id)).text, before.text);
});
