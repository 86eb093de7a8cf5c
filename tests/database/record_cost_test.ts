/**
 * The cost of the record of an operation, and of a page of the addresses that a chain is read for,
 * as the number of table and index pages that are read. It does not grow with the payments,
 * operations and provider events of the service, also with plans that were cached while the tables
 * were empty and never analyzed.
 */

import assert from "node:assert/strict";
import type { Database } from "../../shared/store/database.ts";
import { ProviderStore } from "../../shared/store/provider_store.ts";
import { addAccount, completion, reserve } from "../support/database/provider_flow.ts";
import { pagesRead } from "../support/database/pages_read.ts";
import { serviceCase } from "../support/service/service_case.ts";

const ROWS = 20_000;
/** The number of records after which a connection uses its cached plan. */
const RECORDS = 8;
/** Reading all rows of a table once takes more than 300 pages, an index of it more than 150. */
const MAX_PAGES = 250;

serviceCase("pay.record() reads few pages of many rows", async (_t, service) => {
  const { sql, live } = service;
  const account_id = await addAccount(sql, live.environment_id);
  const connection = await sql.reserve();
  try {
    let pages = 0;
    const store = new ProviderStore(
      {
        async attempt(text: string, parameters: (string | null)[]) {
          pages = await pagesRead(connection, text, parameters);
          return [{ n: 1, outcome: "recorded", is_settled: true, deliveries: "0" }];
        },
      } as unknown as Database,
    );
    const record = async () => {
      await store.record([completion(await reserve(sql, live))]);
      return pages;
    };
    for (let i = 0; i < RECORDS; i++) await record();
    await sql`
      insert into pay.provider_events (environment_id, account_id, reference, op, state, amount_minor,
        currency, happened_at, received_at, body, outcome, handled_at)
      select ${live.environment_id}, ${account_id}, 'pi_' || n || ':succeeded', 'authorize',
        'succeeded', 1, 'EUR', now(), now(), '{}', 'ignored', now()
      from generate_series(1, ${ROWS}) n`;
    await sql`
      insert into pay.payments (environment_id, id, status, amount_minor, amount_refunded, currency,
        method_kind, sequence, created_at, updated_at, body)
      select ${live.environment_id}, 'pay_' || n, 'pending', 1, 0, 'EUR', 'card', 1, now(), now(), '{}'
      from generate_series(1, ${ROWS}) n`;
    await sql`
      insert into pay.provider_operations (environment_id, id, account_id, connector, op, subject_id,
        amount_minor, currency, request, state, attempts, created_at, first_sent_at,
        next_attempt_at, settled_at, may_repeat, api_key_id, request_id, decline_is_error)
      select ${live.environment_id}, 'pc_' || n, ${account_id}, 'stripe', 'authorize', 'pay_' || n,
        1, 'EUR', '{}', case n % 2 when 0 then 'pending' else 'settled' end, 1, now(), now(),
        case n % 2 when 0 then now() end, case n % 2 when 1 then now() end, true, 'key_1', 'req_1',
        false
      from generate_series(1, ${ROWS}) n`;
    const read = await record();
    console.log(`${read} pages for a record`);
    assert.ok(read <= MAX_PAGES, `${read} pages were read`);
  } finally {
    connection.release();
  }
});

serviceCase("pay.store_provider_events() reads few of many operations", async (t, service) => {
  const { sql, live } = service;
  const account_id = await addAccount(sql, live.environment_id);
  const fill = (from: number, to: number, reference: string) =>
    sql.unsafe(
      `insert into pay.provider_operations (environment_id, id, account_id, connector, op, subject_id,
        amount_minor, currency, request, state, attempts, created_at, settled_at, may_repeat,
        api_key_id, request_id, decline_is_error, provider_reference)
      select $1, 'pc_' || n, $2, 'stripe', 'authorize', 'pay_' || n, 1, 'EUR', '{}', 'settled', 1,
        now(), now(), true, 'key_1', 'req_1', true, ${reference}
      from generate_series(${from}, ${to}) n`,
      [live.environment_id, account_id],
    );
  const connection = await sql.reserve();
  let events = 0;
  const store = (provider_reference: string | null) => {
    const event = { reference: `e_${++events}`, op: "authorize", state: "succeeded" };
    const money = { amount_minor: 1, currency: "EUR", at: new Date().toISOString() };
    return pagesRead(connection, "select pay.store_provider_events($1::text, $2::text)", [
      account_id,
      JSON.stringify([{ ...event, ...money, provider_reference }]),
    ]);
  };
  try {
    for (let i = 0; i < RECORDS; i++) await store("pi_1");
    // Statistics of a time at which few operations had an object of their own.
    await fill(1, 100, "'pi_1'");
    await sql`analyze pay.provider_operations`;
    await fill(101, ROWS, "'pi_' || n");
    for (const provider_reference of [`pi_${ROWS}`, "unknown", null]) {
      await t.step(`for an event of ${provider_reference}`, async () => {
        const pages = await store(provider_reference);
        assert.ok(pages <= MAX_PAGES, `${pages} pages were read`);
      });
    }
  } finally {
    connection.release();
  }
});

