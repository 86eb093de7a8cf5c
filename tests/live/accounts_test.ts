/** Accounts that cannot be used: a clear error, and nothing is sent. */

import assert from "node:assert/strict";
import type { TestResponse } from "../support/service/service.ts";
import { type LiveCase, liveCase } from "../support/live/live_case.ts";
import {
  assertBalanced,
  breaches,
  deliver,
  eventsOf,
  resumePolls,
  shown,
  stopPolls,
  workAfter,
} from "../support/live/live_books.ts";

const NO_ROWS = { payments: 0, keys: 0, operations: 0 };

async function counts({ service }: LiveCase): Promise<typeof NO_ROWS> {
  const [row] = await service.sql`
    select (select count(*)::int from pay.payments) as payments,
      (select count(*)::int from pay.idempotency_keys) as keys,
      (select count(*)::int from pay.provider_operations) as operations`;
  return row as unknown as typeof NO_ROWS;
}

liveCase("without an account a live create is 503 and writes nothing", async (given) => {
  await given.service.sql`select pay.disable_provider_account(${given.account_id})`;
  for (const body of [{}, { card: { token: "pm_unknown" } }, { capture: "manual" }]) {
    const response = await given.pay(body, { idempotency_key: "one" });
    assert.equal(response.status, 503, response.text);
    assert.equal(response.body.error.code, "provider_not_configured");
  }
  assert.deepEqual({ ...await counts(given) }, NO_ROWS);
  assert.deepEqual((await given.books()).payment_intent, []);
});

const BAD_CARDS: [name: string, card: object, param: string, is_stored: boolean][] = [
  [
    "a card number",
    { number: "4242424242424242", exp_month: 12, exp_year: 2034, cvc: "123" },
    "card.number",
    false,
  ],
  ["no token", {}, "card", false],
  ["a token that does not exist", { token: "pm_unknown" }, "card.token", true],
  ["a token of another account", { token: "" }, "card.token", true],
];
liveCase("a live create with a wrong card is 400 and charges nothing", async (given, t) => {
  for (const [name, card, param, is_stored] of BAD_CARDS) {
    await t.step(name, async () => {
      const before = await counts(given);
      const made = name.includes("another account")
        ? await given.double.act("tokens", { owner: "sk_live_other", card: "pm_card_visa" })
        : null;
      const body = param === "card" ? { method_kind: "card", card: undefined } : { card };
      const response = await given.pay(made ? { card: { token: made.id } } : body);
      assert.equal(response.status, 400, response.text);
      assert.equal(response.body.error.code, "invalid_parameter");
      assert.equal(response.body.error.param.split(".")[0], "card");
      assert.ok(!response.text.includes("4242424242424242"));
      const { payments } = await counts(given);
      assert.equal(payments - before.payments, is_stored ? 1 : 0);
      if (is_stored) assert.equal(response.body.error.payment.status, "failed");
    });
  }
  assert.deepEqual((await given.books()).charge, []);
  await assertBalanced(given);
});

liveCase("an account without its secret sends nothing", async (given, t) => {
  const { body: held } = await given.pay({ capture: "manual" });
  const { body: paid } = await given.pay();
  const { PROVIDER_STRIPE } = given.variables;
  const before = (await given.books()).event.length;
  for (const value of [undefined, ""]) {
    delete given.variables.PROVIDER_STRIPE;
    if (value !== undefined) given.variables.PROVIDER_STRIPE = value;
    const variable = value === undefined ? "without its variable" : "with an empty variable";
    await t.step(`create ${variable}`, async () => {
      const response = await given.pay();
      assert.equal(response.status, 402, response.text);
      assert.equal(response.body.error.code, "provider_refused");
      assert.doesNotMatch(response.text, /PROVIDER_STRIPE/);
      assert.match(await lastReply(given), /PROVIDER_STRIPE is not set/);
      assert.equal(response.body.error.payment.status, "failed");
    });
    for (const op of ["capture", "cancel"]) {
      await t.step(`${op} ${variable}`, async () => {
        const response = await given.call("POST", `/payments/${held.id}/${op}`, { body: {} });
        assert.equal(response.status, 402, response.text);
        assert.equal(response.body.error.code, "provider_refused");
        assert.equal((await shown(given, held.id)).status, "authorized");
      });
    }
    await t.step(`refund ${variable}`, async () => {
      const response = await given.call("POST", `/payments/${paid.id}/refund`, { body: {} });
      assert.equal(response.status, 201, response.text);
      assert.equal(response.body.status, "failed");
      assert.equal((await shown(given, paid.id)).amount_refunding, 0);
    });
  }
  assert.equal((await given.books()).event.length, before);
  given.variables.PROVIDER_STRIPE = PROVIDER_STRIPE!;
  const found = await breaches(given);
  assert.equal(found.length, 1);
  assert.match(
    found[0]!,
    /operations are refused since authorize of .*: the variable PROVIDER_STRIPE/,
  );
  await dismissAll(given);
  await given.work();
  await assertBalanced(given);
});

liveCase("a secret that is missing for a while leaves an open operation open", async (given) => {
  await stopPolls(given);
  await given.double.plant({ method: "POST", at: "before", act: "error" });
  const { body: { id, status } } = await given.pay();
  assert.equal(status, "processing");
  const { PROVIDER_STRIPE } = given.variables;
  delete given.variables.PROVIDER_STRIPE;
  await workAfter(given, 31);
  assert.equal((await shown(given, id)).status, "processing");
  given.variables.PROVIDER_STRIPE = PROVIDER_STRIPE!;
  await workAfter(given, 31);
  assert.equal((await shown(given, id)).status, "completed");
  assert.equal((await given.books()).charge.length, 1);
});

