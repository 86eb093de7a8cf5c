/**
 * Live payments by stablecoin in the service: the address at the create, the provider events of the
 * chain as the poll stores them, and races. stablecoin_test.ts has the chain itself.
 */

import assert from "node:assert/strict";
import { idGenerator } from "../../shared/core/ids.ts";
import { checkBooks } from "../../apps/operator/check_books.ts";
import type { ProviderEvent } from "../../shared/domain/providers/connector.ts";
import { XPUB } from "../support/chain/watched.ts";
import { openProviderStore } from "../support/database/provider_flow.ts";
import { startSecondService } from "../support/service/second_service.ts";
import { startService, type TestResponse, type TestService } from "../support/service/service.ts";

const USDC = "0x5FbDB2315678afecb367f032d93F642f64180aa3";
const BODY = {
  amount: undefined,
  amount_minor: 10_000_000,
  currency: "USDC",
  method_kind: "stablecoin",
};

/** A service with an account on a chain that nobody reads. */
interface Given {
  service: TestService;
  pay(body?: object): Promise<TestResponse>;
  shown(id: string): Promise<TestResponse["body"]>;
  /** Stores provider events of one account and lets the worker apply them. */
  apply(payment: TestResponse["body"], ...provider_events: Partial<ProviderEvent>[]): Promise<void>;
  store(payment: TestResponse["body"], ...provider_events: Partial<ProviderEvent>[]): Promise<void>;
}

Deno.test("a live payment by stablecoin", async (t) => {
  const service = await startService();
  const account_id = idGenerator(Date.now())("pac_");
  const settings = {
    network: "ethereum",
    chain_id: "31337",
    rpc_urls: "http://127.0.0.1:1,http://127.0.0.1:2",
    xpub: XPUB,
    "contract.USDC": USDC,
    "contract.USDT": "0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512",
    confirmations: "2",
  };
  const { store, close } = openProviderStore(service);
  const given: Given = {
    service,
    pay: (body = {}) => service.pay({ ...BODY, ...body }, { key: service.live.text }),
    shown: async (id) =>
      (await service.call("GET", `/api-v1-payments/v1/payments/${id}`, { key: service.live.text }))
        .body,
    async store({ id, next_action }, ...provider_events) {
      const common = {
        account_id,
        object_id: next_action.address,
        op: "authorize",
        subject_id: id,
        refund_id: null,
        provider_reference: next_action.address,
        amount_minor: 10_000_000,
        currency: "USDC",
        at: new Date().toISOString(),
        livemode: true,
      } as const;
      const made = provider_events.map((event) => {
        const [tx_hash = "", index = "", block_hash] = event.reference!.split(":");
        const transfer = {
          object_id: `${tx_hash}:${index}`,
          chain: { tx_hash, log_index: Number(index), ...(block_hash && { block_hash }) },
        };
        const is_transfer = event.op !== "abandon";
        return { ...common, ...(is_transfer && transfer), ...event } as ProviderEvent;
      });
      await store.storeProviderEvents(account_id, made);
    },
    async apply(payment, ...provider_events) {
      await given.store(payment, ...provider_events);
      await service.deps.provider_worker.notify();
    },
  };
  try {
    await t.step("has no provider before an account takes it", async () => {
      assert.equal((await given.pay()).body.error.code, "provider_not_configured");
    });
    await service.sql`select pay.add_provider_account(${account_id}, ${service.live.environment_id},
      'evm', ${["stablecoin"]}, ${JSON.stringify(settings)}, null, '{}')`;
    // Nobody responds at rpc_urls.
    await service.sql`update pay.provider_cursors set polled_at = now() + interval '1 year'`;
    await addressCases(t, given);
    await eventCases(t, given);
    await raceCases(t, given);
    await t.step("breaks no invariant but for the tested exceptions", async () => {
      const verdicts = await checkBooks(service.sql);
      const found = verdicts.filter(({ breaches }) => breaches > 0);
      assert.deepEqual(found.map(({ invariant }) => invariant), ["invariant_reported_events"]);
      const [late] = await service.sql<{ n: number }[]>`
        select count(*)::int as n from pay.provider_events where exception is not null`;
      assert.equal(found[0]!.breaches, late!.n);
    });
  } finally {
    await close();
    await service.close();
  }
});

async function addressCases(t: Deno.TestContext, given: Given): Promise<void> {
  await t.step("gets an address of its own, and 201", async () => {
    const [one, other] = [await given.pay(), await given.pay()];
    assert.equal(one.status, 201, one.text);
    const { status, next_action, amount_received, method } = one.body;
    assert.deepEqual({ status, amount_received, method }, {
      status: "pending",
      amount_received: 0,
      method: null,
    });
    const { uri, expires_at, address, ...rest } = next_action;
    assert.deepEqual(rest, {
      type: "send_stablecoin",
      network: "ethereum",
      asset: "USDC",
      contract: USDC,
      amount_minor: 10_000_000,
    });
    assert.equal(uri, `ethereum:${USDC}@31337/transfer?address=${address}&uint256=10000000`);
    assert.equal(Date.parse(expires_at) - Date.parse(one.body.created_at) < 3_601_000, true);
    assert.notEqual(other.body.next_action.address, address);
    assert.deepEqual((await given.shown(one.body.id)).next_action, next_action);
  });
  const refused: [param: string, body: object][] = [
    ["wallet", { wallet: "0x9858EfFD232B4033E47d90003D41EC34EcaEda94", method_kind: undefined }],
    ["currency", { currency: "EUR" }],
    ["capture", { capture: "manual" }],
    ["outcome", { outcome: "success" }],
  ];
  for (const [param, body] of refused) {
    await t.step(`is refused with a wrong ${param}`, async () => {
      const { status, body: response } = await given.pay(body);
      assert.equal(status, 400);
      assert.equal(response.error.param, param);
    });
  }
  await t.step("is cancelled without a provider, as long as nothing has come", async () => {
    const { body: payment } = await given.pay();
    const url = `/api-v1-payments/v1/payments/${payment.id}/cancel`;
    const options = { key: given.service.live.text };
    const { status, body } = await given.service.call("POST", url, options);
    assert.deepEqual([status, body.status, body.next_action], [200, "cancelled", null]);
    assert.equal((await given.service.call("POST", url, options)).status, 409);
  });
}