serviceCase("an import reads few pages for each entry at its end", async (t, service) => {
  const { sql, live } = service;
  const account_id = await addAccount(sql, live.environment_id);
  const [file, before] = ["f".repeat(64), "e".repeat(64)];
  await sql`
    insert into pay.bank_files (environment_id, account_id, sha256, name, imported_at)
    values (${live.environment_id}, ${account_id}, ${file}, 'f', now() - interval '1 day')`;
  const connection = await sql.reserve();
  const STEPS = {
    "pay.end_bank_file()": () =>
      pagesRead(connection, "select pay.end_bank_file($1::text, $2::text, $3::text)", [
        account_id,
        file,
        '{ "kind": "camt.054" }',
      ]),
    "pay.bank_file_state()": () =>
      pagesRead(connection, "select * from pay.bank_file_state($1::text, $2::text)", [
        account_id,
        file,
      ]),
  };
  const fill = (from: number, sha256: string) =>
    sql.unsafe(
      `insert into pay.bank_entries (environment_id, account_id, id, sha256, details_sha256, booked_on,
        amount_minor, currency, seen_in)
      select $1, $2, 'e' || n, $3, $3, now(), 1, 'EUR', 2
      from generate_series(${from}, ${from + ROWS - 1}) n`,
      [live.environment_id, account_id, sha256],
    );
  try {
    for (const step of Object.values(STEPS)) {
      for (let i = 0; i < RECORDS; i++) await step();
    }
    await fill(ROWS + 1, before);
    await fill(1, file);
    await sql`
      insert into pay.provider_events (environment_id, account_id, reference, op, state, amount_minor,
        currency, happened_at, received_at, body)
      select ${live.environment_id}, ${account_id}, 'e' || n || ':1', 'authorize', 'succeeded', 1,
        'EUR', now(), now(), '{}'
      from generate_series(1, ${ROWS}) n`;
    for (const statistics of ["without", "with"]) {
      if (statistics === "with") await sql`analyze pay.bank_entries, pay.provider_events`;
      for (const [name, step] of Object.entries(STEPS)) {
        await t.step(`${name} ${statistics} statistics`, async () => {
          const pages = await step();
          assert.ok(pages <= ROWS * PAGES_EACH, `${pages} pages were read`);
        });
      }
    }
    const [total] = await sql`select provider_minor::int from pay.provider_totals`;
    assert.deepEqual({ ...total }, { provider_minor: 2 * ROWS });
    const [state] = await connection`select * from pay.bank_file_state(${account_id}, ${file})`;
    assert.deepEqual({ ...state }, { waiting: String(ROWS), booked: "0", exceptions: "0" });
  } finally {
    connection.release();
  }
});

/** Addresses of a page, and the pages that the lookup of one address reads. */
const ADDRESSES = 100;
const PAGES_EACH = 15;

serviceCase("pay.watched_deposits() reads few pages for each address", async (_t, service) => {
  const { sql, live } = service;
  const settings = { xpub: "xpub" };
  const account_id = await addAccount(sql, live.environment_id, { connector: "evm", settings });
  const connection = await sql.reserve();
  try {
    const read = () =>
      pagesRead(
        connection,
        "select * from pay.watched_deposits($1::text, null, $2::text::integer)",
        [account_id, String(ADDRESSES)],
      );
    for (let i = 0; i < RECORDS; i++) await read();
    await sql`
      insert into pay.payments (environment_id, id, status, amount_minor, amount_refunded, currency,
        method_kind, sequence, created_at, updated_at, body)
      select ${live.environment_id}, 'pay_' || n, 'pending', 1, 0, 'USDC', 'stablecoin', 1, now(),
        now(), '{}'
      from generate_series(1, ${ROWS}) n`;
    await sql`
      insert into pay.provider_operations (environment_id, id, account_id, connector, op, subject_id,
        amount_minor, currency, request, state, attempts, created_at, settled_at, may_repeat,
        api_key_id, request_id, decline_is_error, provider_reference)
      select ${live.environment_id}, 'pc_' || n, ${account_id}, 'evm', 'authorize', 'pay_' || n, 1,
        'USDC', '{}', 'settled', 1, now(), now(), true, 'key_1', 'req_1', true, '0x' || n
      from generate_series(1, ${ROWS}) n`;
    await sql`
      insert into pay.provider_events (environment_id, account_id, reference, op, state, subject_id,
        amount_minor, currency, happened_at, received_at, body, outcome, handled_at)
      select ${live.environment_id}, ${account_id}, '0x' || n || ':opened', 'authorize', 'pending',
        'pay_' || n, 1, 'USDC', now(), now(), '{}', 'applied', now()
      from generate_series(1, ${ROWS}) n`;
    await sql`
      insert into pay.deposit_addresses (environment_id, account_id, operation_id, payment_id, xpub_index,
        expires_at, watch_until)
      select ${live.environment_id}, ${account_id}, 'pc_' || n, 'pay_' || n, n, now(),
        now() + interval '1 day'
      from generate_series(1, ${ROWS}) n`;
    const pages = await read();
    console.log(`${pages} pages for ${ADDRESSES} addresses`);
    assert.ok(pages <= ADDRESSES * PAGES_EACH, `${pages} pages were read`);
  } finally {
    connection.release();
  }
});
