/**
 * POST /providers/{pac_…}/notifications: only signed provider events of the account's own payments
 * count.
 */

import assert from "node:assert/strict";
import { idGenerator } from "../../shared/core/ids.ts";
import { addAccount } from "../support/database/provider_flow.ts";
import {
  challenged,
  deliver,
  eventsOf,
  notify,
  providerEventsOf,
  type Sent,
  shown,
  visit,
} from "../support/live/live_actions.ts";
import {
  type LiveCase,
  liveCase,
  NOTIFICATION_SECRET,
  settle,
  stopPolls,
} from "../support/live/live_case.ts";
import type { StripeObject } from "../support/stripe/journal.ts";

/** Creates a payment whose payer authenticates, and returns it with the event that settles it. */
async function settledByEvent(given: LiveCase): Promise<[id: string, event: StripeObject]> {
  const { id, url } = await challenged(given);
  await visit(url);
  const events = await eventsOf(given, "payment_intent.succeeded");
  return [id, events.find(({ data }) => data.object.metadata.payment === id)!];
}

async function countProviderEvents({ service }: LiveCase): Promise<number> {
  const [row] = await service.sql`select count(*)::int as provider_events from pay.provider_events`;
  return row!.provider_events;
}

const REFUSALS: [name: string, status: number, sent: Sent, body?: string][] = [
  ["unsigned", 401, { secrets: [] }],
  ["for an unknown account", 401, { account_id: "pac_00000000000000000000000000" }],
  ["with garbage, signed", 400, {}, "\u0000garbage"],
  ["of 10 MB", 413, {}, "x".repeat(10_000_000)],
];
liveCase("a notification that is refused changes nothing", async (given, t) => {
  const [id, event] = await settledByEvent(given);
  await stopPolls(given);
  const before = await countProviderEvents(given);
  for (const [name, status, sent, body = JSON.stringify(event)] of REFUSALS) {
    await t.step(`${name}: ${status}`, async () => {
      const response = await notify(given, body, sent);
      assert.equal(response.status, status, response.text);
      assert.ok(!response.text.includes(NOTIFICATION_SECRET));
      await given.work();
      assert.equal(await countProviderEvents(given), before);
    });
  }
  await t.step("for an account without a secret that is set: 401", async () => {
    const { PROVIDER_STRIPE_NOTIFICATIONS } = given.variables;
    given.variables.PROVIDER_STRIPE_NOTIFICATIONS = "";
    for (const secrets of [[], [""], [NOTIFICATION_SECRET]]) {
      assert.equal((await notify(given, JSON.stringify(event), { secrets })).status, 401);
    }
    given.variables.PROVIDER_STRIPE_NOTIFICATIONS = PROVIDER_STRIPE_NOTIFICATIONS!;
  });
  assert.equal((await shown(given, id)).status, "requires_action");
  assert.equal(await countProviderEvents(given), before);

  await t.step("the same notification, signed: 200", async () => {
    assert.deepEqual(await deliver(given, [event]), [200]);
    assert.equal((await shown(given, id)).status, "completed");
  });
});

liveCase("events of other connected accounts are ignored and counted", async (given, t) => {
  await stopPolls(given);
  const [id, event] = await settledByEvent(given);
  const before = await countProviderEvents(given);
  for (const [at, account] of ["acct_other", undefined, "acct_ours"].entries()) {
    await t.step(`of ${account} for acct_ours: 200`, async () => {
      const settings = { base_url: given.double.base_url, connected_account: "acct_ours" };
      await given.service.sql`
        update pay.provider_accounts set settings = ${JSON.stringify(settings)}::text::jsonb`;
      const response = await notify(given, JSON.stringify({ ...event, account }));
      assert.deepEqual([response.status, response.body], [200, { received: true }]);
      const is_ours = account === "acct_ours";
      assert.equal(await countProviderEvents(given), is_ours ? before + 1 : before);
      const [row] = await given.service.sql`
        select ignored_notifications::int as ignored from pay.list_provider_accounts()`;
      assert.equal(row!.ignored, Math.min(at + 1, 2));
    });
  }
  await settle(given);
  assert.equal((await shown(given, id)).status, "completed");
}, { is_open: true });

/** Changes the object of an event. */
const changed = (event: StripeObject, fields: object): StripeObject => ({
  ...event,
  data: { object: { ...event.data.object, ...fields } },
});
liveCase("an event of a payment of somebody else is kept and shown", async (given, t) => {
  await stopPolls(given);
  const sandbox = await given.service.pay({ card: { token: "pm_card_late" } });
  const [id, event] = await settledByEvent(given);
  const STRANGERS: [name: string, payment: string][] = [
    ["of another environment", sandbox.body.id],
    ["that does not exist", idGenerator(Date.now())("pay_")],
  ];
  for (const [name, payment] of STRANGERS) {
    await t.step(name, async () => {
      const object = { id: `pi_${payment}`, metadata: { payment } };
      assert.deepEqual(await deliver(given, [changed(event, object)]), [200]);
      const provider_events = await providerEventsOf(given, payment);
      assert.deepEqual(provider_events.map(([, outcome]) => outcome), ["unmatched"]);
    });
  }
  await t.step("of another account of the same environment", async () => {
    given.variables.PROVIDER_SECOND = "whsec_second";
    const account_id = await addAccount(given.service.sql, given.service.live.environment_id, {
      ...{ method_kinds: ["sepa"], signing_name: "PROVIDER_SECOND" },
      settings: { base_url: given.double.base_url },
    });
    await stopPolls(given);
    const sent = { account_id, secrets: ["whsec_second"] };
    assert.equal((await notify(given, JSON.stringify(event), sent)).status, 200);
    await given.work();
    assert.equal((await shown(given, id)).status, "requires_action");
    const [, reported] = await providerEventsOf(given, id);
    assert.equal(reported![1], "unmatched");
    const [ledger] = await given.service.sql`
      select count(*)::int as movements from pay.ledger_movements where subject_id = ${account_id}`;
    assert.equal(ledger!.movements, 0);
  });
  await t.step("of another object that names our payment", async () => {
    assert.deepEqual(await deliver(given, [changed(event, { id: "pi_another" })]), [200]);
    assert.equal((await shown(given, id)).status, "requires_action");
  });
  await t.step("and the true provider event still counts", async () => {
    await deliver(given, [event]);
    assert.equal((await shown(given, id)).status, "completed");
  });
}, { is_open: true });

liveCase("refused notifications of one address are limited", async (given) => {
  const { at_ms, address } = { at_ms: Date.now(), address: "192.0.2.7" };
  await given.service.setClock(at_ms);
  const send = (secrets: string[], from: string) =>
    notify(given, "{}", { secrets, headers: { "X-Forwarded-For": from } });
  const statuses: number[] = [];
  for (let i = 0; i < 110; i++) statuses.push((await send([], address)).status);
  assert.deepEqual([...new Set(statuses)], [401, 429]);
  assert.ok(statuses.indexOf(429) >= 100);
  assert.equal((await send([NOTIFICATION_SECRET], "198.51.100.7")).status, 400);
}, { rate_limit: 1000 });