async function eventCases(t: Deno.TestContext, given: Given): Promise<void> {
  await t.step("is processing in a block, and completed when the block is final", async () => {
    const { body: payment } = await given.pay();
    await given.apply(payment, { reference: "0xa1:0:0xb:received", state: "received" });
    const seen = await given.shown(payment.id);
    assert.deepEqual([seen.status, seen.amount_received], ["processing", 10_000_000]);
    await given.apply(payment, { reference: "0xa1:0", state: "succeeded" });
    const paid = await given.shown(payment.id);
    assert.deepEqual([paid.status, paid.amount_captured], ["completed", 10_000_000]);
  });
  await t.step("goes back to pending when the chain undoes the block", async () => {
    const { body: payment } = await given.pay();
    const of = { amount_minor: 10_000_000 };
    await given.apply(payment, { reference: "0xa2:0:0xb:reorged", state: "reorged", ...of });
    assert.equal((await given.shown(payment.id)).sequence, payment.sequence, "it waits");
    await given.apply(payment, { reference: "0xa2:0:0xb:received", state: "received", ...of });
    await given.service.sql`update pay.provider_events set leased_until = null`;
    await given.service.deps.provider_worker.notify();
    const back = await given.shown(payment.id);
    assert.deepEqual([back.status, back.amount_received], ["pending", 0]);
    assert.deepEqual(back.next_action, payment.next_action);
  });
  await t.step("is underpaid at its end, and later money is for the operator", async () => {
    const { body: payment } = await given.pay();
    const of = { amount_minor: 4_000_000 };
    await given.apply(payment, { reference: "0xa3:0", state: "succeeded", ...of });
    await given.apply(payment, {
      reference: `${payment.next_action.address}:expired`,
      op: "abandon",
      state: "failed",
      failure_code: "expired",
    });
    const over = await given.shown(payment.id);
    assert.deepEqual([over.status, over.failure_code], ["failed", "underpaid"]);
    await given.apply(payment, { reference: "0xa4:0", state: "succeeded", ...of });
    const rows = await given.service.sql`
      select outcome, exception is not null as is_told, booked_minor::int from pay.provider_events
      where subject_id = ${payment.id} and state = 'succeeded' order by reference`;
    assert.deepEqual([...rows], [
      { outcome: "applied", is_told: false, booked_minor: 4_000_000 },
      { outcome: "applied", is_told: true, booked_minor: 4_000_000 },
    ]);
  });
  await t.step("keeps another token at its address for the account", async () => {
    const { body: payment } = await given.pay();
    await given.apply(payment, { reference: "0xa5:0", state: "succeeded", currency: "USDT" });
    const [row] = await given.service.sql`
      select outcome, booked_minor::int from pay.provider_events where reference = '0xa5:0'`;
    assert.deepEqual(row, { outcome: "unmatched", booked_minor: 10_000_000 });
    assert.equal((await given.shown(payment.id)).status, "pending");
  });
}

async function raceCases(t: Deno.TestContext, given: Given): Promise<void> {
  await t.step("completes once when two workers make its parts final at once", async () => {
    const second = startSecondService(given.service);
    try {
      for (let round = 0; round < 15; round++) {
        const { body: payment } = await given.pay();
        const parts = [0, 1, 2, 3].map((part) => ({
          reference: `0xc${round}:${part}`,
          amount_minor: 2_500_000,
        }));
        await given.apply(
          payment,
          ...parts.map(({ reference, ...rest }): Partial<ProviderEvent> => ({
            ...rest,
            reference: `${reference}:0xb:received`,
            state: "received",
          })),
        );
        await given.store(
          payment,
          ...parts.map((part) => ({ ...part, state: "succeeded" as const })),
        );
        await Promise.all([given.service.deps.provider_worker.notify(), second.work()]);
        const { status, amount_captured } = await given.shown(payment.id);
        assert.deepEqual([status, amount_captured], ["completed", 10_000_000]);
        const [unapplied] = await given.service.sql<{ sum: string }[]>`
          select coalesce(sum(case credit_account when 'unapplied' then amount_minor
            else -amount_minor end) filter (where 'unapplied' in (credit_account, debit_account)), 0)
            as sum
          from pay.ledger_movements where subject_id = ${payment.id}`;
        assert.equal(unapplied!.sum, "0");
      }
    } finally {
      await second.close();
    }
  });
}
