/**
 * The cost of a poll of the dispatcher, as the number of table and index pages that are read. It
 * does not grow with the other pending deliveries, also with plans that were cached while the
 * outbox was empty and never analyzed.
 */

import assert from "node:assert/strict";
import { serviceCase } from "../support/service/service_case.ts";
import { fillSandbox } from "../support/database/filled_sandbox.ts";
import { pagesRead, rowsRead } from "../support/database/pages_read.ts";

const PAYMENTS = 20_000;
/** The number of polls after which a connection uses its cached plan. */
const POLLS = 8;
/** The number of deliveries of a poll. */
const EACH = 16;
/**
 * About fifty pages for each recorded and leased delivery. Reading all pending ones takes 4 500.
 */
const MAX_PAGES = 1_500;
const ENDPOINT = `whe_${"1".repeat(26)}`;
/** As many as an environment can have slots for, and how many deliveries they may lease together. */
const ENDPOINTS = 64;
const OF_ALL = 64;
/** Rows for each endpoint. If each read all that one alone may lease, it would be 4 300. */
const MAX_ROWS_EACH = 256;

interface Leased {
  environment_id: string;
  id: string;
  attempt: number;
  leased_until: string;
}

serviceCase("pay.poll_deliveries() reads few pages with a large backlog", async (_t, service) => {
  const { environment_id } = service.key;
  const connection = await service.sql.reserve();
  const parameters = (leased: readonly Leased[]) => {
    const ended = leased.map((delivery) => ({
      ...delivery,
      outcome: "delivered",
      next_attempt_at: null,
      record: "{}",
    }));
    return [JSON.stringify({ ended, released: [], log_entries: [] }), String(EACH)];
  };
  const poll = `select environment_id, id, attempt, leased_until from pay.poll_deliveries(
    p_results => $1::text, p_capacity => '{}', p_limit => $2::int, p_per_endpoint => $2::int,
    p_per_environment => $2::int, p_per_account => $2::int, p_poison_ahead => '{}', p_at => now(),
    p_leased_until => now() + interval '25 s')`;
  const take = (leased: readonly Leased[]) =>
    connection.unsafe<Leased[]>(poll, parameters(leased), { prepare: true });
  try {
    const leased_until = new Date().toISOString();
    const nobodys = [{ environment_id, id: "whd_none", attempt: 1, leased_until }];
    for (let i = 0; i < POLLS; i++) assert.equal((await take(nobodys)).length, 0);
    await fillSandbox(service.sql, environment_id, PAYMENTS);
    await service.sql`delete from pay.webhook_deliveries`;
    await service.sql`
      insert into pay.webhook_endpoints (environment_id, id, slot, url, events, status, secrets,
        revision, created_at, body)
      values (${environment_id}, ${ENDPOINT}, 0, 'https://example.com/', '{*}', 'enabled', '[]', 1,
        now(), '{}')`;
    await service.sql`
      insert into pay.webhook_deliveries (environment_id, id, event_id, event_type, endpoint_id,
        subject_id, sequence, status, next_attempt_at, created_at)
      select e.environment_id, 'whd_' || substr(e.id, 5), e.id, e.type, ${ENDPOINT}, e.subject_id,
        e.sequence, 'pending', now() - interval '1 hour', e.created_at
      from pay.events e`;
    let leased: Leased[] = [];
    for (let i = 0; i < POLLS; i++) leased = await take(leased);
    assert.equal(leased.length, EACH);
    const pages = await pagesRead(connection, poll, parameters(leased));
    console.log(`${pages} pages for a poll of ${EACH}`);
    assert.ok(pages <= MAX_PAGES, `${pages} pages were read`);
  } finally {
    connection.release();
  }
});

serviceCase("pay.poll_deliveries() reads few rows of many endpoints", async (_t, service) => {
  const { sql, key: { environment_id } } = service;
  await fillSandbox(sql, environment_id, 100);
  await sql`delete from pay.webhook_deliveries`;
  await sql`
    insert into pay.webhook_endpoints (environment_id, id, slot, url, events, status, secrets,
      revision, created_at, body)
    select ${environment_id}, 'whe_' || lpad(n::text, 26, '0'), n, 'https://example.com/', '{*}',
      'enabled', '[]', 1, now(), '{}'
    from generate_series(0, ${ENDPOINTS - 1}) n`;
  await sql`
    insert into pay.webhook_deliveries (environment_id, id, event_id, event_type, endpoint_id,
      subject_id, sequence, status, next_attempt_at, created_at)
    select e.environment_id, 'whd_' || md5(t.id || e.id), e.id, e.type, t.id, e.subject_id,
      e.sequence, 'pending', now() - interval '1 hour', e.created_at
    from pay.events e cross join pay.webhook_endpoints t`;
  await sql`analyze pay.webhook_deliveries`;
  const connection = await sql.reserve();
  try {
    const poll = `select pay.poll_deliveries(p_results => '{}', p_capacity => '{}',
      p_limit => 1024, p_per_endpoint => $1::int, p_per_environment => $1::int,
      p_per_account => $1::int, p_poison_ahead => '{}', p_at => now(),
      p_leased_until => now() + interval '25 s')`;
    const { rows } = await rowsRead(connection, poll, [String(OF_ALL)]);
    assert.ok(rows <= ENDPOINTS * MAX_ROWS_EACH, `${rows} rows were read`);
    const leased = await connection.unsafe(poll, [String(OF_ALL)]);
    assert.ok(leased.length >= OF_ALL, `${leased.length} were leased`);
  } finally {
    connection.release();
  }
});
