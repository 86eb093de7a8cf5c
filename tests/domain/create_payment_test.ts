/**
 * The decision of a create: rows, events, movements and answer for every authorization of a
 * provider.
 */

import assert from "node:assert/strict";
import { decideCreate } from "../../shared/domain/payments/create_payment.ts";
import type { Authorization, Provider } from "../../shared/domain/providers/provider.ts";
import { CreatePaymentBody } from "../../shared/schema/payment.ts";
import { BASE_URL, NOW, requestContext, summaryOf } from "../support/domain/decided_change.ts";

const CAPTURE = "capture processor>available 1000";

/** The authorization of a provider, and the result. */
const ANSWERS: [Authorization, http: number, status: string, events: string, ledger: string[]][] = [
  [{ result: "completed" }, 201, "completed", "created completed", [CAPTURE]],
  [{ result: "pending" }, 201, "pending", "created", []],
  [{ result: "requires_action" }, 201, "requires_action", "created requires_action", []],
  [{ result: "declined", code: "aml_blocked" }, 402, "declined", "created declined", []],
  [
    { result: "failed", code: "bank_return", return_code: "R01" },
    201,
    "failed",
    "created failed",
    [],
  ],
  [{ result: "failed", code: "onchain_reverted" }, 201, "failed", "created failed", []],
  [{ result: "refunded" }, 201, "refunded", "created completed refund.completed refunded", [
    CAPTURE,
    "refund available>processor 1000",
  ]],
  [{ result: "chargeback" }, 201, "chargeback", "created completed chargeback", [
    CAPTURE,
    "chargeback available>chargebacks 1000",
  ]],
];

function decide(authorization: Authorization, body: Record<string, unknown> = {}, is_error = true) {
  const provider: Provider = {
    authorize: () => Promise.resolve(authorization),
    cancel: () => assert.fail("not asked to cancel"),
    refund: () => assert.fail("not asked to refund"),
    transfer: () => assert.fail("not asked to transfer"),
  };
  return decideCreate(
    CreatePaymentBody.parse({ amount: 1000, currency: "EUR", ...body }),
    { ...requestContext(), provider, base_url: BASE_URL, decline_is_error: is_error },
  );
}

for (const [authorization, http, status, events, ledger] of ANSWERS) {
  Deno.test(`decideCreate() ${JSON.stringify(authorization)} → ${http} ${status}`, async () => {
    const change = await decide(authorization, { reference: "order 7" });
    const summary = summaryOf(change);
    const names = events.split(" ").map((name) => name.includes(".") ? name : `payment.${name}`);
    assert.deepEqual(summary.events, names.map((name, i) => `${i + 1} ${name}`));
    assert.deepEqual(summary.ledger, ledger);
    assert.deepEqual(summary.refunds, status === "refunded" ? [1000] : []);
    assert.equal(change.expects, null);
    assert.equal(change.answer.status, http);

    const row = change.payment!;
    const shown = JSON.parse(row.body);
    assert.equal(shown.status, status);
    for (const [column, value] of Object.entries(row)) {
      if (column !== "body") assert.deepEqual(shown[column], value, column);
    }
    assert.deepEqual([row.sequence, row.created_at], [names.length, NOW]);
    assert.ok(change.events.at(-1)!.body.includes(`"data":{"object":${row.body}}`));
    const answered = JSON.parse(change.answer.body);
    assert.deepEqual(http === 402 ? answered.error.payment : answered, shown);
  });
}

Deno.test("decideCreate() answers a decline with 201 if the caller wants no error", async () => {
  const authorization = { result: "declined", code: "payment_declined" } as const;
  const change = await decide(authorization, {}, false);
  assert.deepEqual([change.answer.status, change.answer.body], [201, change.payment!.body]);
});

Deno.test("decideCreate() adds a transaction hash only to a wallet", async () => {
  const tx_hash = "0x" + "ab".repeat(32);
  const wallet = "0x000000000000000000000000000000000000dEaD";
  const by_wallet = await decide({ result: "completed", tx_hash }, { wallet });
  assert.equal(JSON.parse(by_wallet.payment!.body).method.wallet.tx_hash, tx_hash);
  const without = await decide({ result: "completed", tx_hash });
  assert.equal(JSON.parse(without.payment!.body).method, null);
});

Deno.test("decideCreate() gives every row of a change a unique id", async () => {
  const change = await decide({ result: "refunded" });
  const ids = [
    change.payment!.id,
    ...change.events.map(({ id }) => id),
    ...change.refunds.map(({ id }) => id),
  ].map((id) => id.slice(id.indexOf("_") + 1));
  // The database derives the ids of a movement's entries from the two ordinals after the
  // transaction's, so no other row may have them.
  for (const { transaction_id } of change.ledger) {
    ids.push(...[0, 1, 2].map((n) => ordinal(transaction_id.slice(4), n)));
  }
  assert.equal(new Set(ids).size, 1 + 4 + 1 + 6);
});

Deno.test("decideCreate() refuses invalid input that a provider would complete", async () => {
  const refused: Record<string, unknown>[] = [
    { card: { number: "4111111111111111", exp_month: 1, exp_year: 2030, cvc: "123" } },
    { method_kind: "sepa", currency: "USD" },
    { settlement: "manual" },
    { customer: { email: "a@b.co" }, payer: { email: "c@d.co" } },
  ];
  for (const body of refused) {
    await assert.rejects(
      async () => await decide({ result: "completed" }, body),
      { code: "invalid_parameter" },
    );
  }
});

/** The id with a later ordinal. Its last character is a base-32 digit. */
function ordinal(id: string, more: number): string {
  const characters = "0123456789abcdefghjkmnpqrstvwxyz";
  return id.slice(0, -1) + characters[characters.indexOf(id.at(-1)!) + more];
}
