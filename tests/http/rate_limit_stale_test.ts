/**
 * A request counts once against the rate limit, even if the service decides it twice because
 * another change of the resource came between its load and its commit.
 */

import assert from "node:assert/strict";
import { ENDPOINTS } from "../support/webhook/recording_receiver.ts";
import type { TestService } from "../support/service/service.ts";
import { PAYMENTS, serviceCase } from "../support/service/service_case.ts";

/** Requests a second. A window lasts two seconds. */
const RATE = 5;
const QUOTA = 2 * RATE;
/** The start of a window. */
const START = Date.parse("2030-01-01T00:00:00Z");

/** A change of a resource: its table, its request, and the concurrent change of another request. */
interface Change {
  table: "payments" | "webhook_endpoints";
  method: string;
  path: (id: string) => string;
  meanwhile: string;
}

const ENDPOINT = {
  table: "webhook_endpoints",
  meanwhile: "revision = revision + 1",
} as const;
const CHANGES: Change[] = [
  { ...ENDPOINT, method: "PUT", path: (id) => `${ENDPOINTS}/${id}` },
  { ...ENDPOINT, method: "POST", path: (id) => `${ENDPOINTS}/${id}/rotate_secret` },
  { ...ENDPOINT, method: "DELETE", path: (id) => `${ENDPOINTS}/${id}` },
  {
    table: "payments",
    method: "POST",
    path: (id) => `${PAYMENTS}/${id}/cancel`,
    meanwhile: `sequence = sequence + 1, body = replace(body,
      '"sequence":' || sequence, '"sequence":' || sequence + 1)`,
  },
];

/** Returns once the request's commit waits for the row, so its load has finished. */
async function untilCommitWaits({ sql }: TestService): Promise<void> {
  for (;;) {
    const waiting = await sql`select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`;
    if (waiting.length > 0) return;
  }
}

serviceCase("the last request of a rate counts once, though decided twice", async (t, service) => {
  const makeOne: Record<Change["table"], () => Promise<string>> = {
    payments: async () => (await service.make({ outcome: "pending" })).body.id,
    webhook_endpoints: async () => {
      const body = { url: "http://127.0.0.1:47999/hook" };
      return (await service.call("POST", ENDPOINTS, { body })).body.id;
    },
  };
  for (const [i, { table, method, path, meanwhile }] of CHANGES.entries()) {
    await t.step(`${method} ${path("{id}")} counts once`, async () => {
      await service.setClock(START + i * 20_000);
      const id = await makeOne[table]();
      await service.setClock(START + i * 20_000 + 10_000);
      for (let n = 1; n < QUOTA; n++) await service.call("GET", PAYMENTS);
      const changed = await service.sql.begin(async (sql) => {
        await sql.unsafe(`update pay.${table} set ${meanwhile} where id = '${id}'`);
        const body = method === "DELETE" ? {} : { body: {} };
        const response = service.call(method, path(id), body);
        await Promise.race([untilCommitWaits(service), response]);
        return { response };
      });
      const response = await changed.response;
      assert.equal(response.status, 200, response.text);
      assert.equal(response.headers.get("RateLimit"), `"default";r=0;t=2`);
      const next = await service.call("GET", PAYMENTS);
      assert.equal(next.status, 429);
    });
  }
}, { rate_limit: RATE });
