/**
 * A transfer that meets many deltas rolls them up first: what it reads under its lock stays little.
 */

import assert from "node:assert/strict";
import { startService } from "../support/service.ts";

const GATHERED = 6_000;

Deno.test("POST /v1/transfers rolls up what has gathered", async () => {
  const service = await startService();
  try {
    const { environment_id } = service.key;
    await service.sql`
      insert into pay.ledger_deltas
        (environment_id, id, currency, debit_account, credit_account, amount_minor)
      select ${environment_id}, 'txn_' || lpad(n::text, 26, '0'), 'EUR', 'processor', 'available', 1
      from generate_series(1, ${GATHERED}) n`;
    const send = (amount: number) =>
      service.call("POST", "/api-v1-payments/v1/transfers", {
        body: { amount, currency: "EUR", destination: { iban: "DE89370400440532013000" } },
      });
    assert.equal((await send(GATHERED + 1)).status, 402);
    assert.equal((await send(GATHERED)).status, 201);
    assert.equal((await send(1)).status, 402);
    const [left] = await service.sql`select count(*)::int as n from pay.ledger_deltas`;
    assert.ok(left!.n < 10, `${left!.n} deltas are left`);
  } finally {
    await service.close();
  }
});