/** The operations that a wrong secret refuses, and the response of each. */
const OPERATIONS: [
  op: string,
  run: (given: LiveCase, held: string, paid: string) => Promise<TestResponse>,
  status: number,
][] = [
  ["create", (given) => given.pay({}, { idempotency_key: "refused" }), 402],
  ["capture", (given, held) => given.call("POST", `/payments/${held}/capture`, { body: {} }), 402],
  ["cancel", (given, held) => given.call("POST", `/payments/${held}/cancel`), 402],
  [
    "refund",
    (given, _, paid) => given.call("POST", `/payments/${paid}/refund`, { body: {} }),
    201,
  ],
];
liveCase(
  "a secret that the provider refuses at the first attempt is definite",
  async (given, t) => {
    await stopPolls(given);
    const { body: held } = await given.pay({ capture: "manual" });
    const { body: paid } = await given.pay();
    await given.work();
    const { PROVIDER_STRIPE } = given.variables;
    for (const [op, run, status] of OPERATIONS) {
      await t.step(op, async () => {
        given.variables.PROVIDER_STRIPE = "not-a-key";
        const response = await run(given, held.id, paid.id);
        assert.equal(response.status, status, response.text);
        const { error } = response.body;
        assert.equal(error?.code ?? response.body.failure_code, "provider_refused");
        if (op === "create") assert.equal(error.payment.status, "failed");
        assert.match(await lastReply(given), /stripe refuses the secret$/);
      });
    }
    given.variables.PROVIDER_STRIPE = PROVIDER_STRIPE!;
    await t.step("the key replays the refusal, and another key pays", async () => {
      const again = await given.pay({}, { idempotency_key: "refused" });
      assert.equal(again.body.error.payment.status, "failed");
      assert.equal((await given.pay({}, { idempotency_key: "other" })).body.status, "completed");
      assert.equal((await given.books()).charge.length, 3);
    });
    await t.step("the operator finds it once a day", async () => {
      const found = await breaches(given);
      assert.equal(found.length, 1, found.join());
      assert.match(
        found[0]!,
        /operations are refused since authorize of pay_\w+: stripe refuses the secr/,
      );
      await dismissAll(given);
    });
    await given.work();
    await resumePolls(given);
    await assertBalanced(given);
  },
);

liveCase("a secret that is refused at a later attempt proves nothing", async (given, t) => {
  await stopPolls(given);
  const FIRST = [
    { act: "cut", at: "after", charges: 1 },
    { act: "error", at: "before", charges: 0 },
    { act: "html", at: "before", charges: 0 },
  ] as const;
  for (const { act, at, charges } of FIRST) {
    await t.step(`after ${act} ${at} the work`, async () => {
      const before = (await given.books()).charge.length;
      await given.double.plant({ method: "POST", act, at });
      const { body: { id, status } } = await given.pay();
      assert.equal(status, "processing");
      assert.equal((await given.books()).charge.length, before + charges);
      const { PROVIDER_STRIPE } = given.variables;
      given.variables.PROVIDER_STRIPE = "not-a-key";
      await workAfter(given, 31);
      assert.equal((await shown(given, id)).status, "processing");
      given.variables.PROVIDER_STRIPE = PROVIDER_STRIPE!;
      await workAfter(given, 31);
      assert.equal((await shown(given, id)).status, "completed");
      assert.equal((await given.books()).charge.length, before + 1);
    });
  }
  await resumePolls(given);
  await assertBalanced(given);
});

liveCase(
  "open payments of a disabled account are captured, refunded and settled",
  async (given) => {
    const { body: held } = await given.pay({ capture: "manual" });
    const { body: paid } = await given.pay();
    const { body: open } = await given.pay({
      card: { token: "pm_card_authenticationRequired" },
      return_url: "https://shop.example/back",
    });
    await given.work();
    await given.service.sql`select pay.disable_provider_account(${given.account_id})`;
    const captured = await given.call("POST", `/payments/${held.id}/capture`, { body: {} });
    assert.equal(captured.body.status, "completed");
    const refund = await given.call("POST", `/payments/${paid.id}/refund`, { body: {} });
    assert.equal(refund.body.status, "completed");
    const page = await fetch(open.next_action.url, { redirect: "manual" });
    await page.body?.cancel();
    const [event] = await eventsOf(given, "payment_intent.succeeded");
    assert.deepEqual(await deliver(given, [event!]), [200]);
    await workAfter(given, 3700);
    assert.equal((await shown(given, open.id)).status, "completed");
    assert.equal((await given.pay()).status, 503);
    await assertBalanced(given);
  },
);

liveCase("a provider on the own machine is refused by a deployed service", async (given) => {
  const response = await given.pay();
  assert.equal(response.status, 402, response.text);
  assert.match(await lastReply(given), /base_url/);
  assert.deepEqual((await given.books()).payment_intent, []);
  const found = await breaches(given);
  assert.match(found.join(), /operations are refused since authorize of .*base_url/);
}, { base_url: "https://api.example.com/functions/v1" });

/** Dismisses all exceptions, as the operator does. */
async function dismissAll({ service: { sql } }: LiveCase): Promise<void> {
  await sql`select pay.dismiss_provider_event(account_id, reference, 'seen') from pay.list_reported_events()`;
}

/** The newest note for the operator about an operation. */
async function lastReply({ service: { sql } }: LiveCase): Promise<string> {
  const [row] = await sql`select last_reply from pay.provider_operations order by id desc limit 1`;
  return row!.last_reply;
}
