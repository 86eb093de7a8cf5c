/**
 * Live payments by stablecoin from the create to the ledger. The first test has an account on a
 * chain that nobody reads, the other one a node of a chain and a real token. The rules are in
 * tests/domain/deposit_events_test.ts, the readings of the chain in
 * tests/connectors/evm_poll_test.ts.
 */

import assert from "node:assert/strict";
import { checkBooks } from "../../apps/operator/check_books.ts";
import type { ProviderEvent } from "../../shared/domain/providers/connector.ts";
import { DOUBLE_TOKEN } from "../support/chain/node_double.ts";
import { XPUB } from "../support/chain/watched.ts";
import { type ChainCase, chainCase } from "../support/chain/chain_case.ts";
import { addAccount } from "../support/database/provider_flow.ts";
import { startSecondService } from "../support/service/second_service.ts";
import { startService, type TestResponse } from "../support/service/service.ts";

const BODY = { amount: undefined, amount_minor: 1e7, currency: "USDC", method_kind: "stablecoin" };

Deno.test("a live payment by stablecoin", async (t) => {
  const service = await startService();
  const { sql, live: { text: key, environment_id }, deps } = service;
  const { provider_store, provider_worker } = deps;
  let account_id: string;
  const settings = {
    network: "ethereum",
    chain_id: "31337",
    rpc_urls: "http://127.0.0.1:1,http://127.0.0.1:2",
    xpub: XPUB,
    "contract.USDC": DOUBLE_TOKEN,
    confirmations: "2",
  };
  const second = startSecondService(service);
  const pay = () => service.pay(BODY, { key });
  const shown = async (id: string) =>
    (await service.call("GET", `/api-v1-payments/v1/payments/${id}`, { key })).body;
  /** Stores transfers of equal parts of a payment, as the poll does. */
  const storeParts = async (
    { id, next_action }: TestResponse["body"],
    count: number,
    state: "received" | "succeeded",
  ) => {
    const parts = Array.from({ length: count }, (_, part): ProviderEvent => ({
      account_id,
      reference: `0x${id}:${part}${state === "received" ? ":0xb:received" : ""}`,
      object_id: `0x${id}:${part}`,
      op: "authorize",
      state,
      subject_id: id,
      refund_id: null,
      provider_reference: next_action.address,
      amount_minor: BODY.amount_minor / count,
      currency: "USDC",
      at: new Date().toISOString(),
      livemode: true,
      chain: {
        tx_hash: `0x${id}`,
        log_index: part,
        ...(state === "received" && { block_hash: "0xb" }),
      },
    }));
    await provider_store.storeProviderEvents(account_id, parts);
  };
  try {
    account_id = await addAccount(sql, environment_id, { connector: "evm", settings });
    // Nobody responds at rpc_urls.
    await sql`update pay.provider_cursors set polled_at = now() + interval '1 year'`;
    await t.step("is cancelled without a provider, as long as nothing has come", async () => {
      const { body: payment } = await pay();
      const url = `/api-v1-payments/v1/payments/${payment.id}/cancel`;
      const options = { key };
      const { status, body } = await service.call("POST", url, options);
      assert.deepEqual([status, body.status, body.next_action], [200, "cancelled", null]);
      assert.equal((await service.call("POST", url, options)).status, 409);
    });
    await t.step("completes once when two workers make its parts final at once", async () => {
      for (let round = 0; round < 15; round++) {
        const { body: payment } = await pay();
        await storeParts(payment, 4, "received");
        await provider_worker.notify();
        assert.equal((await shown(payment.id)).status, "processing");
        await storeParts(payment, 4, "succeeded");
        await Promise.all([provider_worker.notify(), second.work()]);
        const { status, amount_captured } = await shown(payment.id);
        assert.deepEqual([status, amount_captured], ["completed", 10_000_000]);
        const [row] = await sql`
          select sum(unapplied)::int as sum from pay_internal.subject_accounts
          where subject_id = ${payment.id}`;
        assert.equal(row!.sum, 0);
      }
    });
    await t.step("is decided once for each event, however many are due together", async () => {
      const { body: payment } = await pay();
      await storeParts(payment, 8, "succeeded");
      service.forgetStatements();
      await provider_worker.notify();
      const statements = service.takeStatements();
      assert.equal((await shown(payment.id)).status, "completed");
      // The first one has the payment from its lease.
      const reads = statements.filter((text) => text.includes("read_provider_subject"));
      assert.equal(reads.length, 7);
    });
    await t.step("breaks no invariant", async () => {
      const verdicts = await checkBooks(sql);
      assert.deepEqual(verdicts.filter(({ breaches }) => breaches > 0), []);
    });
  } finally {
    await second.close();
    await service.close();
  }
});

