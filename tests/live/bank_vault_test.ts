/**
 * The whole bank details of payers and payees: sealed anew with a new key beside running servers,
 * and deleted by a request and by retention.
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { bytesOf } from "../../shared/connectors/bank/export_bank_files.ts";
import { idGenerator } from "../../shared/core/ids.ts";
import { Vault } from "../../shared/core/vault.ts";
import { sealContextOf } from "../../shared/domain/providers/sealed_details.ts";
import { KEYS, runBank, written } from "../support/bank/bank.ts";
import { bankCase, type LiveBank, PAYEE, PAYER } from "../support/bank/live_account.ts";
import { launchCommand } from "../support/common/running_command.ts";
import { untilWaiting } from "../support/database/lock_waits.ts";
import { operate } from "../support/live/provider_commands.ts";

const DAY_MS = 86_400_000;
/** More than two batches of a rotation. */
const MANY = 1_200;

/** The keys of the next rotation: a new one before those of the servers. */
const NEWER = `k2:${btoa("n".repeat(32))},${KEYS}`;

/** A create that saves a mandate alone. */
const SAVED = {
  ...{ amount: 0, currency: "EUR", save: "off_session" },
  customer: { id: "u1", email: "ada@example.com" },
  iban: { iban: PAYER.iban, holder_name: PAYER.name },
  mandate: { id: "SAVED", signed_at: "2026-01-31" },
};

/** A sealed text, as it is stored. */
interface StoredText {
  environment_id: string;
  id: string;
  key_id: string | null;
  sealed: string | null;
}

bankCase("bank details of live orders", keepDetails);

