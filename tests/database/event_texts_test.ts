/**
 * The texts of payments and transfers as of their events (ADR 0002): the bytes that requests got at
 * that time, for every event, and a bounded number of rows for each.
 */

import assert from "node:assert/strict";
import { openSession } from "../support/database/database.ts";
import { APPROVED, PAYMENTS, serviceCase } from "../support/service/service_case.ts";
import { removeDeletedRows, rowsRead } from "../support/database/pages_read.ts";

const EVENTS = "/api-v1-payments/v1/events";
const TRANSFERS = "/api-v1-payments/v1/transfers";
/** Enough for three events with a whole text: each refund has three events. */
const REFUNDS = 40;
/** The events up to the next whole text, the payment, the event and its environment. */
const MAX_ROWS = 32 + 4;

const METADATA: [name: string, metadata: Record<string, string>][] = [
  ["usual texts", { order: "18151210" }],
  ["members named like ours", { status: "pending", sequence: "1", amount_refunded: "0" }],
  ["quotes, commas and backslashes", { a: '","status":"pending",\\"', "b,1,2": "1,2,3" }],
  ["letters of two bytes", { größe: "ÄÖÜß", a: "é\u0301" }],
  ["characters of two units", { a: "🎉 𝄞", status: "👩‍👩‍👧" }],
];

serviceCase("every event shows the payment byte for byte as it was", async (t, service) => {
  for (const [i, [name, metadata]] of METADATA.entries()) {
    await t.step(name, async () => {
      const key = { idempotency_key: `create-${i}` };
      const body = { amount: 5000, ...APPROVED.card, metadata, description: metadata.a };
      const created = await service.pay(body, key);
      assert.equal(created.status, 201, created.text);
      const path = `${PAYMENTS}/${created.body.id}`;
      const texts = new Map([[created.body.sequence, created.text]]);
      for (let n = 0; n < REFUNDS; n++) {
        await service.post(`${path}/refund`, { amount: 100 + n });
        const { body: shown, text } = await service.call("GET", path);
        texts.set(shown.sequence, text);
      }
      const rows = await service.sql`
        select id, type, sequence from pay.events
        where subject_id = ${created.body.id} order by sequence`;
      assert.equal(rows.length, 2 + 3 * REFUNDS);
      let compared = 0;
      for (const { id, type, sequence } of rows) {
        const { text } = await service.call("GET", `${EVENTS}/${id}`);
        const shown = /^.*?"data":\{"object":(.*)\},"request":\{.*\}\}$/s.exec(text)![1]!;
        assert.equal(JSON.parse(text).sequence, sequence);
        if (type === "payment.created") {
          const { status, amount_captured, completed_at } = JSON.parse(shown);
          assert.deepEqual([status, amount_captured, completed_at], ["pending", 0, null]);
        }
        if (!type.startsWith("payment.") || !texts.has(sequence)) continue;
        assert.equal(shown, texts.get(sequence));
        compared++;
      }
      assert.equal(compared, 1 + REFUNDS);
      const again = await service.pay(body, key);
      assert.equal(again.headers.get("Idempotent-Replayed"), "true");
      assert.equal(again.text, created.text);
    });
  }
  await t.step("each reads a bounded number of rows", async () => {
    // An update leaves the index entries of the former version, which a scan still returns.
    await removeDeletedRows(service.sql, "pay.payments");
    await using connection = await openSession(service.sql);
    const ids = await connection`select environment_id, id from pay.events`;
    for (const { environment_id, id } of ids) {
      const { rows } = await rowsRead(
        connection,
        `select pay_internal.event_body(e) from pay.events e
         where e.environment_id = $1 and e.id = $2`,
        [environment_id, id],
        // Tables of a few rows are read whole otherwise.
        () => connection`set local enable_seqscan = off`,
      );
      assert.ok(rows <= MAX_ROWS, `${rows} rows were read for ${id}`);
    }
  });
});

serviceCase("every event shows the transfer byte for byte as it was", async (_, service) => {
  await service.pay({ amount: 5000, ...APPROVED.card });
  const created = await service.call("POST", TRANSFERS, {
    body: {
      ...{ amount: 1000, currency: "EUR", metadata: { order: "7" } },
      destination: { iban: "DE89370400440532013000", holder_name: "Ada Lovelace" },
    },
    idempotency_key: "transfer",
  });
  assert.equal(created.status, 201, created.text);
  const ended = await service.call(
    "POST",
    `/api-v1-sandbox/transfers/${created.body.id}/advance`,
    { body: { to: "failed" } },
  );
  assert.equal(ended.status, 200, ended.text);
  const { body } = await service.call("GET", `${EVENTS}?transfer_id=${created.body.id}`);
  const shown = body.data.map(({ data }: { data: { object: unknown } }) =>
    JSON.stringify(data.object)
  );
  assert.equal(shown[0], ended.text);
  assert.ok(shown.includes(created.text));
});

/** Changes of the past by the trigger that refuses them. */
const CHANGES: Record<string, string[]> = {
  payments_text_stays: [
    "update pay.payments set body = 'x'",
    "update pay.payments set body = 'x', sequence = 1",
    "update pay.payments set sequence = 1",
  ],
  transfers_text_stays: ["update pay.transfers set body = 'x'"],
  events_stay: [
    "update pay.events set before = '{}'",
    "update pay.events set object = '{}'",
    "update pay.events set created_at = now()",
  ],
  idempotency_keys_stay: [
    "update pay.idempotency_keys set body = '{}', subject_id = null, sequence = null",
    "update pay.idempotency_keys set sequence = 1",
    "update pay.idempotency_keys set status = 200",
    "update pay.idempotency_keys set fingerprint = sha256('')",
  ],
};

serviceCase("no update changes the past", async (t, service) => {
  const { sql } = service;
  const idempotency_key = "kept";
  await service.pay({ outcome: "success" }, { idempotency_key });
  const transfer = { amount: 5, currency: "EUR", destination: { iban: "DE89370400440532013000" } };
  await service.call("POST", TRANSFERS, { body: transfer });
  const [{ is_superuser }] = await sql`show is_superuser` as unknown as [{ is_superuser: string }];
  assert.equal(is_superuser, "on");
  for (const [constraint_name, statements] of Object.entries(CHANGES)) {
    for (const statement of statements) {
      await t.step(`${statement} is refused`, async () => {
        await assert.rejects(() => sql.unsafe(statement), { code: "23514", constraint_name });
      });
    }
  }
  await t.step("the next sequence has another text", async () => {
    await sql`update pay.payments set body = '{}', sequence = sequence + 1`;
  });
});
