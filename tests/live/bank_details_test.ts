/**
 * The details of an entry can come in another file than the entry: in a notification after a
 * statement without them, or before it. In every order each entry is booked once, and by its details.
 */

import assert from "node:assert/strict";
import { creditorReference } from "../../shared/core/creditor_reference.ts";
import { Vault } from "../../shared/core/vault.ts";
import { addBankAccount, callBridge, KEYS } from "../support/bank/bank.ts";
import {
  ACCOUNT,
  writeBalance,
  writeDetail,
  writeEntry,
  writeFile,
} from "../support/connectors/bank_file.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { startService } from "../support/service/service.ts";

const KINDS = ["052", "053", "054"] as const;

/** The kinds of files in the order of their imports, and which of them have the details. */
const CASES:
  readonly (readonly [order: readonly (typeof KINDS)[number][], with_details: string])[] = KINDS
    .flatMap((first) =>
      KINDS.filter((kind) => kind !== first).flatMap((second) => {
        const third = KINDS.find((kind) => kind !== first && kind !== second)!;
        return ["054", "053", "053 054"].map((with_details) =>
          [[first, second, third], with_details] as const
        );
      })
    );

Deno.test("details that come in another file", async (t) => {
  const service = await startService({ vault: Vault.read(KEYS) });
  const { sql, live: { text: key } } = service;
  const account = await addBankAccount(service, {
    methods: "sepa",
    iban: ACCOUNT,
    currency: "EUR",
  });
  const create = async (amount: number): Promise<string> => {
    const body = { amount, currency: "EUR", method_kind: "sepa" };
    return (await service.pay(body, { key })).body.id;
  };
  const statusOf = async (id: string) =>
    (await service.call("GET", `/api-v1-payments/v1/payments/${id}`, { key })).body.status;
  const importAs = async (
    kind: (typeof KINDS)[number],
    entries: readonly string[],
    sum: string,
  ) => {
    const head = writeBalance("OPBD", "0.00") + writeBalance("CLBD", sum);
    const file = writeFile([{ head, entries: entries.join("") }], { kind });
    const { status, body } = await callBridge(service, account, "POST", "statements", file);
    assert.deepEqual([status, body.result, body.error], [200, "applied", null]);
    await service.deps.provider_worker.notify();
    return body;
  };
  const bookedFor = async (id: string) => {
    const [row] = await sql<[{ entries: number; booked: number; shown: number }]>`
      select count(distinct b.id)::int as entries, sum(event.booked_minor)::int as booked,
        (count(*) filter (where event.exception is not null))::int as shown
      from pay.bank_entries b
      join pay.provider_events event on event.account_id = b.account_id
        and split_part(event.reference, ':', 1) = b.id
      where b.id in (select split_part(e.reference, ':', 1) from pay.provider_events e
        where e.subject_id = ${id})`;
    return { ...row };
  };
  const detailOf = (id: string, amount: string) =>
    writeDetail({ Amt: `${amount} EUR`, RmtInf: `<Ustrd>${creditorReference(id)}</Ustrd>` });
  try {
    for (const [at, [order, with_details]] of CASES.entries()) {
      await t.step(`${order.join(", ")}, with details in ${with_details}`, async () => {
        const [alone, first, last] = [await create(1000), await create(300), await create(400)];
        const single = { AcctSvcrRef: `SINGLE2026${at}` };
        const batch = { AcctSvcrRef: `BATCH2026${at}`, Amt: "7.50 EUR" };
        const of_batch = detailOf(first, "3.00") + writeDetail({ Amt: "0.50 EUR" }) +
          detailOf(last, "4.00");
        for (const kind of order) {
          const entries = with_details.includes(kind)
            ? [{ ...single, NtryDtls: detailOf(alone, "10.00") }, { ...batch, NtryDtls: of_batch }]
            : [single, batch];
          await importAs(kind, entries.map(writeEntry), "17.50");
        }
        for (const id of [alone, first, last]) assert.equal(await statusOf(id), "completed");
        assert.deepEqual(await bookedFor(alone), { entries: 1, booked: 1000, shown: 0 });
        assert.deepEqual(await bookedFor(first), { entries: 1, booked: 750, shown: 1 });
      });
    }
    await t.step("details of money that the operator has dismissed are booked too", async () => {
      const id = await create(1000);
      const total = { AcctSvcrRef: "DISMISSED2026" };
      await importAs("053", [writeEntry(total)], "10.00");
      await sql`update pay.provider_events set dismissed_at = now(), dismissed_reason = 'seen'
        where exception is not null and dismissed_at is null`;
      const entry = writeEntry({ ...total, NtryDtls: detailOf(id, "10.00") });
      const { booked, exceptions } = await importAs("054", [entry], "10.00");
      assert.deepEqual([booked, exceptions], [1, 0]);
      assert.equal(await statusOf(id), "completed");
    });
    await t.step("the ledger equals the entries, also while a payment waits", async () => {
      await create(600);
      const [sums] = await sql<[{ entries: string; booked: string }]>`select
        (select sum(amount_minor) from pay.bank_entries) as entries,
        (select sum(booked_minor) from pay.provider_events) as booked`;
      assert.equal(sums.booked, sums.entries);
      await assertSilent(sql);
    });
  } finally {
    await service.close();
  }
});