async function keepDetails(live: LiveBank, t: Deno.TestContext): Promise<void> {
  const { service, bank, call, post, show, transfer, collect, pay, booked, bridge } = live;
  const { sql } = service;
  const environment_id = service.live.environment_id;
  const pushed = await pay(10_000);
  const collection = await collect({ mandate_id: "M1", sequence: "one_off" });
  const open = await transfer();
  const { instrument_id } = await post("payments", SAVED);
  await bank.takeOrders();

  await t.step("a rotation that is killed goes on, and leaves nothing behind", async () => {
    const newId = (i: number) => idGenerator(Date.now() - i)("tr_");
    const vault = Vault.read(KEYS);
    const details = JSON.stringify({ holder_name: PAYEE.holder_name, iban: PAYEE.iban });
    const rows = await Promise.all(Array.from({ length: MANY }, async (_, i) => {
      const owner_id = newId(i);
      return {
        environment_id,
        owner_id,
        ...await vault.seal(details, owner_id),
        created_at: new Date(),
      };
    }));
    await sql`insert into pay.bank_details ${sql(rows)}`;
    const middle = rows.map(({ owner_id }) => owner_id).sort()[MANY / 2]!;
    const held = await sql.reserve();
    await held`begin`;
    await held`select from pay.bank_details where owner_id = ${middle} for update`;
    const command = launchCommand({
      args: [Deno.execPath(), "run", "-A", "apps/operator/operator.ts", "vault", "rotate"],
      env: { DATABASE_URL: service.database.url, BANK_DETAILS_KEYS: NEWER },
    });
    // The first batch is stored, and the next one waits for the row.
    await untilWaiting(sql, { calls: "pay.store_sealed_texts" });
    await command.end("SIGKILL");
    await held`rollback`;
    held.release();
    const keys = new Set((await texts(live)).map(({ key_id }) => key_id));
    assert.deepEqual([...keys].sort(), ["k1", "k2"]);

    const { code, keys: left } = await rotate(live, NEWER);
    assert.equal(code, 0);
    assert.deepEqual(left, [{ key_id: "k2", texts: (await texts(live)).length }]);
    await assertOpens(live, Vault.read(NEWER.split(",")[0]!));
  });

  await t.step("a file has the same bytes, and the next rotation does nothing", async () => {
    const { bank_store } = service.deps;
    const account = { environment_id } as Parameters<typeof bytesOf>[1];
    for (const { id, sha256 } of await bank_store.listExports(bank.account_id, null)) {
      const bytes = await bytesOf(id, account, bank_store, Vault.read(NEWER));
      assert.equal(createHash("sha256").update(bytes).digest("hex"), sha256);
    }
    assert.deepEqual(await rotate(live, NEWER), {
      code: 0,
      rotated: 0,
      keys: [{ key_id: "k2", texts: (await texts(live)).length }],
      // Its next use gives it the newest key.
      mandates: { k1: 1 },
      said: [],
    });
  });

  await t.step("a server with the old key goes on beside it, and is counted", async () => {
    const { id } = await transfer();
    const { keys, code } = await rotate(live, `k3:${btoa("3".repeat(32))}`);
    assert.equal(code, 1);
    assert.equal(keys.find(({ key_id }) => key_id === "k1")?.texts, 1);
    const { said } = await rotate(live, NEWER.split(",")[0]!);
    assert.match(said[0]!, /no key "k1", which has 1 text and 1 mandate: put it at the end/);
    assert.equal((await post(`transfers/${id}/cancel`, {})).status, "cancelled");
    assert.deepEqual((await rotate(live, NEWER)).rotated, 1);
  });

  await t.step("another key under the id of an older one loses nothing", async () => {
    const before = await texts(live);
    const wrong = `k9:${btoa("9".repeat(32))},k2:${btoa("w".repeat(32))}`;
    const { code, rotated, said } = await rotate(live, wrong);
    assert.deepEqual([code, rotated], [1, 0]);
    assert.match(said.at(-1)!, new RegExp(`^${before.length} texts do not open`));
    assert.deepEqual(await texts(live), before);
  });

  await t.step("a text that is deleted during a rotation stays deleted", async () => {
    const held = await sql.reserve();
    await held`begin`;
    await held`update pay.bank_details set key_id = null, sealed = null
      where owner_id = ${pushed}`;
    const rotation = rotate(live, `k3:${btoa("3".repeat(32))},${NEWER}`);
    await untilWaiting(sql, { calls: "pay.store_sealed_texts" });
    await held`commit`;
    held.release();
    const { code, rotated } = await rotation;
    assert.deepEqual([code, rotated], [0, (await texts(live)).length]);
    assert.ok(!(await texts(live)).some(({ id }) => id === pushed));
  });
  assert.equal((await rotate(live, `${KEYS},k3:${btoa("3".repeat(32))}`)).code, 0);

  await t.step("an import with other keys is refused, and changes nothing", async () => {
    const id = await pay(1_000);
    const before = await texts(live);
    const file = await Deno.makeTempFile();
    await Deno.writeTextFile(file, await bank.write("camt.053"));
    const { code, lines } = await runBank(
      ...[service, bank.account_id, ["import", file], `k9:${btoa("9".repeat(32))}`] as const,
    );
    await Deno.remove(file);
    assert.equal(code, 1);
    assert.match(JSON.stringify(lines), /the key \\"k1\\" is missing/);
    assert.deepEqual(await texts(live), before);
    assert.ok(await show(id));
  });

  await t.step("details that an order still needs are not deleted", async () => {
    for (const path of [`transfers/${open.id}`, `payments/${collection.id}`]) {
      const { http, error } = await call("DELETE", `${path}/bank_details`);
      assert.deepEqual([http, error.code], [409, "invalid_state"]);
    }
  });

  await t.step("a deletion takes the details, and the file that has them", async () => {
    await booked(open.id);
    assert.equal((await show(open.id)).status, "completed");
    const [{ name }] = (await bridge("GET", "files")).body.data
      .filter(({ kind }: { kind: string }) => kind === "sepa_transfers");
    assert.equal((await bridge("GET", `files/${name}`)).status, 200);
    assert.equal((await call("DELETE", `transfers/${open.id}/bank_details`)).deleted, true);
    assert.equal((await bridge("GET", `files/${name}`)).status, 404);
    assert.deepEqual((await show(open.id)).destination.iban, { country: "FR", last4: "2606" });
    const left = await texts(live);
    assert.ok(!left.some(({ id }) => id === open.id));
    assert.ok(!left.some(({ id }) => id.startsWith("bf_") && name.includes(id.slice(3))));
  });

  await t.step(
    "without them a refund names its destination, whatever the bank sends",
    async () => {
      const id = await pay(5_000);
      const refund = await post(`payments/${id}/refund`, { amount: 100 });
      assert.equal((await call("DELETE", `payments/${id}/bank_details`)).http, 409);
      await bank.takeOrders();
      await booked(refund.id);
      assert.equal((await call("DELETE", `payments/${id}/bank_details`)).deleted, true);
      // The statement of the day has the payer again.
      await bank.importGood(await bank.write("camt.053"));
      const refused = await post(`payments/${id}/refund`, { amount: 200 });
      assert.deepEqual([refused.http, refused.error.param], [400, "destination"]);
      assert.ok(!(await texts(live)).some((text) => text.id === id));
    },
  );

  await t.step("retention takes those that nothing needs any more", async () => {
    await sql`delete from pay.bank_details where created_at < now() - interval '1 hour'`;
    const age = async (days: number, make: () => Promise<{ id: string }>) => {
      await service.setClock(Date.now() - days * DAY_MS);
      const { id } = await make();
      await service.setClock(null);
      return id;
    };
    const paid = (days: number) => age(days, async () => ({ id: await pay(300) }));
    const [old_payment, newer_payment] = [await paid(430), await paid(400)];
    const transfers = [await age(31, transfer), await age(31, transfer), await age(29, transfer)];
    await bank.takeOrders();
    for (const id of [transfers[0]!, transfers[2]!]) await booked(id);
    await sql`update pay.bank_exports set written_at = written_at - interval '31 days'
      where environment_id = ${environment_id} and id in (
        select export_id from pay.bank_orders where owner_id = ${transfers[0]!})`;
    while ((await sql`select pay.purge(now(), 1)::int as rows`)[0]!.rows > 0);
    const ids = new Set((await texts(live)).map(({ id }) => id));
    assert.deepEqual(
      [old_payment, newer_payment, ...transfers, instrument_id].map((id) => ids.has(id)),
      [false, true, false, true, true, true],
    );
    const [gone] = await sql`select count(*)::int as files from pay.bank_exports
      where sealed is null and written_at < now() - interval '30 days'`;
    assert.equal(gone!.files, 1);
    const late = await post(`payments/${old_payment}/refund`, {});
    assert.deepEqual([late.http, late.error.param], [400, "destination"]);
    // A recall needs no bytes of the file.
    assert.ok((await bank.recall(transfers[1]!)).includes(written(transfers[1]!)));
  });
  // The double has booked on days whose statements it had written, which no bank does.
  await sql`update pay.provider_totals set balances = null`;
}

