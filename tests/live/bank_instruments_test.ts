/**
 * Mandates that are saved with a live key, and collected from without the payer's IBAN: the orders,
 * the end by a code of the bank, and the sealed details, which nothing else shows.
 */

import assert from "node:assert/strict";
import { written } from "../support/bank/bank.ts";
import {
  bankCase,
  type LiveAccount,
  type LiveBank,
  PAYER,
  withLiveAccount,
} from "../support/bank/live_account.ts";

const OWN_IBAN = "DE89370400440532013000";
/** In UTC the next day. */
const SIGNED_AT = "2026-01-31T23:30:00-05:00";
const SIGNED_ON = "2026-02-01";

type Body = Record<string, unknown>;

/** Returns a create that saves a mandate, or with an amount of 0 the mandate alone. */
function saving(more: Body = {}, iban = PAYER.iban): Body {
  return {
    ...{ amount: 700, currency: "EUR", save: "off_session" },
    customer: { id: "u1", email: "ada@example.com" },
    iban: { iban, holder_name: PAYER.name },
    mandate: { signed_at: SIGNED_AT },
    ...more,
  };
}

/** Returns a create that uses a saved mandate. */
function using(instrument: string, more: Body = {}): Body {
  return { amount: 500, currency: "EUR", instrument, off_session: true, ...more };
}

/** Returns the instruments and payments that have sealed details, of those with an id. */
async function sealedOf({ service: { sql } }: LiveAccount, ...ids: string[]): Promise<string[]> {
  const rows = await sql`select owner_id from pay.bank_details
    where owner_id = any (${ids}) and sealed is not null`;
  return ids.filter((id) => rows.some(({ owner_id }) => owner_id === id));
}

/** Returns the texts of an element in a file. */
function textsOf(file: string, name: string): string[] {
  return [...file.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, "g"))].map((found) =>
    found[1]!
  );
}

/** [the code, how the bank says it, the uses before, the end; null: it stays active] */
const CODES: [code: string, by: "reject" | "whole" | "return", uses: number, end: string | null][] =
  [
    ["MD01", "reject", 0, "revoked"],
    ["AC04", "return", 2, "account_closed"],
    ["AC04", "whole", 1, null],
  ];

bankCase("mandates that are saved at a live bank", saveMandates);