/** Longer than the time of a payment. */
const HOUR_AND_MORE_S = 4_000;

/** Returns the unapplied money of a payment. */
async function unapplied({ service }: ChainCase, subject_id: string): Promise<number> {
  const [row] = await service.sql`
    select coalesce(sum(unapplied), 0)::int as amount from pay_internal.subject_accounts
    where subject_id = ${subject_id}`;
  return row!.amount;
}

async function eventsOf({ service }: ChainCase, { id }: { id: string }): Promise<string[]> {
  const rows = await service.sql<{ type: string }[]>`
    select type from pay.events where subject_id = ${id} order by sequence`;
  return rows.map(({ type }) => type.replace("payment.", ""));
}

/** Returns the reasons that the operator reads. */
async function reported({ service: { sql } }: ChainCase): Promise<string[]> {
  const rows = await sql`select amount_minor::int, outcome from pay.list_reported_events()`;
  return rows.map(({ amount_minor, outcome }) => `${outcome} ${amount_minor}`);
}

chainCase("money that fits and that does not is booked", async (given, _signer, t) => {
  const { create, send, shown, mined, final, pass, work } = given;
  await t.step("a payment completes when its transfer is final", async () => {
    const payment = await create();
    const hash = await send(payment, 1000);
    for (let blocks = 0; blocks < 2; blocks++) {
      await mined();
      assert.deepEqual(await shown(payment), ["processing 1000"]);
    }
    await final();
    assert.deepEqual(await shown(payment), ["completed 1000"]);
    const types = ["created", "pending", "processing", "completed"];
    assert.deepEqual(await eventsOf(given, payment), types);
    const [event] = await given.service.sql`
      select body #>> '{chain,tx_hash}' as tx_hash from pay.provider_events
      where subject_id = ${payment.id} and state = 'succeeded'`;
    assert.equal(event!.tx_hash, hash);
    assert.deepEqual(await reported(given), []);
  });
  await t.step("more than requested, and more after that: completed, and unapplied", async () => {
    const payment = await create();
    await send(payment, 1500);
    await final();
    assert.deepEqual(await shown(payment), ["completed 1500"]);
    assert.equal(await unapplied(given, payment.id), 500);
    await send(payment, 70);
    await final();
    assert.deepEqual(await shown(payment), ["completed 1500"]);
    assert.equal(await unapplied(given, payment.id), 570);
  });
  await t.step(
    "after the time: expired, underpaid, and final with money of the last minute",
    async () => {
      const payments = [await create(), await create(), await create()];
      const [, part, last] = payments;
      await send(part, 400);
      await final();
      await send(last, 1000);
      await mined();
      await pass(HOUR_AND_MORE_S);
      await work();
      await work();
      const failed = ["failed 0 expired", "failed 400 underpaid"];
      assert.deepEqual(await shown(...payments), [...failed, "processing 1000"]);
      await final();
      assert.deepEqual(await shown(...payments), [...failed, "completed 1000"]);
      const [none, ...late] = payments;
      for (const payment of late) await send(payment, 600);
      await send(none, 1000);
      await final();
      assert.deepEqual(await shown(...payments), [...failed, "completed 1000"]);
      const left = await Promise.all(payments.map(({ id }) => unapplied(given, id)));
      assert.deepEqual(left, [1000, 1000, 600]);
    },
  );
  assert.ok((await reported(given)).every((each) => !each.startsWith("unmatched")));
});
