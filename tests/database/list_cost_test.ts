/**
 * The cost of a page of payments and of deliveries, as the number of table and index pages that are
 * read. The statement starts at its place in the primary key at any depth, also with a cached plan.
 */

import assert from "node:assert/strict";
import { parseApiKey } from "../../shared/core/api_key.ts";
import { LIST } from "../../shared/store/list_statement.ts";
import { serviceCase } from "../support/service/service_case.ts";
import { fillSandbox } from "../support/database/filled_sandbox.ts";
import { pagesRead } from "../support/database/pages_read.ts";

const PAYMENTS = 5000;
/** The number of calls after which a connection uses its cached plan. */
const CALLS = 8;
/** Reading all newer rows from the middle would take many times this number. */
const MAX_PAGES = 40;
/** An item takes an index probe or two. Reading all pending deliveries takes thousands. */
const MAX_PAGES_OF_BLOCKED = 800;
const ENDPOINT = `whe_${"1".repeat(26)}`;

serviceCase(
  "pay.list() of payments reads as little for a deep page as for the first",
  async (t, service) => {
    await fillSandbox(service.sql, service.key.environment_id, PAYMENTS);
    const [middle] = await service.sql<{ id: string }[]>`
    select id from pay.payments where environment_id = ${service.key.environment_id}
    order by id offset ${PAYMENTS / 2} limit 1`;
    const connection = await service.sql.reserve();
    try {
      for (const [name, cursor] of [["the first", null], ["the middle", middle!.id]] as const) {
        await t.step(`${name} page`, async () => {
          const request = JSON.stringify([{
            n: 1,
            key_hash: parseApiKey(service.key.text)!.hash,
            scope: "payments:read",
            at: new Date(),
            kind: "payments",
            limit: 10,
            starting_after: cursor,
          }]);
          const read = () => pagesRead(connection, LIST, [request]);
          for (let i = 0; i < CALLS; i++) await read();
          const pages = await read();
          assert.ok(pages <= MAX_PAGES, `${pages} pages were read`);
        });
      }
    } finally {
      connection.release();
    }
  },
);

serviceCase("pay.list() finds the blocker of each delivery by its index", async (_, service) => {
  const { environment_id, text } = service.key;
  const connection = await service.sql.reserve();
  const request = JSON.stringify([{
    n: 1,
    key_hash: parseApiKey(text)!.hash,
    scope: "webhooks:read",
    at: new Date(),
    kind: "webhook_deliveries",
    limit: 100,
    filters: { endpoint_id: ENDPOINT },
  }]);
  try {
    // Caches the plans while the outbox is empty.
    for (let i = 0; i < CALLS; i++) await pagesRead(connection, LIST, [request]);
    await fillSandbox(service.sql, environment_id, PAYMENTS);
    await service.sql`delete from pay.webhook_deliveries`;
    await service.sql`
      insert into pay.webhook_deliveries (environment_id, id, event_id, event_type, endpoint_id,
        subject_id, sequence, status, next_attempt_at, created_at)
      select e.environment_id, 'whd_' || substr(e.id, 5), e.id, e.type, ${ENDPOINT}, e.subject_id,
        e.sequence, 'pending', now() - interval '1 hour', e.created_at
      from pay.events e`;
    const [{ data }] = await connection.unsafe(LIST, [request], { prepare: true }) as [
      { data: string },
    ];
    const blocked = JSON.parse(`[${data}]`).filter((one: object) => "blocked_by" in one);
    assert.ok(blocked.length >= 40, `${blocked.length} are blocked`);
    const pages = await pagesRead(connection, LIST, [request]);
    console.log(`${pages} pages for 100 deliveries`);
    assert.ok(pages <= MAX_PAGES_OF_BLOCKED, `${pages} pages were read`);
  } finally {
    connection.release();
  }
});
