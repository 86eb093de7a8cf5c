/**
 * pay.commit() with transfers of one balance in one list. A transfer that is a replay, or the
 * duplicate of another one in the list, takes nothing from the balance.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { idGenerator, systemRandom } from "../../shared/core/ids.ts";
import { decideTransfer } from "../support/domain/decided_change.ts";
import { startService } from "../support/service/service.ts";
import { commit, NOW, type Requested } from "../support/database/commit_list.ts";

type Case = [name: string, lists: [amount: number, key: string | null, outcome: string][][]];

/** The lists of a case are committed one after the other. The balance before them is 100. */
const CASES: Case[] = [
  ["without keys the balance is used up in the order of the list", [
    [[60, null, "committed"], [50, null, "insufficient"], [40, null, "committed"]],
  ]],
  ["a replay takes nothing", [
    [[30, "a", "committed"]],
    [[30, "a", "replay"], [70, "b", "committed"], [1, "c", "insufficient"]],
  ]],
  ["a duplicate in the list takes nothing", [
    [[40, "a", "committed"], [40, "a", "replay"], [60, "b", "committed"]],
  ]],
  ["a duplicate of a refused transfer is refused too", [
    [[101, "a", "insufficient"], [101, "a", "insufficient"], [100, "b", "committed"]],
  ]],
  ["a key of another request takes nothing", [
    [[40, "a", "committed"]],
    [[50, "a", "conflict"], [60, "b", "committed"]],
  ]],
];

Deno.test("pay.commit() of transfers", async (t) => {
  const service = await startService();
  const functions = postgres(service.database.functions_url, { max: 1, onnotice: () => {} });
  try {
    for (const [name, lists] of CASES) {
      await t.step(name, async () => {
        const key = (await service.issueKey(await emptySandbox(service.sql))).text;
        await service.make({ amount_minor: 100, outcome: "success" }, { key });
        for (const list of lists) {
          const requested = list.map(([amount, idempotency_key]) =>
            transferred(key, amount, idempotency_key)
          );
          const rows = await commit(functions, requested);
          assert.deepEqual(rows.map(({ outcome }) => outcome), list.map(([, , told]) => told));
        }
        const drawn = lists.flat().filter(([, , told]) => told === "committed")
          .reduce((sum, [amount]) => sum + amount, 0);
        const { body } = await service.call("GET", "/api-v1-payments/v1/balance", { key });
        const available = body.balances.find((b: { account: string }) => b.account === "available");
        assert.equal(available.amount_minor, 100 - drawn);
      });
    }
  } finally {
    await functions.end();
    await service.close();
  }
});

async function emptySandbox(sql: postgres.Sql): Promise<string> {
  const id = idGenerator(Date.now())("env_");
  await sql`select pay.create_environment(${id}, 'transfers', false, 'test')`;
  return id;
}

/** A new transfer. The fingerprint of its key depends on its amount. */
function transferred(key: string, amount: number, name: string | null): Requested {
  const newId = idGenerator(NOW);
  const change = decideTransfer(
    {
      amount,
      currency: "EUR",
      destination: { iban: { iban: "DE89370400440532013000" } },
      settlement: "manual",
    },
    {
      idempotency_key: null,
      livemode: false,
      at_ms: NOW,
      newId,
      random: systemRandom,
      docs_url: null,
      run_number: null,
      request_id: newId("req_"),
    },
  );
  const keyed = name !== null && { idempotency_key: name, fingerprint: (amount % 16).toString(16) };
  return { change, key, scope: "transfers:write", ...keyed };
}