async function saveMandates(live: LiveBank, t: Deno.TestContext): Promise<void> {
  const { bank, call, post, show, booked } = live;
  const read = (id: string) => call("GET", `instruments/${id}`);

  await t.step("two collections are in one file, under one mandate", async () => {
    const first = await post(
      "payments",
      saving({ mandate: { signed_at: SIGNED_AT, sequence: "first" } }),
    );
    assert.equal(first.status, "processing");
    const { status, mandate, method } = await read(first.instrument_id);
    assert.deepEqual([status, mandate.id.length], ["active", 21]);
    assert.deepEqual(method.iban, { country: "NL", last4: "4300" });
    const next = await post("payments", using(first.instrument_id));
    assert.deepEqual([next.status, next.method.mandate.id], ["processing", mandate.id]);
    const [file, ...others] = await bank.takeOrders();
    assert.deepEqual([file!.kind, others], ["collections", []]);
    assert.deepEqual(file!.orders.sort(), [first.id, next.id].map(written).sort());
    for (
      const [name, texts] of Object.entries({
        MndtId: [mandate.id, mandate.id],
        DtOfSgntr: [SIGNED_ON, SIGNED_ON],
        SeqTp: ["FRST", "RCUR"],
      })
    ) {
      assert.deepEqual(textsOf(file!.text, name).sort(), texts, name);
    }
    assert.equal(file!.text.split(PAYER.iban).length, 3);
    assert.deepEqual(await booked(first.id, next.id), ["completed", "completed"]);
    const refund = await post(`payments/${next.id}/refund`, { amount: 100 });
    assert.equal(refund.status, "pending", "the payment has the account of the payer");
    await bank.takeOrders();
    await booked(refund.id);
  });

  await t.step("a payment of 0 has no order, and its mandate is used later", async () => {
    const { id, status, instrument_id, method } = await post("payments", saving({ amount: 0 }));
    assert.deepEqual([status, method.due_on], ["completed", null]);
    assert.equal((await read(instrument_id)).status, "active");
    assert.deepEqual(await bank.takeOrders(), []);
    assert.deepEqual(await sealedOf(live, id, instrument_id), [instrument_id]);
    const used = await post("payments", using(instrument_id));
    const [file] = await bank.takeOrders();
    assert.deepEqual([file!.orders, textsOf(file!.text, "SeqTp")], [[written(used.id)], ["RCUR"]]);
    assert.deepEqual(await booked(used.id), ["completed"]);
  });

  await t.step("what the bank account cannot collect is not saved", async () => {
    for (const amount of [0, 700]) {
      const { http, error } = await post("payments", saving({ amount }, OWN_IBAN));
      assert.deepEqual([http, error.param], [400, "iban.iban"]);
      const { instrument_id } = error.payment;
      assert.equal((await read(instrument_id)).status, "failed");
      assert.deepEqual(await sealedOf(live, instrument_id), []);
    }
    assert.deepEqual(await bank.takeOrders(), []);
  });

  for (const [code, by, uses, end] of CODES) {
    await t.step(`${code}, ${by} after ${uses} uses: ${end ?? "active"}`, async () => {
      const { id: first, instrument_id } = await post("payments", saving());
      let last = first;
      for (let i = 0; i < uses; i++) last = (await post("payments", using(instrument_id))).id;
      await bank.takeOrders();
      if (by === "return") {
        await booked(last);
        await bank.giveBack(last, code);
        await bank.notify();
      } else {
        await bank.reject([last], code, by === "whole");
      }
      const { status, return_code } = await show(last);
      assert.deepEqual([status, return_code], ["failed", code]);
      const shown = await read(instrument_id);
      assert.deepEqual([shown.status, shown.ended_reason], [end ? "ended" : "active", end]);
      assert.deepEqual(await sealedOf(live, instrument_id), end ? [] : [instrument_id]);
      const { http, error } = await post("payments", using(instrument_id));
      assert.deepEqual([http, error?.code], end ? [409, "invalid_state"] : [201, undefined]);
      const { data } = await call("GET", `events?instrument_id=${instrument_id}`);
      const types = data.map(({ type }: { type: string }) => type);
      const ended = types.filter((type: string) => type === "instrument.ended");
      assert.equal(ended.length, end ? 1 : 0);
      await bank.takeOrders();
    });
  }

  await t.step("an order leaves after the end of its mandate", async () => {
    const { instrument_id } = await post("payments", saving({ amount: 0 }));
    const { id } = await post("payments", using(instrument_id));
    const deleted = await call("DELETE", `instruments/${instrument_id}`);
    assert.deepEqual([deleted.status, deleted.ended_reason], ["ended", "deleted"]);
    assert.deepEqual(await sealedOf(live, id, instrument_id), [id]);
    const [file] = await bank.takeOrders();
    assert.ok(file!.text.includes(PAYER.iban));
    assert.deepEqual(await booked(id), ["completed"]);
  });

  await t.step("an erasure waits for the order, and takes all details", async () => {
    const customer = { id: "erased", email: "ada@example.com" };
    const { id, instrument_id } = await post("payments", saving({ customer }));
    assert.equal((await call("DELETE", "customers/erased")).error.current_status, "processing");
    await bank.takeOrders();
    await booked(id);
    assert.deepEqual(await sealedOf(live, id, instrument_id), [id, instrument_id]);
    const { payments, instruments } = await call("DELETE", "customers/erased");
    assert.deepEqual([payments, instruments], [1, 1]);
    assert.deepEqual(await sealedOf(live, id, instrument_id), []);
  });
}

Deno.test("a mandate is saved and used with the keys of bank details alone", async () => {
  await withLiveAccount(async (live) => {
    const { post, service: { sql } } = live;
    const { instrument_id } = await post("payments", saving({ amount: 0 }));
    await sql`update pay.bank_details set key_id = 'k9' where owner_id = ${instrument_id}`;
    const used = await post("payments", using(instrument_id));
    assert.deepEqual([used.http, used.error.code], [503, "provider_not_configured"]);
  });
  await withLiveAccount(
    async ({ post, service: { sql } }) => {
      for (const amount of [0, 700]) {
        const saved = await post("payments", saving({ amount }));
        assert.deepEqual([saved.http, saved.error.code], [503, "provider_not_configured"]);
      }
      assert.deepEqual([...await sql`select from pay.instruments`], []);
    },
    undefined,
    { vault: null },
  );
});