bankCase("a mandate keeps its IBAN over a change of keys", keepMandates, undefined, NEWER);

async function keepMandates(live: LiveBank, t: Deno.TestContext): Promise<void> {
  const { post, collect, service: { sql } } = live;
  const keyOf = async () => {
    const [row] = await sql`select split_part(iban, ':', 1) as key from pay.instruments`;
    return row!.key;
  };
  const knownBy = async (keys: string) => {
    const [iban] = Vault.read(keys).fingerprints(PAYER.iban, "M1");
    await sql`update pay.instruments set iban = ${iban!}`;
  };
  /** [criterion, keys of the mandate's last use, IBAN, HTTP status, param, key after it] */
  const USES: [string, string, string, number, string | undefined, string][] = [
    ["the newest key", NEWER, PAYER.iban, 201, undefined, "k2"],
    ["an older key", KEYS, PAYER.iban, 201, undefined, "k2"],
    ["another IBAN, the newest key", NEWER, PAYEE.iban, 400, "mandate.id", "k2"],
    ["another IBAN, an older key", KEYS, PAYEE.iban, 400, "mandate.id", "k1"],
    ["a key that is missing", `k9:${btoa("9".repeat(32))}`, PAYER.iban, 503, undefined, "k9"],
  ];
  assert.equal((await collect({ mandate_id: "M1" })).status, "processing");
  for (const [name, keys, iban, http, param, key] of USES) {
    await t.step(name, async () => {
      await knownBy(keys);
      const made = await post("payments", {
        amount: 700,
        currency: "EUR",
        iban: { iban, holder_name: PAYER.name },
        mandate: { id: "M1", signed_at: "2026-01-31", sequence: "recurring" },
      });
      assert.deepEqual([made.http, made.error?.param, await keyOf()], [http, param, key]);
    });
  }
}

/** Rotates as `deno task vault rotate --json` does. */
async function rotate({ service }: LiveBank, keys: string) {
  const { code, out, said } = await operate(service.sql, ["vault", "rotate", "--json"], {
    BANK_DETAILS_KEYS: keys,
  });
  const { rotated, keys: left } = JSON.parse(out) as {
    rotated: number;
    keys: { key_id: string; texts: number; mandates: number }[];
  };
  const sealing = left.filter(({ texts }) => texts > 0);
  return {
    code,
    rotated,
    keys: sealing.map(({ key_id, texts }) => ({ key_id, texts })),
    mandates: Object.fromEntries(
      left.filter(({ mandates }) => mandates > 0).map((key) => [key.key_id, key.mandates]),
    ),
    said,
  };
}

/** Returns the sealed texts of both tables. */
async function texts({ service: { sql } }: LiveBank): Promise<StoredText[]> {
  return await sql<StoredText[]>`
    select environment_id, owner_id as id, key_id, sealed from pay.bank_details
    where sealed is not null
    union all
    select environment_id, id, key_id, sealed from pay.bank_exports where sealed is not null
    order by id`;
}

async function assertOpens(live: LiveBank, vault: Vault): Promise<void> {
  for (const { id, key_id, sealed } of await texts(live)) {
    const text = await vault.open({ key_id: key_id!, sealed: sealed! }, sealContextOf(id));
    assert.ok(id.startsWith("bf_") || JSON.parse(text).iban, id);
  }
}
