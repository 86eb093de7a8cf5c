/**
 * Two environments × every route × every kind of id. A foreign id gets the same response as an
 * unknown one, and the other environment does not change. The routes are read from the service's
 * tables, so a new route is covered.
 */

import assert from "node:assert/strict";
import { memberOf, namesOf } from "../../shared/schema/requirement.ts";
import { ADDRESSES } from "../../tools/generate/openapi/operations.ts";
import type { TestResponse, TestService } from "../support/service/service.ts";
import { CATALOGUE } from "../support/catalogue/requests.ts";
import { fill, firstValues, keep } from "../support/catalogue/run_catalogue.ts";
import { bodyOf, ROUTES } from "../support/http/routes.ts";
import { contentOf } from "../support/database/environment_content.ts";
import { LEDGER, SANDBOX, serviceCase } from "../support/service/service_case.ts";

const V1 = "/api-v1-payments/v1";

/** Tables of the operator, and those of providers, which these requests do not reach. */
const WITHOUT_ROWS = [
  "archives",
  "bank_entries",
  "bank_exports",
  "bank_files",
  "bank_orders",
  "chain_payouts",
  "deposit_addresses",
  "invariant_breaches",
  "provider_accounts",
  "provider_cursors",
  "provider_events",
  "provider_methods",
  "provider_totals",
  "sandbox_storage",
  "transcript_lines",
];

serviceCase("ids and rows of another environment", async (t, service) => {
  const foreign = await fillOther(service);
  await service.sql`select pay.write_search_words()`;
  const before = await contentOf(service, service.other.environment_id);

  await t.step("every table of the other environment has rows", () => {
    const empty = Object.entries(before).filter(([, rows]) => rows.length === 0);
    assert.deepEqual(empty.map(([table]) => table).sort(), WITHOUT_ROWS);
  });
  // The id of a customer is the merchant's own, and any id is one.
  const with_id = ROUTES.filter(([, path]) => path.includes(":") && !path.includes("/customers/"));
  for (const [method, path] of with_id) {
    for (const [prefix, id] of Object.entries(foreign)) {
      await t.step(`${method} ${path} with a foreign ${prefix}_`, async () => {
        const ask = (id: string) =>
          service.call(method, path.replace(/:\w+/, id), {
            ...(method !== "GET" && { body: bodyOf(method, path) }),
          });
        const response = await ask(id);
        assert.equal(response.status, 404, response.text);
        assertSame(response, id, await ask(unknownOf(prefix)), unknownOf(prefix));
        assert.ok(!response.text.includes(id));
      });
    }
  }
  const filters = filtersBy(Object.keys(foreign));
  for (const [path, parameter, prefix] of filters) {
    await t.step(`GET ${path}?${parameter}= with a foreign id`, async () => {
      const ask = (id: string) => service.call("GET", `${path}?${parameter}=${id}`);
      const unknown = unknownOf(prefix);
      const response = await ask(foreign[prefix]!);
      assertSame(response, foreign[prefix]!, await ask(unknown), unknown);
      assert.ok(response.status === 400 || response.body.data.length === 0, response.text);
    });
  }
  await t.step("filters take ids of every kind, and cursors too", () => {
    const kinds = new Set(filters.map(([, , prefix]) => prefix));
    // The kind of a delivery, of which an inbox has positions, is only a cursor.
    assert.deepEqual([...kinds].sort(), Object.keys(foreign).sort());
    assert.ok(filters.length >= 25, String(filters.length));
  });
  await t.step("trigger refuses a foreign endpoint and a foreign payment", async () => {
    const own = await service.post(`${V1}/webhook_endpoints`, {
      url: "http://127.0.0.1:47999/hook",
    });
    const payment = await service.make();
    const ask = (endpoint_id: string, payment_id: string) =>
      service.call("POST", `${SANDBOX}/webhooks/trigger`, {
        body: { endpoint_id, payment_id, event: "payment.completed" },
      });
    for (
      const [endpoint_id, payment_id] of [[foreign.whe!, payment.body.id], [own.id, foreign.pay!]]
    ) {
      const response = await ask(endpoint_id, payment_id);
      assert.equal(response.status, 404, response.text);
    }
  });
  for (const [method, path] of ROUTES.filter(([, path]) => !path.includes(":"))) {
    await t.step(`${method} ${path} shows nothing of another environment`, async () => {
      const response = await service.call(method, path, {
        ...(method !== "GET" && { body: bodyOf(method, path) }),
      });
      // The log shows the foreign ids that the requests of this test have sent themselves.
      const ids = path.endsWith("/requests") ? [foreign.req!] : Object.values(foreign);
      for (const id of ids) assert.ok(!response.text.includes(id), response.text);
    });
  }
  await t.step("an idempotency key of another environment is free in this one", async () => {
    const [kept] = await service.sql`select key from pay.idempotency_keys
      where environment_id = ${service.other.environment_id}`;
    const response = await service.pay({ amount: 77 }, { idempotency_key: kept!.key });
    assert.deepEqual([response.status, response.headers.get("Idempotent-Replayed")], [201, null]);
  });
  await t.step("the other environment has not changed", async () => {
    assert.deepEqual(await contentOf(service, service.other.environment_id), before);
  });
}, { request_log: true });

/** The parameters of queries that take ids of one kind only. */
function filtersBy(prefixes: readonly string[]): [path: string, name: string, prefix: string][] {
  return ADDRESSES.flatMap(({ operation: { query }, path }) =>
    namesOf(query).flatMap((name): [string, string, string][] => {
      const takes = (prefix: string) => memberOf(query, name)!.safeParse(unknownOf(prefix)).success;
      const taken = prefixes.filter(takes);
      return taken.length === 1 && !path.includes("{") ? [[path, name, taken[0]!]] : [];
    })
  );
}

/** Operations after which a resource of the catalogue has ended, so that its id opens nothing. */
const ENDS = [
  "deleteSandbox",
  "revokeApiKey",
  "deleteWebhookEndpoint",
  "deleteFault",
  "endInstrument",
  "eraseCustomer",
];

/** Sends the catalogue in the other environment. Returns an id of each kind, by its prefix. */
async function fillOther(service: TestService): Promise<Record<string, string>> {
  const saved = firstValues();
  const key = service.other.text;
  const reset_at = CATALOGUE.findIndex(({ operation }) => operation === "resetSandbox");
  for (const request of CATALOGUE.slice(0, reset_at)) {
    if (ENDS.includes(request.operation)) continue;
    const { method, path, options } = fill(request, saved);
    keep(request, await service.call(method, path, { ...options, key }), saved);
  }
  const entries = await service.get(LEDGER, { key });
  await service.deps.request_log.flush();
  const [{ id: le, transaction_id: txn }] = entries.data;
  const ids = [...saved.values()].filter((value) => /^[a-z]+_[0-9a-z]{26}$/.test(value));
  return { ...Object.fromEntries(ids.map((id) => [id.split("_")[0]!, id])), le, txn };
}

function unknownOf(prefix: string): string {
  return `${prefix}_${"0".repeat(26)}`;
}

/** Asserts that two responses differ only in their Request-Id and in the id of the request. */
function assertSame(
  response: TestResponse,
  id: string,
  other: TestResponse,
  other_id: string,
): void {
  const shown = ({ status, text, headers }: TestResponse, id: string) => ({
    status,
    text: text.replaceAll(id, "ID").replaceAll(headers.get("Request-Id")!, "REQUEST"),
    headers: Object.fromEntries([...headers].filter(([name]) => name !== "request-id")),
  });
  assert.deepEqual(shown(response, id), shown(other, other_id));
}
