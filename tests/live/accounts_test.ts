/** Accounts that cannot be used: a clear error, and nothing is sent. */

import assert from "node:assert/strict";
import type { TestResponse } from "../support/service/service.ts";
import { shown } from "../support/live/live_actions.ts";
import {
  breaches,
  type LiveCase,
  liveCase,
  stopPolls,
  workAfter,
} from "../support/live/live_case.ts";

/** The operations that are refused, and the response of each. */
const OPERATIONS: [
  op: string,
  run: (given: LiveCase, held: string, paid: string) => Promise<TestResponse>,
  status: number,
][] = [
  ["create", (given) => given.pay({}, { idempotency_key: "refused" }), 402],
  ["capture", (given, held) => given.call("POST", `/payments/${held}/capture`, { body: {} }), 402],
  ["cancel", (given, held) => given.call("POST", `/payments/${held}/cancel`), 402],
  ["refund", (given, _, paid) => given.call("POST", `/payments/${paid}/refund`, { body: {} }), 201],
];
/** The secret, and the note for the operator. */
const SECRETS: [name: string, secret: string | null, note: string][] = [
  ["a secret that is not set", null, "the variable PROVIDER_STRIPE is not set"],
  ["a secret that the provider refuses", "not-a-key", "stripe refuses the secret"],
];
for (const [name, secret, note] of SECRETS) {
  liveCase(`${name} at the first attempt is definite`, async (given, t) => {
    await stopPolls(given);
    const { body: held } = await given.pay({ capture: "manual" });
    const { body: paid } = await given.pay();
    await given.work();
    const { PROVIDER_STRIPE } = given.variables;
    const before = (await given.books()).event.length;
    given.variables.PROVIDER_STRIPE = secret ?? "";
    for (const [op, run, status] of OPERATIONS) {
      await t.step(op, async () => {
        const response = await run(given, held.id, paid.id);
        assert.equal(response.status, status, response.text);
        assert.doesNotMatch(response.text, /PROVIDER_STRIPE/);
        const { error } = response.body;
        assert.equal(error?.code ?? response.body.failure_code, "provider_refused");
        if (op === "create") assert.equal(error.payment.status, "failed");
        if (op === "refund") assert.equal(response.body.status, "failed");
        assert.ok((await lastReply(given)).endsWith(note), await lastReply(given));
      });
    }
    assert.equal((await shown(given, held.id)).status, "authorized");
    assert.equal((await shown(given, paid.id)).amount_refunding, 0);
    assert.equal((await given.books()).event.length, before);
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
      assert.match(found[0]!, /operations are refused since authorize of pay_\w+: /);
      assert.ok(found[0]!.includes(note), found[0]);
      await given.service.sql`select pay.dismiss_provider_event(account_id, reference, 'seen')
        from pay.list_reported_events()`;
    });
    await given.work();
  });
}

/** The first response, the charges that it made, and the secret at the next attempt. */
const LATER = [
  ["cut", "after", 1, "not-a-key"],
  ["error", "before", 0, "not-a-key"],
  ["html", "before", 0, "not-a-key"],
  ["error", "before", 0, ""],
] as const;
liveCase(
  "a secret that is refused or missing at a later attempt proves nothing",
  async (given, t) => {
    await stopPolls(given);
    const { PROVIDER_STRIPE } = given.variables;
    for (const [act, at, charges, secret] of LATER) {
      await t.step(`"${secret}" after ${act} ${at} the work`, async () => {
        const before = (await given.books()).charge.length;
        await given.double.plant({ method: "POST", act, at });
        const { body: { id, status } } = await given.pay();
        assert.equal(status, "processing");
        assert.equal((await given.books()).charge.length, before + charges);
        given.variables.PROVIDER_STRIPE = secret;
        await workAfter(given, 31);
        assert.equal((await shown(given, id)).status, "processing");
        given.variables.PROVIDER_STRIPE = PROVIDER_STRIPE!;
        await workAfter(given, 31);
        assert.equal((await shown(given, id)).status, "completed");
        assert.equal((await given.books()).charge.length, before + 1);
      });
    }
  },
);

liveCase("a provider on the own machine is refused by a deployed service", async (given) => {
  const response = await given.pay();
  assert.equal(response.status, 402, response.text);
  assert.match(await lastReply(given), /base_url/);
  assert.deepEqual((await given.books()).payment_intent, []);
}, { base_url: "https://api.example.com/functions/v1", is_open: true });

/** The newest note for the operator about an operation. */
async function lastReply({ service: { sql } }: LiveCase): Promise<string> {
  const [row] = await sql`select last_reply from pay.provider_operations order by id desc limit 1`;
  return row!.last_reply;
}
