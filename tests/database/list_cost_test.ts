/**
 * What a page of payments costs, in pages of tables and indexes that are read: it begins at its place
 * in the primary key, however deep, also with the plan that a connection keeps.
 */

import assert from "node:assert/strict";
import { parseApiKey } from "../../shared/core/api_key.ts";
import { LIST } from "../../shared/store/list_statement.ts";
import { serviceCase } from "../support/service/service_case.ts";
import { fillSandbox } from "../support/database/filled_sandbox.ts";
import { pagesRead } from "../support/database/pages_read.ts";

const PAYMENTS = 5000;
/** Calls after which a connection has decided how to plan. */
const CALLS = 8;
/** Reading all that is newer than the middle would be many times this. */
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
