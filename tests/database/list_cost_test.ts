/**
 * The cost of a page of payments, as the number of table and index pages that are read. The
 * statement starts at its place in the primary key at any depth, also with a cached plan.
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
const MAX_PAGES = 60;

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
          let pages = Infinity;
          const request = JSON.stringify([{
            n: 1,
            key_hash: parseApiKey(service.key.text)!.hash,
            scope: "payments:read",
            at: new Date(),
            kind: "payments",
            limit: 10,
            starting_after: cursor,
          }]);
          for (let i = 0; i < CALLS; i++) {
            pages = await pagesRead(connection, LIST, [request]);
          }
          assert.ok(pages <= MAX_PAGES, `${pages} pages were read`);
        });
      }
    } finally {
      connection.release();
    }
  },
);
