/** `deno task check-books`: its lines and exit codes, for alarms and for breaches of testers. */

import assert from "node:assert/strict";
import { runUnguarded } from "../support/database/invariant_breaches.ts";
import { startService, type TestService } from "../support/service/service.ts";
import { PROJECT_DIR } from "../support/local/local_start.ts";

const HEADING = "\nBreaches that testers in sandboxes can cause:\n";

async function checkBooks({ database }: TestService): Promise<{ code: number; out: string }> {
  const { code, stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--quiet", "apps/operator/operator.ts", "check-books", database.url],
    cwd: PROJECT_DIR,
    stdin: "null",
  }).output();
  return { code, out: new TextDecoder().decode(stdout) };
}

Deno.test("check-books", async (t) => {
  const service = await startService();
  const { sql } = service;
  try {
    const { id } = (await service.pay({ outcome: "success" }, { idempotency_key: "kept" })).body;
    await t.step("exits with 0 and prints ok for each invariant", async () => {
      const { code, out } = await checkBooks(service);
      assert.equal(code, 0);
      assert.match(out, /^(ok {5}invariant_\w+ +R\d.+\n)+$/);
    });
    await t.step("prints what a tester can cause apart, and exits with 0", async () => {
      await runUnguarded(
        sql,
        `update pay.idempotency_keys set body = '{"id":"x"}', subject_id = null, sequence = null
         where key = 'kept'`,
      );
      const { code, out } = await checkBooks(service);
      const [alarms, apart] = out.split(HEADING);
      assert.equal(code, 0, out);
      assert.match(alarms!, /^(ok .+\n)+$/);
      assert.match(
        apart!,
        /^note {3}invariant_stored_responses .+\n {7}1 breach:\n {7}env_.+\nnote /,
      );
    });
    await t.step("exits with 1 if the ledger of a sandbox does not add up", async () => {
      await sql`alter table pay.ledger_movements disable trigger all`;
      await sql`update pay.ledger_movements set amount_minor = 999 where subject_id = ${id}`;
      const { code, out } = await checkBooks(service);
      assert.equal(code, 1, out);
      const [alarms] = out.split(HEADING);
      assert.match(alarms!, /BROKEN invariant_ledger_totals .+\n {7}1 breach:\n {7}env_/);
    });
  } finally {
    await service.close();
  }
});
