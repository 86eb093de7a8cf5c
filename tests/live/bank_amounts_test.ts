/**
 * Entries of a bank whose amount is not that of their order. The charge for a return is a fee, up to
 * the setting of the account. Any other difference is booked for the account with an exception, and
 * changes nothing until the operator says that it is a fee.
 */

import assert from "node:assert/strict";
import { Vault } from "../../shared/core/vault.ts";
import {
  addBankAccount,
  callBridge,
  changeBankAccount,
  KEYS,
  runProviders,
  written,
} from "../support/bank/bank.ts";
import { ACCOUNT, writeDetail, writeEntry, writeFile } from "../support/connectors/bank_file.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { startService } from "../support/service/service.ts";

type Kind = "collection" | "transfer" | "refund";

/** An order of 7.00 EUR, and an entry about it: the amount, with "<" if it takes the order back. */
const CASES: [
  name: string,
  kind: Kind,
  entry: string,
  /** The status and the fee, at once or after `match --fee`. */
  end: string,
  fee?: string,
][] = [
  ["a collection that is returned with a charge", "collection", "<10.50", "failed 350"],
  ["with the most that is plausible", "collection", "<22.00", "failed 1500"],
  ["with more", "collection", "<22.01", "failed 1501", "15.01"],
  ["with less than it was", "collection", "<6.99", "completed 0", "0.01"],
  ["a collection that is booked without a charge", "collection", "6.70", "completed 30", "0.30"],
  ["a collection that is booked with more", "collection", "7.01", "processing 0", "0.01"],
  ["a transfer that is returned without a charge", "transfer", "<0.50", "failed 650"],
  ["a transfer that is returned with more", "transfer", "<7.01", "completed 0", "0.01"],
  ["a transfer that is booked with a charge", "transfer", "7.01", "completed 1", "0.01"],
  ["a refund that is returned without a charge", "refund", "<6.50", "failed 50"],
  ["a refund that is booked with a charge", "refund", "7.20", "completed 20", "0.20"],
];

