/**
 * Addresses of payments by stablecoin: pay.commit() allocates their indexes, called as pay_api, and
 * the worker reads the watched ones in pages.
 */

import assert from "node:assert/strict";
import { commit } from "../support/database/commit_list.ts";
import {
  addAccount,
  providerCase,
  recordResult,
  reservation,
  reserve,
  type Reserved,
  succeeded,
} from "../support/database/provider_flow.ts";

const XPUB = "xpub-of-two-networks";
const STABLECOIN = { method_kind: "stablecoin", request: { token: null } } as const;

providerCase("addresses of payments by stablecoin", async (t, given) => {
  const { service, sql, live, functions, store, chain_store } = given;
  const evm = (settings: Record<string, string>) =>
    addAccount(sql, live.environment_id, {
      connector: "evm",
      method_kinds: ["stablecoin"],
      settings,
    });
  const open = () => reserve(functions, live, STABLECOIN);
  /** Records the address of a reservation, as the reply of the connector does. */
  const tell = ({ environment_id, operation }: Reserved, address: string) =>
    recordResult(store, {
      environment_id,
      id: operation.id,
      state: "settled",
      provider_reference: address,
    });
  const placeOf = ({ operation }: Reserved) =>
    operation.reserved as { index: number; expires_at: string };
  const watched = (account_id: string, after: number | null = null, limit = 100) =>
    chain_store.watchedDeposits(account_id, after, limit);
  const account_id = await evm({ xpub: XPUB, expires_after_seconds: "60" });
  const first = await open();
  await t.step("a reservation gets the first index, and its account's expiry", async () => {
    const { reserved, created_at } = first.operation;
    const expires_at_ms = Date.parse(created_at) + 60_000;
    assert.deepEqual(reserved, { index: 0, expires_at: new Date(expires_at_ms).toISOString() });
    assert.deepEqual(await watched(account_id), []);
  });
  await t.step("after a crash the worker gets the same index and expiry", async () => {
    await service.setClock(Date.now() + 20_000);
    const { work } = await store.leaseWork(10, 10, 1000, Date.now() + 20_000);
    const again = work.find(({ operation }) => operation?.id === first.operation.id);
    assert.deepEqual(again!.operation!.reserved, first.operation.reserved);
  });
  await t.step("reservations at once, alone and in lists, never share an index", async () => {
    const lists = await Promise.all(Array.from({ length: 4 }, async () => {
      const requested = [
        await reservation(live.text, STABLECOIN),
        await reservation(live.text, STABLECOIN),
      ];
      return await commit(functions, requested);
    }));
    const indexes = lists.flat().map(({ detail }) => JSON.parse(detail!).reserved.index);
    assert.deepEqual(indexes.sort((a, b) => a - b), [1, 2, 3, 4, 5, 6, 7, 8]);
  });
  await t.step("an index is not used again after its row is purged", async () => {
    await sql`delete from pay.deposit_addresses where xpub_index > 0`;
    assert.equal(placeOf(await open()).index, 9);
  });
  await t.step("another account with the key goes on where the first has ended", async () => {
    await sql`select pay.disable_provider_account(p_id => ${account_id})`;
    const other = await evm({ xpub: XPUB });
    const opened = await open();
    assert.deepEqual([opened.operation.account.id, placeOf(opened).index], [other, 10]);
  });
  await t.step("a known address is watched, also of a disabled account", async () => {
    await tell(first, "0xA");
    assert.deepEqual(await watched(account_id), [{
      index: 0,
      payment_id: first.payment.id,
      address: "0xA",
      currency: first.payment.currency,
      expires_at: placeOf(first).expires_at,
      is_open: true,
      has_open_events: false,
      unfinal: [],
    }]);
    assert.deepEqual(await watched(account_id, 0), []);
  });
  await t.step("addresses that are not recorded make no page shorter", async () => {
    await open();
    const [second, third] = [await open(), await open()];
    await tell(second, "0xB");
    await tell(third, "0xC");
    const page = await watched(second.operation.account.id, null, 2);
    assert.deepEqual(page.map(({ address }) => address), ["0xB", "0xC"]);
  });
  await t.step("a transfer is not final until its last provider event is stored", async () => {
    const event = (reference: string, state: "received" | "reorged" | "succeeded") => {
      const [tx_hash = "", index = "", block_hash] = reference.split(":");
      const chain = { tx_hash, log_index: Number(index), ...(block_hash && { block_hash }) };
      const about = { object_id: `${tx_hash}:${index}`, chain, provider_reference: "0xA" };
      return succeeded(first, { reference, state, subject_id: null, ...about });
    };
    const stateOf = async () => {
      const [deposit] = await watched(account_id);
      return [deposit!.has_open_events, ...deposit!.unfinal.map(({ tx_hash }) => tx_hash)];
    };
    await store.storeProviderEvents(account_id, [
      event("0x1:0:0xb:received", "received"),
      event("0x2:7:0xb:received", "received"),
    ]);
    assert.deepEqual(await stateOf(), [true, "0x1", "0x2"]);
    const [deposit] = await watched(account_id);
    assert.deepEqual(deposit!.unfinal[1], {
      tx_hash: "0x2",
      log_index: 7,
      block_hash: "0xb",
      currency: first.payment.currency,
      amount_minor: first.payment.amount_minor,
    });
    await store.storeProviderEvents(account_id, [event("0x1:0", "succeeded")]);
    await store.storeProviderEvents(account_id, [event("0x2:7:0xb:reorged", "reorged")]);
    assert.deepEqual(await stateOf(), [true]);
  });
  await t.step("a failed poll is noted with its first time, until a page is read", async () => {
    const stall = async () => {
      const [row] = await sql`select stalled_since, last_error from pay.provider_cursors
        where account_id = ${account_id}`;
      return row!;
    };
    await store.stallReading(account_id, "one is behind");
    const { stalled_since } = await stall();
    await store.stallReading(account_id, "they disagree");
    assert.deepEqual({ ...await stall() }, { stalled_since, last_error: "they disagree" });
    await store.saveCursor(account_id, {}, false);
    assert.deepEqual({ ...await stall() }, { stalled_since: null, last_error: null });
  });
  await t.step("the watch ends after its last day, unless the payment still waits", async () => {
    await sql`update pay.deposit_addresses set watch_until = now() - interval '1 second'
      where operation_id = ${first.operation.id}`;
    const ends = async () => {
      await sql`select pay.purge()`;
      return (await watched(account_id)).length === 0;
    };
    assert.equal(await ends(), false);
    await sql`update pay.payments set status = 'cancelled' where id = ${first.payment.id}`;
    assert.equal(await ends(), true);
  });
});
