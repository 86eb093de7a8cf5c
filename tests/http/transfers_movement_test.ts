/** The ledger movements and the events of a transfer at every step of its life. */

import assert from "node:assert/strict";
import { startService } from "../support/service/service.ts";

const TRANSFERS = "/api-v1-payments/v1/transfers";
const SANDBOX = "/api-v1-sandbox";
const SEPA = { iban: { iban: "DE89 3704 0044 0532 0130 00" } };
const SWIFT = { iban: "GB82 WEST 1234 5698 7654 32" };
const RETURNED = { iban: "DE00 0000 0000 0000 0000 99" };
const WALLET = { wallet: "0x000000000000000000000000000000000000dEaD" };
const REVERTED = { wallet: { address: "0x0000000000000000000000000000000000000bad" } };

const OUT = "available>in_transit";
const DONE = "in_transit>external";
const BACK = "in_transit>available";
const RETURN = "external>available";

/** [name, create, steps of [path, body], final status, movements, events] */
const CASES: [string, Record<string, unknown>, [string, unknown][], string, string[], string[]][] =
  [
    ["a SEPA account", { destination: SEPA }, [], "completed", [OUT, DONE], [
      "created",
      "completed",
    ]],
    ["a SWIFT account", { destination: SWIFT }, [], "completed", [OUT, DONE], [
      "created",
      "completed",
    ]],
    ["a wallet", { destination: WALLET, currency: "USDC" }, [], "completed", [OUT, DONE], [
      "created",
      "completed",
    ]],
    ["a bank return", { destination: RETURNED }, [], "failed", [OUT, BACK], ["created", "failed"]],
    ["a revert", { destination: REVERTED, currency: "USDC" }, [], "failed", [OUT, BACK], [
      "created",
      "failed",
    ]],
    ["manual settlement", { settlement: "manual" }, [], "pending", [OUT], ["created"]],
    ["a cancel", { settlement: "manual" }, [["cancel", undefined]], "cancelled", [OUT, BACK], [
      "created",
      "cancelled",
    ]],
    [
      "advance completed",
      { settlement: "manual" },
      [["advance", { to: "completed" }]],
      "completed",
      [
        OUT,
        DONE,
      ],
      ["created", "completed"],
    ],
    ["advance failed", { settlement: "manual" }, [["v1 advance", { to: "failed" }]], "failed", [
      OUT,
      BACK,
    ], ["created", "failed"]],
    [
      "a return after the transfer had completed",
      {},
      [["advance", { to: "failed", return_code: "AC04" }]],
      "failed",
      [OUT, DONE, RETURN],
      ["created", "completed", "failed"],
    ],
    [
      "advance cancelled",
      { settlement: "manual" },
      [["v1 advance", { to: "cancelled" }]],
      "cancelled",
      [OUT, BACK],
      ["created", "cancelled"],
    ],
    [
      "advance to where it is",
      { settlement: "manual" },
      [["advance", { to: "pending" }]],
      "pending",
      [OUT],
      ["created"],
    ],
  ];