Deno.test("entries with another amount than their order", async (t) => {
  const service = await startService({ vault: Vault.read(KEYS) });
  const { sql, live: { text: key } } = service;
  const account = await addBankAccount(service, {
    methods: "sepa",
    iban: ACCOUNT,
    currency: "EUR",
    creditor_id: "DE98ZZZ09999999999",
  });
  const bridge = (path: string, body?: string) => callBridge(service, account, "POST", path, body);
  const call = async (path: string, body?: unknown) => {
    const { status, body: made } = await service.call(
      body ? "POST" : "GET",
      `/api-v1-payments/v1/${path}`,
      { key, ...body !== undefined && { body } },
    );
    assert.ok(status < 300, JSON.stringify(made));
    return made;
  };
  const pathOf = (id: string) =>
    `${id.startsWith("tr_") ? "transfers" : id.startsWith("re_") ? "refunds" : "payments"}/${id}`;
  let orders = 0;
  const create = async (kind: Kind): Promise<string> => {
    const iban = { iban: "NL91ABNA0417164300", holder_name: "Jan Payer" };
    const mandate = { id: `M-${++orders}`, signed_at: "2026-01-31", sequence: "recurring" };
    const body = { amount: 700, currency: "EUR" };
    const { id } = kind === "transfer"
      ? await call("transfers", { ...body, destination: { iban } })
      : await call("payments", { ...body, method_kind: "sepa", iban, mandate });
    assert.deepEqual((await bridge("files")).body, { waiting: [] });
    if (kind !== "refund") return id;
    await book(id, "7.00", true);
    const refund = await call(`payments/${id}/refund`, { amount: 700 });
    assert.deepEqual((await bridge("files")).body, { waiting: [] });
    return refund.id;
  };
  let entries = 0;
  const book = async (id: string, amount: string, is_credit: boolean, is_back = false) => {
    const detail = writeDetail({
      Refs: `<EndToEndId>${written(id)}</EndToEndId>`,
      Amt: `${amount} EUR`,
      RtrInf: is_back ? "<Rsn><Cd>MD06</Cd></Rsn>" : null,
    });
    const entry = writeEntry({
      Amt: `${amount} EUR`,
      CdtDbtInd: is_credit ? "CRDT" : "DBIT",
      AcctSvcrRef: `AMOUNT2026${++entries}`,
      NtryDtls: detail,
    });
    const file = writeFile([{ entries: entry }], { kind: "054" });
    const { status, body } = await bridge("statements", file);
    assert.deepEqual([status, body.error, body.booked], [200, null, 1]);
    await service.deps.provider_worker.notify();
    return body.exceptions;
  };
  /** Returns the status of an order, and the fees of its last entry. */
  const endOf = async (id: string, subject_id: string) => {
    const [fees] = await sql`select coalesce(sum(amount_minor), 0)::int as minor
      from pay.ledger_movements where kind = 'fee' and subject_id = ${subject_id}`;
    return `${(await call(pathOf(id))).status} ${fees!.minor}`;
  };
  try {
    // The money of transfers and fees.
    for (let i = 0; i < 6; i++) await book(await create("collection"), "7.00", true);
    for (const [name, kind, entry, end, fee] of CASES) {
      await t.step(`${name}: ${kind} ${entry}`, async () => {
        const is_back = entry.startsWith("<");
        const amount = entry.replace("<", "");
        const id = await create(kind);
        const subject_id = (await call(pathOf(id))).payment_id ?? id;
        const is_credit = kind === "collection";
        if (is_back) await book(id, "7.00", is_credit);
        const before = await endOf(id, subject_id);
        const exceptions = await book(id, amount, is_credit !== is_back, is_back);
        assert.equal(exceptions, fee === undefined ? 0 : 1);
        if (fee !== undefined) {
          assert.equal(await endOf(id, subject_id), before);
          const reference = `${await lastEntry()}:1`;
          const match = (fee: string) =>
            runProviders(service, ["match", reference, id, "--fee", fee, "--json"]);
          await assert.rejects(match("0.07"), /left unchanged: the amount is /);
          if (end === before) {
            await assert.rejects(match(fee), /left unchanged: the amount is /);
            await runProviders(service, ["dismiss", reference, "--reason", "a test"]);
          } else {
            await match(fee);
          }
        }
        assert.equal(await endOf(id, subject_id), end);
        const [sums] = await sql<[{ entries: string; booked: string }]>`select
          (select sum(amount_minor) from pay.bank_entries) as entries,
          (select sum(booked_minor) from pay.provider_events) as booked`;
        assert.equal(sums.booked, sums.entries);
        await assertSilent(sql);
      });
    }
    await t.step("without a plausible charge every other amount is an exception", async () => {
      await changeBankAccount(service, account.id, { return_charge_minor: "0" });
      const id = await create("collection");
      await book(id, "7.00", true);
      assert.equal(await book(id, "7.01", false, true), 1);
      assert.equal(await endOf(id, id), "completed 0");
    });
    await t.step("a fee is for an entry about an order", async () => {
      const { id } = await call("payments", { amount: 700, currency: "EUR", method_kind: "sepa" });
      const entry = writeEntry({ Amt: "6.50 EUR", AcctSvcrRef: "NAMELESS01" });
      await bridge("statements", writeFile([{ entries: entry }], { kind: "054" }));
      await service.deps.provider_worker.notify();
      const match = runProviders(service, [
        "match",
        `${await lastEntry()}:0:credit`,
        id,
        "--fee",
        "0.50",
      ]);
      await assert.rejects(match, /--fee is for an entry of a bank about an order/);
    });
  } finally {
    await service.close();
  }

  async function lastEntry(): Promise<string> {
    const [entry] = await sql`select split_part(reference, ':', 1) as id from pay.provider_events
      where outcome = 'unmatched' and dismissed_at is null order by handled_at desc limit 1`;
    return entry!.id;
  }
});
