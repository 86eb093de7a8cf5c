/** The events of one payment that are due together are handled one after another. */

import assert from "node:assert/strict";
import { Vault } from "../../shared/core/vault.ts";
import { ProviderStore } from "../../shared/store/provider_store.ts";
import { addBankAccount, KEYS } from "../support/bank/bank.ts";
import { ACCOUNT } from "../support/connectors/bank_file.ts";
import { databaseOf } from "../../apps/operator/operator_database.ts";
import { startService } from "../support/service/service.ts";

const PARTS = 8;

Deno.test("each event of a payment is decided once, however many are due", async () => {
  const service = await startService({ vault: Vault.read(KEYS) });
  const { sql, live: { text: key } } = service;
  try {
    const { id: account_id } = await addBankAccount(service, {
      methods: "sepa",
      iban: ACCOUNT,
      currency: "EUR",
    });
    const { body: payment } = await service.call("POST", "/api-v1-payments/v1/payments", {
      key,
      body: { amount: 100 * PARTS, currency: "EUR", method_kind: "sepa" },
    });
    const at = new Date().toISOString();
    await new ProviderStore(databaseOf(sql)).storeProviderEvents(
      account_id,
      Array.from({ length: PARTS }, (_, n) => ({
        account_id,
        reference: `part${n}:1`,
        object_id: `part${n}`,
        op: "authorize" as const,
        state: "succeeded" as const,
        subject_id: payment.id,
        refund_id: null,
        provider_reference: null,
        amount_minor: 100,
        currency: "EUR",
        at,
        livemode: true,
        bank: { entry: { part: 1, line: 1, bank_reference: null } },
      })),
    );
    service.forgetStatements();
    await service.deps.provider_worker.notify();
    const reads = service.takeStatements().filter((text) => text.includes("read_provider_subject"));
    const shown = await service.call("GET", `/api-v1-payments/v1/payments/${payment.id}`, { key });
    assert.deepEqual([shown.body.status, shown.body.amount_received], ["completed", 100 * PARTS]);
    assert.equal(reads.length, PARTS - 1);
  } finally {
    await service.close();
  }
});