Deno.test("movements and events of a transfer", async (t) => {
  const service = await startService();
  const pathOf = (step: string, id: string) =>
    ({
      cancel: `${TRANSFERS}/${id}/cancel`,
      advance: `${SANDBOX}/transfers/${id}/advance`,
      "v1 advance": `${SANDBOX}/v1/transfers/${id}/advance`,
    })[step]!;
  try {
    await service.make({ amount_minor: 100_000, outcome: "success" });
    await service.make({
      amount_minor: 100_000,
      currency: "USDC",
      method_kind: "stablecoin",
      outcome: "success",
    });
    for (const [name, create, steps, status, ledger, events] of CASES) {
      await t.step(`${name}: ${ledger.join(", ")}`, async () => {
        const made = await service.call("POST", TRANSFERS, {
          body: { amount: 10, currency: "EUR", destination: SEPA, ...create },
        });
        assert.equal(made.status, 201, made.text);
        let last = made.body;
        for (const [step, body] of steps) {
          const response = await service.call("POST", pathOf(step, last.id), { body });
          assert.equal(response.status, 200, response.text);
          last = response.body;
        }
        assert.equal(last.status, status);
        assert.equal(last.sequence, events.length);
        assert.deepEqual((await service.call("GET", `${TRANSFERS}/${last.id}`)).body, last);
        assert.deepEqual(await movementsOf(last.id), ledger);
        const rows = await service.sql`
          select type, sequence, pay_internal.event_body(e) as body
          from pay.events e where subject_id = ${last.id}
          order by sequence`;
        assert.deepEqual(
          rows.map(({ type, sequence }) => `${sequence} ${type}`),
          events.map((event, i) => `${i + 1} transfer.${event}`),
        );
        assert.deepEqual(JSON.parse(rows.at(-1)!.body).data.object, last);
        assert.equal(JSON.parse(rows[0]!.body).data.object.status, "pending");
      });
    }
    await t.step("failures have a code, successes a hash and times", async () => {
      const send = (destination: unknown, currency: string) =>
        service.call("POST", TRANSFERS, { body: { amount: 10, currency, destination } });
      const { body: returned } = await send(RETURNED, "EUR");
      assert.deepEqual([returned.failure_code, returned.return_code], ["bank_return", "R01"]);
      assert.deepEqual(returned.destination, {
        type: "iban",
        iban: { country: "DE", last4: "0099" },
      });
      const { body: reverted } = await send(REVERTED, "USDC");
      assert.deepEqual([reverted.failure_code, reverted.return_code], ["onchain_reverted", null]);
      const { body: sent } = await send(WALLET, "USDC");
      assert.match(sent.destination.wallet.tx_hash, /^0x[0-9a-f]{64}$/);
      const { body: again } = await send(WALLET, "USDC");
      assert.equal(again.destination.wallet.tx_hash, sent.destination.wallet.tx_hash);
      assert.ok(sent.completed_at && !sent.cancelled_at && !sent.livemode);
    });
    await t.step("after a final status every move is 409 and changes nothing", async () => {
      const { body: made } = await service.call("POST", TRANSFERS, {
        body: { amount: 10, currency: "USDC", destination: WALLET },
      });
      for (const [step, body] of [["cancel", undefined], ["advance", { to: "failed" }]] as const) {
        const refused = await service.call("POST", pathOf(step, made.id), { body });
        assert.equal(refused.status, 409);
        const { code, current_status, allowed } = refused.body.error;
        assert.deepEqual({ code, current_status, allowed }, {
          code: "invalid_state",
          current_status: "completed",
          allowed: [],
        });
      }
      assert.deepEqual(await movementsOf(made.id), [OUT, DONE]);
    });
    await t.step(
      "payment routes refuse a transfer's id, transfer routes a payment's id",
      async () => {
        const { body: made } = await service.call("POST", TRANSFERS, {
          body: { amount: 10, currency: "EUR", destination: SEPA, settlement: "manual" },
        });
        const { body: paid } = await service.make({ outcome: "pending" });
        const body = { to: "completed" };
        for (
          const path of [
            `/api-v1-payments/v1/sandbox/${made.id}/advance`,
            `${SANDBOX}/payments/${made.id}/advance`,
            `${SANDBOX}/transfers/${paid.id}/advance`,
          ]
        ) {
          assert.equal((await service.call("POST", path, { body })).status, 404, path);
        }
      },
    );
  } finally {
    await service.close();
  }

  /** The movements of a transfer over HTTP: debited account > credited account. */
  async function movementsOf(transfer_id: string): Promise<string[]> {
    const url = `/api-v1-payments/v1/ledger_entries?transfer_id=${transfer_id}&limit=100`;
    const { body } = await service.call("GET", url);
    const moves = new Map<string, { debit?: string; credit?: string }>();
    for (const entry of body.data.reverse()) {
      assert.equal(entry.amount_minor, 10);
      assert.equal(entry.transfer_id, transfer_id);
      assert.equal(entry.payment_id, null);
      const move = moves.get(entry.transaction_id) ?? {};
      moves.set(entry.transaction_id, { ...move, [entry.direction]: entry.account });
    }
    return [...moves.values()].map(({ debit, credit }) => `${debit}>${credit}`);
  }
});
