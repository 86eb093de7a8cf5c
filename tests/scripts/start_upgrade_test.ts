/** `deno task start` and `deno task keys` with a data folder of another version of the project. */

import assert from "node:assert/strict";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { START_COMMAND } from "../../packages/sandbox/start_command.ts";
import {
  launchStart,
  PROJECT_DIR,
  readCredentials,
  runStart,
} from "../support/local/local_start.ts";
import { runOperator } from "../support/local/operator.ts";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";

const PAYMENTS = "/api-v1-payments/v1/payments";
const PAYMENT = {
  amount: 1999,
  currency: "EUR",
  card: { number: "4242424242424242", exp_month: 12, exp_year: 2030, cvc: "123" },
};
/** The parts of the project that a start needs. */
const FILES = ["deno.json", "deno.lock"];
const PARTS = ["apps", "docs", "packages", "shared", "supabase", "tools", ...FILES];
/** The migration of a later version adds a column. */
const NEXT = "30000101000000_next.sql";
const NEXT_SQL = `grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;
alter table pay.payments add column note text default 'from the next version' not null;
do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
`;

Deno.test("deno task start upgrades an older data folder, and an older version refuses it then", (t) =>
  withTemporaryFolder((data_dir) =>
    withNextVersion(async (next) => {
      const env = { DATA_DIR: data_dir };
      const older = await launchStart(env);
      const made = await older.call("POST", PAYMENTS, PAYMENT);
      assert.equal(made.status, 201);
      const { id } = made.body as { id: string };
      const keys = await readCredentials(data_dir);
      assert.equal((await older.end()).code, 0);

      await t.step("the start of the next version has the data and the keys", async () => {
        const newer = await launchStart(env, commandOf(next));
        const found = await newer.call("GET", `${PAYMENTS}/${id}`);
        assert.deepEqual(found.body, made.body);
        assert.equal((await newer.call("POST", PAYMENTS, PAYMENT)).status, 201);
        const { test_key, live_key } = await readCredentials(data_dir);
        assert.deepEqual([test_key, live_key], [keys.test_key, keys.live_key]);
        assert.equal((await newer.end()).code, 0);
      });

      const refusal =
        /^DATA_DIR "[^"]*": its database has migration 30000101000000, which .* it was created by a newer version\. Nothing was changed: start the version that created it, or set DATA_DIR to a new folder$/m;
      await t.step("a start of this version refuses the folder and names the remedy", async () => {
        const { code, output } = await runStart(env);
        assert.equal(code, 1);
        assert.match(output, refusal);
      });
      await t.step("the commands of this version refuse it too", async () => {
        const { code, said } = await runOperator(env, "keys", "list");
        assert.equal(code, 1);
        assert.match(said, refusal);
      });
      await t.step("no data is lost", async () => {
        const newer = await launchStart(env, commandOf(next));
        const { body } = await newer.call("GET", PAYMENTS);
        assert.equal((body as { data: unknown[] }).data.length, 2);
        assert.equal((await newer.end()).code, 0);
      });
    })
  ));

Deno.test("deno task start refuses the data folder of another PostgreSQL major version", () =>
  withTemporaryFolder(async (data_dir) => {
    const start = await launchStart({ DATA_DIR: data_dir });
    assert.equal((await start.end()).code, 0);
    const path = join(data_dir, "postgres", "PG_VERSION");
    await Deno.writeTextFile(path, "16\n");
    const started = await runStart({ DATA_DIR: data_dir });
    const listed = await runOperator({ DATA_DIR: data_dir }, "keys", "list");
    assert.deepEqual([started.code, listed.code], [1, 1]);
    for (const said of [started.output, listed.said]) {
      assert.match(
        said,
        /^The databases in "[^"]*" are of PostgreSQL 16, and this .* PostgreSQL 17\. Nothing was/m,
      );
    }
    assert.equal(await Deno.readTextFile(path), "16\n");
  }));

function commandOf(project: string): string[] {
  return START_COMMAND.map((part) => part.endsWith("start.ts") ? join(project, part) : part);
}

/** Runs `work` with a copy of the project that has one more migration. */
async function withNextVersion(work: (project: string) => Promise<void>): Promise<void> {
  const project = await Deno.makeTempDir({ prefix: "payments-next-" });
  try {
    for (const part of PARTS) {
      await cp(join(PROJECT_DIR, part), join(project, part), { recursive: true });
    }
    await Deno.writeTextFile(join(project, "supabase/migrations", NEXT), NEXT_SQL);
    await work(project);
  } finally {
    await Deno.remove(project, { recursive: true });
  }
}
