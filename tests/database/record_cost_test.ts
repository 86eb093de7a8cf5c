/**
 * The cost of the record of a call, as the number of table and index pages that are read. It does not
 * grow with the calls and facts of the environment, also with plans that were cached while the tables
 * were empty and never analyzed.
 */

import assert from "node:assert/strict";
import { createProviderStore } from "../../shared/store/provider_store.ts";
import { addAccount, claim, completion } from "../support/database/provider_flow.ts";
import { pagesRead } from "../support/database/pages_read.ts";
import { serviceCase } from "../support/service/service_case.ts";

const FACTS = 20_000;
/** The number of records after which a connection uses its cached plan. */
const RECORDS = 8;
/** Reading all facts once takes more than 500 pages. */
const MAX_PAGES = 400;

serviceCase("pay.record() reads few pages of many facts and calls", async (_t, service) => {
  const { sql, live } = service;
  const account_id = await addAccount(sql, live.environment_id);
  const connection = await sql.reserve();
  try {
    let pages = 0;
    const store = createProviderStore(
      {
        async attempt(text: string, parameters: (string | null)[]) {
          pages = await pagesRead(connection, text, parameters);
          return [{ n: 1, outcome: "recorded", is_settled: true, deliveries: "0" }];
        },
      } as unknown as Parameters<typeof createProviderStore>[0],
    );
    const record = async () => {
      await store.record([completion(await claim(sql, live))]);
      return pages;
    };
    for (let i = 0; i < RECORDS; i++) await record();
    await sql`
      insert into pay.provider_facts (environment_id, account_id, reference, op, state, amount_minor,
        currency, happened_at, received_at, body, outcome, handled_at)
      select ${live.environment_id}, ${account_id}, 'pi_' || n || ':succeeded', 'authorize',
        'succeeded', 1, 'EUR', now(), now(), '{}', 'ignored', now()
      from generate_series(1, ${FACTS}) n`;
    const read = await record();
    console.log(`${read} pages for a record`);
    assert.ok(read <= MAX_PAGES, `${read} pages were read`);
  } finally {
    connection.release();
  }
});
