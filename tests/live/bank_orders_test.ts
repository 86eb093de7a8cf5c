/**
 * Live orders to a bank: transfers, refunds and collections leave in files, each in one of them,
 * and the files of the bank bring their results. Nothing shows whole bank details.
 */

import assert from "node:assert/strict";
import { dueDate } from "../../shared/domain/payments/collection.ts";
import { written } from "../support/bank/bank.ts";
import { bankCase, type LiveBank, PAYEE, PAYER } from "../support/bank/live_account.ts";
import { until } from "../support/common/until.ts";
import { writeReport } from "../support/connectors/bank_file.ts";

bankCase("live orders to a bank", sendOrders);

async function sendOrders(
  { service, bank, call, post, show, transfer, collect, pay, booked, bridge }: LiveBank,
  t: Deno.TestContext,
): Promise<void> {
  const { sql } = service;
  // The money of the transfers.
  await pay(10_000);

  await t.step("a transfer waits, leaves in one file, and completes with its entry", async () => {
    const { id, status } = await transfer();
    assert.equal(status, "pending");
    const { lines } = await bank.run("list");
    const order = { id, kind: "transfer", state: "waiting", payee_check: null };
    assert.deepEqual(lines, [{ ...order, amount_minor: 100, currency: "EUR" }]);
    const [file, ...others] = await bank.takeOrders();
    assert.deepEqual([file!.kind, file!.orders, others], ["sepa_transfers", [written(id)], []]);
    for (const part of [PAYEE.iban, "Zoe Mueller", ">1.00<"]) {
      assert.ok(file!.text.includes(part), `${part} in ${file!.text}`);
    }
    assert.deepEqual(await bank.takeOrders(), []);
    assert.deepEqual(await booked(id), ["completed"]);
  });

  await t.step("a file that could not be written is that of the next export", async () => {
    const { id } = await transfer();
    await assert.rejects(bank.run("export", "--out", "/dev/null/out"));
    const [{ name }] = (await bridge("GET", "files")).body.data;
    const [file, ...others] = await bank.takeOrders();
    assert.deepEqual([file!.name, file!.orders, others], [name, [written(id)], []]);
    assert.deepEqual(await booked(id), ["completed"]);
  });

  await t.step(
    "an order that waits can be cancelled or rejected, one that has left cannot",
    async () => {
      const [a, b, c] = [await transfer(), await transfer(), await transfer()];
      assert.equal((await post(`transfers/${a.id}/cancel`, {})).status, "cancelled");
      assert.equal((await bank.run("reject", b.id)).code, 0);
      await service.deps.provider_worker.notify();
      assert.equal((await show(b.id)).status, "failed");
      const [file] = await bank.takeOrders();
      assert.deepEqual(file!.orders, [written(c.id)]);
      const late = await post(`transfers/${c.id}/cancel`, {});
      assert.deepEqual([late.http, late.error.code], [402, "provider_refused"]);
      await assert.rejects(bank.run("reject", c.id), /deno task bank recall tr_/);
      assert.match(await bank.recall(c.id), /camt\.055\.001\.05/);
      await service.deps.provider_worker.notify();
      const { status, return_code } = await show(c.id);
      assert.deepEqual([status, return_code], ["failed", "CUST"]);
    },
  );

  await t.step("a status report rejects orders, and tells of payees", async () => {
    const a = await transfer();
    const checked = await Promise.all(
      ["Match", "Close match", "No match", "No check"].map((name) =>
        transfer({ holder_name: `${name} Payee` })
      ),
    );
    const [file] = await bank.takeOrders();
    const { lines } = await bank.run("list");
    const open = new Map((lines as { id: string }[]).map((line) => [line.id, line]));
    const [good, ...doubtful] = checked.map(({ id }) => id);
    assert.ok(!("next" in open.get(good!)!));
    for (const [i, code] of ["RVMC", "RVNM", "RVNA"].entries()) {
      const { payee_check, next } = open.get(doubtful[i]!)! as Record<string, string>;
      assert.deepEqual([payee_check, next], [code, "approve"]);
    }
    const [approved, ...rejected] = doubtful;
    await assert.rejects(bank.run("approve", good!), /does not wait/);
    const told = { id: approved, result: "approved", file: file!.name, order: written(approved!) };
    assert.deepEqual((await bank.run("approve", approved!)).lines, [told]);
    await assert.rejects(bank.run("approve", approved!), /is approved already/);
    const waits = async () => {
      const listed = (await bank.run("list")).lines as { id: string }[];
      return "next" in listed.find(({ id }) => id === approved)!;
    };
    const check = async () => (await show(approved!)).payee_check;
    await service.deps.provider_worker.notify();
    assert.deepEqual([await waits(), await check()], [false, "close_match"]);
    // Another result needs another approval.
    const file_id = /bf-\w+/.exec(file!.text)![0];
    await bank.importGood(writeReport([file_id], [["none"], [written(approved!), "RVNA"]]));
    await service.deps.provider_worker.notify();
    assert.deepEqual([await waits(), await check()], [true, "unavailable"]);
    await bank.run("approve", approved!);
    await bank.release(approved!);
    assert.deepEqual(await booked(good!, approved!), ["completed", "completed"]);
    const { data } = await call("GET", `events?limit=100&transfer_id=${approved}`);
    assert.deepEqual(data.map(({ type }: { type: string }) => type.slice(9)).reverse(), [
      ...["created", "updated", "updated", "completed"],
    ]);

    await bank.reject([a.id, rejected[0]!], "AC01");
    for (const id of [a.id, rejected[0]!]) {
      const { status, failure_code, return_code } = await show(id);
      assert.deepEqual([status, failure_code, return_code], ["failed", "provider_refused", "AC01"]);
    }
    await bank.reject([rejected[1]!], "FF01", true);
    assert.equal((await show(rejected[1]!)).return_code, "FF01");
  });

  await t.step("collections complete by their batch", async () => {
    const [a, b] = [
      await collect({ mandate_id: "batch 1" }),
      await collect({ mandate_id: "batch 2" }),
    ];
    assert.deepEqual([a.status, b.status], ["processing", "processing"]);
    assert.equal(a.method.due_on, dueDate(Date.parse(a.created_at), 20));
    const [file] = await bank.takeOrders();
    assert.equal(file!.kind, "collections");
    for (const part of [PAYER.iban, "batch 1", "DE98ZZZ09999999999", a.method.due_on]) {
      assert.ok(file!.text.includes(part), part);
    }
    await bank.book([a.id, b.id], "batch");
    assert.equal((await bank.notify()).entries, 1);
    assert.equal((await show(a.id)).status, "completed");
    assert.equal((await show(b.id)).status, "completed");
  });

  await t.step("a bridge exports orders, and gets each file with the same bytes", async () => {
    const { id } = await transfer();
    assert.deepEqual((await bridge("POST", "files")).body, { waiting: [] });
    const { body: { data } } = await bridge("GET", "files");
    const { name, sha256 } = data[0];
    const texts = await Promise.all(
      [1, 2].map(async () => (await bridge("GET", `files/${name}`)).text),
    );
    assert.equal(texts[1], texts[0]);
    const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(texts[0]));
    assert.equal(new Uint8Array(hash).toHex(), sha256);
    assert.equal((await bridge("GET", "files/none.xml")).status, 404);
    assert.deepEqual(await bank.takeOrders(), [], "the bridge has got it");
    assert.deepEqual((await bank.take(texts[0]!)).orders, [written(id)]);
    assert.deepEqual(await booked(id), ["completed"]);
  });

  await t.step("two recalls of an order at once are one file", async () => {
    const { id } = await transfer();
    await bank.takeOrders();
    let recalls: Promise<string>[] = [];
    // Both look for the file before one of them stores it.
    await sql.begin(async (other) => {
      await other`select pg_advisory_xact_lock(
        hashtextextended(${`bank orders ${bank.account_id}`}, 0))`;
      recalls = [bank.recallText(id), bank.recallText(id)];
      await until(
        "both recalls wait",
        async () =>
          (await other`select from pg_locks where locktype = 'advisory' and not granted`).length ===
            2,
      );
    });
    const texts = await Promise.all(recalls);
    assert.equal(new Set(texts).size, 1);
    const named = await sql`select from pay.bank_exports where name like ${`%${written(id)}%`}`;
    assert.equal(named.length, 1);
    await bank.take(texts[0]!);
  });

  await t.step("of two exports at once, one has the order", async () => {
    const { id } = await transfer();
    const store = service.deps.bank_store;
    const ordersToExport = store.ordersToExport.bind(store);
    // Both read before one of them stores.
    let readers = 0;
    const both = Promise.withResolvers<void>();
    store.ordersToExport = async (...given) => {
      const orders = await ordersToExport(...given);
      if (++readers === 2) both.resolve();
      await both.promise;
      return orders;
    };
    const responses = await Promise.all([bridge("POST", "files"), bridge("POST", "files")]);
    store.ordersToExport = ordersToExport;
    assert.deepEqual(responses.map(({ status }) => status).sort(), [200, 503]);
    const files = await bank.takeOrders();
    assert.deepEqual(files.map(({ orders }) => orders), [[written(id)]]);
    assert.deepEqual(await booked(id), ["completed"]);
  });

  await t.step("the statement of the day has nothing new", async () => {
    const { booked, exceptions } = await bank.importGood(await bank.write("camt.053"));
    assert.deepEqual([booked, exceptions], [0, 0]);
  });
}
