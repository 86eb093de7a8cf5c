/**
 * Entries of a bank whose amount is not that of their order: each is booked for the account with an
 * exception, and changes no payment or transfer.
 */

import assert from "node:assert/strict";
import { Vault } from "../../shared/core/vault.ts";
import { addBankAccount, callBridge, KEYS, written } from "../support/bank/bank.ts";
import {
  ACCOUNT,
  writeBalance,
  writeDetail,
  writeEntry,
  writeFile,
} from "../support/connectors/bank_file.ts";
import { startService } from "../support/service/service.ts";

/** An order of 7.00 EUR, whether its right entry comes before the wrong one, and the wrong one. */
const CASES: [
  name: string,
  kind: "collection" | "transfer",
  is_booked: boolean,
  amount: string,
  is_back: boolean,
][] = [
  ["a collection that is returned with more", "collection", true, "7.01", true],
  ["a collection that is booked with less", "collection", false, "6.99", false],
  ["a transfer that is returned with more", "transfer", true, "7.01", true],
  ["a transfer that is returned with less", "transfer", true, "6.99", true],
  ["a transfer that is booked with more", "transfer", false, "7.01", false],
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
  const pathOf = (kind: string) =>
    `/api-v1-payments/v1/${kind === "transfer" ? "transfers" : "payments"}`;
  const create = async (kind: "collection" | "transfer", number: number): Promise<string> => {
    const iban = { iban: "NL91ABNA0417164300", holder_name: "Jan Payer" };
    const mandate = { id: `M-${number}`, signed_at: "2026-01-31", sequence: "recurring" };
    const body = { amount: 700, currency: "EUR" };
    const { status, body: made } = await service.call("POST", pathOf(kind), {
      key,
      body: kind === "transfer"
        ? { ...body, destination: { iban } }
        : { ...body, method_kind: "sepa", iban, mandate },
    });
    assert.ok(status < 300, JSON.stringify(made));
    return made.id;
  };
  let entries = 0;
  const book = async (id: string, amount: string, is_credit: boolean, is_back: boolean) => {
    const detail = writeDetail({
      Refs: `<EndToEndId>${written(id)}</EndToEndId>`,
      Amt: `${amount} EUR`,
      RtrInf: is_back ? "<Rsn><Cd>AC04</Cd></Rsn>" : null,
    });
    const entry = writeEntry({
      Amt: `${amount} EUR`,
      CdtDbtInd: is_credit ? "CRDT" : "DBIT",
      AcctSvcrRef: `AMOUNT2026${++entries}`,
      NtryDtls: detail,
    });
    const head = writeBalance("OPBD", "0.00");
    const { status, body } = await bridge(
      "statements",
      writeFile([{ head, entries: entry }], { kind: "054" }),
    );
    assert.deepEqual([status, body.error], [200, null]);
    await service.deps.provider_worker.notify();
    return body;
  };
  try {
    const funds = await create("collection", 0);
    assert.deepEqual((await bridge("files")).body, { waiting: [] });
    await book(funds, "7.00", true, false);
    for (const [at, [name, kind, is_booked, amount, is_back]] of CASES.entries()) {
      await t.step(name, async () => {
        const id = await create(kind, at + 1);
        assert.deepEqual((await bridge("files")).body, { waiting: [] });
        const is_credit = kind === "collection";
        if (is_booked) await book(id, "7.00", is_credit, false);
        const show = async () => (await service.call("GET", `${pathOf(kind)}/${id}`, { key })).body;
        const before = await show();
        const { booked, exceptions } = await book(id, amount, is_credit !== is_back, is_back);
        assert.deepEqual([booked, exceptions], [1, 1]);
        assert.deepEqual(await show(), before);
        const [sums] = await sql<[{ entries: string; booked: string }]>`select
          (select sum(amount_minor) from pay.bank_entries) as entries,
          (select sum(booked_minor) from pay.provider_events) as booked`;
        assert.equal(sums.booked, sums.entries);
        // The money of the next transfer.
        const next = await create("collection", 100 + at);
        await bridge("files");
        await book(next, "7.00", true, false);
      });
    }
  } finally {
    await service.close();
  }
});
