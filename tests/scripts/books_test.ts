/**
 * The programs `deno task check-books`, `reconcile` and `providers`: their lines and exit codes,
 * for alarms, for what a person has to look at, and for breaches of testers.
 */

import assert from "node:assert/strict";
import { runUnguarded } from "../support/database/invariant_breaches.ts";
import { runOperator, runOperatorProgram } from "../support/local/operator.ts";
import { startService } from "../support/service/service.ts";

const HEADING = "\nBreaches that testers in sandboxes can cause:\n";

Deno.test("check-books, reconcile and providers", async (t) => {
  await using service = await startService();
  const { sql, live } = service;
  const env = { DATABASE_URL: service.database.url };
  const checkBooks = () => runOperator({}, "check-books", service.database.url);
  const reconcile = () => runOperator(env, "reconcile");
  const { id } = (await service.pay({ outcome: "success" }, { idempotency_key: "kept" })).body;
  await t.step("providers exits with 0, 1 for an unknown account, 2 for arguments", async () => {
    const listed = await runOperator(env, "providers", "list");
    assert.deepEqual(listed, { code: 0, out: "No accounts\n", said: "" });
    assert.equal((await runOperator(env, "providers", "add")).code, 2);
    const { out } = await runOperator(env, "providers", "--help");
    assert.match(out, /^Usage: deno task providers <command>/);
    const unknown = `pac_${"0".repeat(26)}`;
    const { code, said } = await runOperator(env, "providers", "test", unknown);
    assert.deepEqual([code, said], [1, `${unknown}: no such account\n`]);
  });
  await t.step("both exit with 0 without a difference, and print each invariant", async () => {
    const { code, out } = await checkBooks();
    assert.equal(code, 0);
    assert.match(out, /^(ok {5}invariant_\w+ +R\d.+\n)+$/);
    const found = await reconcile();
    const agreed = "The books agree with those of the providers\n";
    assert.deepEqual([found.code, found.out], [0, agreed]);
  });
  await t.step("check-books prints what a tester can cause apart, and exits with 0", async () => {
    await runUnguarded(
      sql,
      `update pay.idempotency_keys set body = '{"id":"x"}', subject_id = null, sequence = null
       where key = 'kept'`,
    );
    const { code, out } = await checkBooks();
    const [alarms, apart] = out.split(HEADING);
    assert.equal(code, 0, out);
    assert.match(alarms!, /^(ok .+\n)+$/);
    assert.match(
      apart!,
      /^note {3}invariant_stored_responses .+\n {7}1 breach:\n {7}env_.+\nnote /,
    );
  });
  await t.step("both tell what a person has to look at, and exit with 3", async () => {
    await sql`
      insert into pay.provider_events (environment_id, account_id, reference, op, state,
        amount_minor, currency, happened_at, received_at, body, outcome, handled_at)
      values (${live.environment_id}, 'pac_1', 'pi_1', 'authorize', 'succeeded', 1, 'EUR', now(),
        now(), '{}', 'unmatched', now())`;
    const { code, out } = await reconcile();
    assert.deepEqual([code, out], [
      3,
      `warning: invariant_reported_events ${live.environment_id} pac_1 pi_1: unmatched: authorize succeeded ` +
      "of an unknown subject\nThe books agree with those of the providers\n",
    ]);
    const books = await checkBooks();
    assert.equal(books.code, 3);
    assert.match(books.out, /^REVIEW invariant_reported_events /m);
  });
  await t.step("both print each difference and exit with 1", async () => {
    await sql`update pay.provider_events set booked_minor = 5`;
    const { code, out } = await reconcile();
    assert.equal(code, 1);
    assert.match(out, /^invariant_provider_events .*: provider events of 5 EUR, ledger 0$/m);
    assert.equal((await checkBooks()).code, 1);
  });
  await t.step("check-books exits with 1 if a ledger of a sandbox is wrong", async () => {
    await sql`delete from pay.provider_events`;
    await sql`alter table pay.ledger_movements disable trigger all`;
    await sql`update pay.ledger_movements set amount_minor = 999 where subject_id = ${id}`;
    const { code, out } = await checkBooks();
    assert.equal(code, 1, out);
    const [alarms] = out.split(HEADING);
    assert.match(alarms!, /BROKEN invariant_ledger_totals .+\n {7}1 breach:\n {7}env_/);
  });
  await t.step("reconcile exits with 2 if it cannot read the books", async () => {
    const nowhere = "postgres://127.0.0.1:1/none";
    const { code, said } = await runOperatorProgram(env, "reconcile", nowhere);
    assert.equal(code, 2);
    assert.match(said, /^DATABASE_URL cannot be used: the connection failed/);
  });
});
