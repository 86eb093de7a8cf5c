/**
 * Waiting changes share a statement, and so do results of providers. One that the database refuses,
 * that waits for a lock, or that comes with many others does not harm the others.
 */

import assert from "node:assert/strict";
import { ProviderStore } from "../../shared/store/provider_store.ts";
import {
  addAccount,
  completion,
  providerCase,
  reserve,
  type Reserved,
} from "../support/database/provider_flow.ts";
import { openPool } from "../support/database/store_access.ts";
import { PAYMENTS, serviceCase } from "../support/service/service_case.ts";
import type { TestResponse, TestService } from "../support/service/service.ts";

/** The maximum number of changes in a statement (request_batcher.ts). */
const MAX_CHANGES = 64;

/** Sends this many creates at once. */
function payMany(service: TestService, count: number, key?: string): Promise<TestResponse>[] {
  const options = key === undefined ? {} : { key };
  return Array.from({ length: count }, (_, i) => service.pay({ reference: `r${i}` }, options));
}

function commitsOf(service: TestService): number {
  return service.takeStatements().filter((text) => text.includes("pay.commit(")).length;
}

serviceCase("waiting commits share a statement", async (t, service) => {
  await service.pay();
  await t.step("200 creates at once take few statements, with a response for each", async () => {
    service.takeStatements();
    const responses = await Promise.all(payMany(service, 200));
    const statements = commitsOf(service);
    assert.ok(statements >= 200 / MAX_CHANGES && statements <= 20, `${statements} statements`);
    assert.deepEqual(responses.map(({ body }) => body.reference), responses.map((_, i) => `r${i}`));
    assert.equal(new Set(responses.map(({ body }) => body.id)).size, 200);
  });
  await t.step("a single create does not wait for others", async () => {
    service.takeStatements();
    await service.pay();
    assert.equal(commitsOf(service), 1);
  });
});

serviceCase("a database error fails only its own change", async (t, service) => {
  // This constraint refuses a change that the service accepts.
  await service.sql.unsafe(
    `alter table pay.payments add constraint test_no_thirteen check (reference <> 'r13')`,
  );
  await t.step("the others are committed, and this change is an internal error", async () => {
    const responses = await Promise.all(payMany(service, 50));
    for (const [i, { status }] of responses.entries()) assert.equal(status, i === 13 ? 500 : 201);
    const [row] = await service.sql`select count(*)::int as n from pay.payments`;
    assert.equal(row!.n, 49);
  });
});

serviceCase("only one change waits for a held lock", async (t, service) => {
  const { body: held } = await service.pay();
  const cancel = `${PAYMENTS}/${held.id}/cancel`;
  /**
   * Cancels and creates at once while another session locks the payment. Returns the order of the
   * ends.
   */
  async function beside(isLongEnough: (cancelled: Promise<unknown>) => Promise<unknown>) {
    const locked = Promise.withResolvers<void>();
    const enough = Promise.withResolvers<void>();
    const order: string[] = [];
    const holder = service.sql.begin(async (sql) => {
      await sql`select from pay.payments where id = ${held.id} for update`;
      locked.resolve();
      await enough.promise;
      order.push("lock");
    });
    await locked.promise;
    const cancelled = service.call("POST", cancel).finally(() => order.push("cancel"));
    const responses = await Promise.all(payMany(service, 30));
    order.push("creates");
    await isLongEnough(cancelled);
    enough.resolve();
    const response = await cancelled;
    await holder;
    return { response, order, statuses: new Set(responses.map(({ status }) => status)) };
  }

  await t.step("held too long: the cancel is 503, after the creates responded", async () => {
    const { response, order, statuses } = await beside((cancelled) => cancelled);
    assert.deepEqual(statuses, new Set([201]));
    assert.deepEqual(order, ["creates", "cancel", "lock"]);
    assert.equal(response.status, 503);
    assert.equal(response.headers.get("Retry-After"), "1");
  });
  await t.step("released in time: the cancel succeeds", async () => {
    const { response, order, statuses } = await beside(() => Promise.resolve());
    assert.deepEqual(statuses, new Set([201]));
    assert.deepEqual(order, ["creates", "lock", "cancel"]);
    assert.equal(response.status, 200, response.text);
  });
});

const RECORDS = 40;

providerCase("results share statements, and a refused one fails alone", async (_, given) => {
  const { service, sql, live, functions } = given;
  const statements: string[] = [];
  await using database = openPool({
    url: service.database.functions_url,
    on_statement: (text) => statements.push(text),
  });
  const store = new ProviderStore(database);
  await addAccount(sql, live.environment_id);

  const made: Reserved[] = [];
  for (let i = 0; i < RECORDS; i++) made.push(await reserve(functions, live));
  const settled = await Promise.allSettled(made.map((one, i) => {
    const record = completion(one);
    const bad = { ...record.provider_events[0]!, outcome: "wrong" as "ignored" };
    return store.record([i === 7 ? { ...record, provider_events: [bad] } : record]);
  }));
  const outcomes = settled.map((one) =>
    one.status === "fulfilled" ? one.value[0]!.outcome : "refused"
  );
  assert.deepEqual(outcomes, outcomes.map((_, i) => i === 7 ? "refused" : "recorded"));
  console.log(`${statements.length} statements`);
});
