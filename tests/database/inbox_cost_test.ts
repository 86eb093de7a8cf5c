/**
 * The cost of a read of an inbox, as the number of table and index pages that are read. It does not
 * grow with the rest of the inbox, also with plans that were cached while the tables were empty and
 * never analyzed.
 */

import assert from "node:assert/strict";
import { parseApiKey } from "../../shared/core/api_key.ts";
import { fillSandbox } from "../support/database/filled_sandbox.ts";
import { pagesRead, removeDeletedRows } from "../support/database/pages_read.ts";
import { serviceCase } from "../support/service/service_case.ts";

const PAYMENTS = 20_000;
/** The number of reads after which a connection uses its cached plan. */
const READS = 8;
const ENDPOINT = `whe_${"1".repeat(26)}`;
/** A read that adds 1 000 deliveries to the inbox: about thirty pages for each. */
const MAX_PAGES_TO_FILL = 50_000;
/** About thirty pages for each delivery of a read. Reading all 40 000 takes some 5 000. */
const MAX_PAGES = 400;

serviceCase("pay.read_inbox() reads few pages of a large inbox", async (_t, service) => {
  const { environment_id, text } = service.key;
  const connection = await service.sql.reserve();
  const request = JSON.stringify([{
    n: 1,
    key_hash: parseApiKey(text)!.hash,
    scope: null,
    at: new Date().toISOString(),
  }]);
  const read = `select outcome, body from pay.read_inbox(
    p_request => $1::text, p_id => $2::text, p_after => $3::text::bigint, p_most => 10)`;
  const page = async (after: number | null) => {
    const parameters = [request, ENDPOINT, after === null ? null : String(after)];
    const [row] = await connection.unsafe(read, parameters, { prepare: true });
    return row!.outcome === "ok" ? JSON.parse(row!.body) : row!.outcome;
  };
  try {
    for (let i = 0; i < READS; i++) assert.equal(await page(null), "not_found");
    await fillSandbox(service.sql, environment_id, PAYMENTS);
    await service.sql`delete from pay.webhook_deliveries`;
    await service.sql`
      insert into pay.webhook_endpoints (environment_id, id, slot, delivery, events, status, secrets,
        revision, created_at, body)
      values (${environment_id}, ${ENDPOINT}, 0, 'inbox', '{*}', 'enabled', '[]', 1, now(), '{}')`;
    await service.sql`
      insert into pay.webhook_deliveries (environment_id, id, event_id, event_type, endpoint_id,
        subject_id, sequence, status, next_attempt_at, created_at)
      select e.environment_id, 'whd_' || substr(e.id, 5), e.id, e.type, ${ENDPOINT}, e.subject_id,
        e.sequence, 'pending', now() - interval '1 hour', e.created_at
      from pay.events e`;
    const filling = await pagesRead(connection, read, [request, ENDPOINT, null]);
    let position = 0;
    for (let i = 0; i < READS; i++) {
      const { data, ...found } = await page(position);
      assert.equal(data.length, 10);
      position = found.position;
    }
    // Leaves nothing to add, so that the rest is the cost of the read.
    await service.sql`delete from pay.webhook_deliveries where status = 'pending'`;
    await removeDeletedRows(service.sql, "pay.webhook_deliveries");
    const pages = await pagesRead(connection, read, [request, ENDPOINT, String(position)]);
    console.log(`${filling} pages to add 1 000 deliveries, ${pages} to read and acknowledge 10`);
    assert.ok(filling <= MAX_PAGES_TO_FILL, `${filling} pages were read`);
    assert.ok(pages <= MAX_PAGES, `${pages} pages were read`);
  } finally {
    connection.release();
  }
});
