/**
 * Pages that end before they are full (contract §5): the next page starts after the last row read,
 * which need not match the filters, until `has_more` is false. Such pages are read in a queue of
 * their own, so no other request waits for them.
 */

import assert from "node:assert/strict";
import { generateApiKey } from "../../shared/core/api_key.ts";
import { fillLists } from "../support/database/filled_lists.ts";
import {
  APPROVED,
  assertRefused,
  LEDGER,
  PAYMENTS,
  serviceCase,
} from "../support/service/service_case.ts";

const V1 = "/api-v1-payments/v1";
/** Several times `pay_internal.page_rows()`. */
const ROWS = 7_000;
/** Lists without a match, and the number of their pages: one for each 2 000 items that are read. */
const LISTS: [path: string, pages: number][] = [
  [`${PAYMENTS}?currency=GBP`, 4],
  [`${PAYMENTS}?method_kind=swift&status=completed`, 4],
  // Half of the rows have this reference, and a third are declined.
  [`${PAYMENTS}?reference=often&currency=GBP`, 2],
  [`${PAYMENTS}?status=declined&currency=GBP`, 2],
  [`${PAYMENTS}?status=pending`, 1],
  [`${V1}/transfers?currency=GBP`, 4],
  [`${V1}/events?type=payment.failed`, 4],
  [`${V1}/webhook_deliveries?status=failed`, 4],
  // Each row is a movement, which has two entries.
  [`${LEDGER}?account=chargebacks`, 8],
];

serviceCase("a list without matches continues over empty pages", async (t, service) => {
  await fillLists(service.sql, service.key.environment_id, { rows: ROWS });
  for (const [path, expected] of LISTS) {
    await t.step(`GET ${path} → ${expected} empty pages`, async () => {
      let pages = 0;
      for (let cursor = ""; pages <= expected;) {
        const { status, text, body } = await service.call("GET", `${path}&limit=100${cursor}`);
        assert.equal(status, 200, text);
        assert.deepEqual(body.data, []);
        assert.equal(body.has_more, body.next_cursor !== null);
        pages++;
        if (!body.has_more) break;
        cursor = `&starting_after=${body.next_cursor}`;
      }
      assert.equal(pages, expected);
    });
  }
  await t.step("a cursor of a deleted row is refused like an unknown one", async () => {
    const path = `${PAYMENTS}?currency=GBP`;
    const { next_cursor } = (await service.call("GET", path)).body;
    await service.sql`delete from pay.payments where id = ${next_cursor}`;
    const response = await service.call("GET", `${path}&starting_after=${next_cursor}`);
    assertRefused(response, 400, "invalid_parameter", "starting_after");
  });
});

serviceCase("slow list reads delay no other request", async (_t, service) => {
  await service.pay();
  const read = () => service.call("GET", `${V1}/transfers?currency=EUR`);
  await read();
  const holder = await service.sql.reserve();
  try {
    await holder`begin`;
    await holder`lock table pay.transfers in access exclusive mode`;
    // More reads than the other queue has connections.
    let returned = 0;
    const reads = Array.from({ length: 12 }, async () => {
      const { status } = await read();
      returned++;
      return status;
    });
    const { body } = await service.pay(APPROVED.card);
    assert.equal((await service.call("GET", `${PAYMENTS}/${body.id}`)).status, 200);
    assert.equal((await service.call("GET", PAYMENTS)).body.data.length, 2);
    assert.equal((await service.call("GET", `${PAYMENTS}?status=pending`)).body.data.length, 1);
    assert.equal(returned, 0);
    await holder`rollback`;
    for (const status of await Promise.all(reads)) assert.ok(status === 200 || status === 503);
    assert.equal((await read()).status, 200);
  } finally {
    holder.release();
  }
});

serviceCase("reads with unknown keys leave room for valid keys", async (_t, service) => {
  const read = async (key: string) => {
    const path = `${V1}/transfers?currency=EUR`;
    return (await service.call("GET", path, { key })).status;
  };
  const fresh = await service.issueKey(service.other.environment_id);
  const holder = await service.sql.reserve();
  try {
    await holder`begin`;
    await holder`lock table pay.transfers in access exclusive mode`;
    const waiting = [read(service.key.text)];
    // More reads than one tenant may have waiting. Each is refused while the first read still runs.
    const refused = Array.from({ length: 60 }, () => read(generateApiKey("test")));
    for (const status of await Promise.all(refused)) assert.equal(status, 401);
    // The service has not seen this key before, so it does not know its tenant.
    waiting.push(read(fresh.text));
    await holder`rollback`;
    assert.deepEqual(await Promise.all(waiting), [200, 200]);
  } finally {
    holder.release();
  }
});
