/**
 * pay.commit() with a list of several changes, called as pay_api: each change has its own outcome.
 * A change that fails writes nothing and does not affect the others.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import type { Payment } from "../../shared/schema/payment.ts";
import { startService, type TestService } from "../support/service/service.ts";
import {
  commit,
  created,
  DAY,
  NOW,
  refunded,
  type Requested,
  stored,
} from "../support/database/commit_list.ts";

const CREATED = "1 0 1 2";
const REFUNDED = "1 1 1 3";
const NOTHING = "0 0 0 0";

type Expected = [outcome: string, stored: string][];
type List = [Requested[], Expected];
type Case = (service: TestService, sql: postgres.Sql) => List | Promise<List>;

/** A case of one failing change between two valid ones. */
function between(
  outcome: string,
  make: (service: TestService) => Promise<Partial<Requested>>,
): Case {
  return async (service) => {
    const key = service.key.text;
    const good = () => ({ change: created(), key });
    const odd = { ...good(), ...await make(service) };
    return [
      [good(), odd, good()],
      [["committed", CREATED], [outcome, NOTHING], ["committed", CREATED]],
    ];
  };
}

async function paid(service: TestService, key = service.key.text): Promise<Payment> {
  return (await service.make({ outcome: "success" }, { key })).body;
}

const CASES: [name: string, run: Case][] = [
  [
    "an unknown key between two creates",
    between("unauthorized", async ({ sql, issueKey, key }) => {
      const { text, id } = await issueKey(key.environment_id);
      await sql`delete from pay.api_key_secrets where api_key_id = ${id}`;
      return { key: text };
    }),
  ],
  [
    "a revoked key between two creates",
    between("unauthorized", async ({ sql, issueKey, key }) => {
      const { text, id } = await issueKey(key.environment_id);
      await sql`update pay.api_key_secrets set revoked_at = now() where api_key_id = ${id}`;
      return { key: text };
    }),
  ],
  [
    "a key that expires at that instant between two creates",
    between("unauthorized", async ({ issueKey, key }) => {
      const expires_at = new Date(NOW).toISOString();
      return { key: (await issueKey(key.environment_id, { expires_at })).text };
    }),
  ],
  [
    "a key without the scope between two creates",
    between("forbidden", async ({ issueKey, key }) => ({
      key: (await issueKey(key.environment_id, { scopes: ["payments:read"] })).text,
    })),
  ],
  [
    "a stale refund between two creates",
    between("stale", async (service) => {
      const payment = await paid(service);
      await service.call("POST", `/api-v1-payments/v1/payments/${payment.id}/refund`, {
        body: { amount: 1 },
      });
      return { change: refunded(payment) };
    }),
  ],
  [
    "a refund of another environment's payment between two creates",
    between("stale", async (service) => ({
      change: refunded(await paid(service, service.other.text)),
    })),
  ],
  [
    "an idempotency key of another request between two creates",
    between("conflict", async (service) => {
      await service.pay({}, { idempotency_key: "taken" });
      return { idempotency_key: "taken" };
    }),
  ],
  ["a refund of the payment of an environment that is in the list itself", async (service) => {
    const { key, other } = service;
    return [
      [
        { change: created(), key: other.text },
        { change: refunded(await paid(service, other.text)), key: key.text },
        { change: created(), key: key.text },
      ],
      [["committed", CREATED], ["stale", NOTHING], ["committed", CREATED]],
    ];
  }],
  ["duplicates", ({ key }) => {
    const requested = { key: key.text, idempotency_key: "duplicates" };
    return [
      [{ ...requested, change: created() }, { ...requested, change: created() }],
      [["committed", CREATED], ["replay", NOTHING]],
    ];
  }],
  ["an idempotency key with two fingerprints", ({ key }) => {
    const requested = { key: key.text, idempotency_key: "two" };
    return [
      [
        { ...requested, change: created() },
        { ...requested, change: created(), fingerprint: "b" },
      ],
      [["committed", CREATED], ["conflict", NOTHING]],
    ];
  }],
  ["one idempotency key under two keys", ({ key, other }) => [
    [
      { change: created(), key: key.text, idempotency_key: "shared" },
      { change: created(), key: other.text, idempotency_key: "shared", fingerprint: "b" },
    ],
    [["committed", CREATED], ["committed", CREATED]],
  ]],
  ["two refunds of one payment", async (service) => {
    const payment = await paid(service);
    const requested = (amount: number) => ({
      change: refunded(payment, amount),
      key: service.key.text,
    });
    return [[requested(10), requested(20)], [["committed", REFUNDED], ["stale", NOTHING]]];
  }],
  ["refunds of two environments and a create", async (service) => {
    const { key, other } = service;
    return [
      [
        { change: refunded(await paid(service)), key: key.text },
        { change: created(), key: key.text },
        { change: refunded(await paid(service, other.text)), key: other.text },
      ],
      [["committed", REFUNDED], ["committed", CREATED], ["committed", REFUNDED]],
    ];
  }],
  ["a stored response of 24 hours ago, and a create", async ({ key, setClock }, sql) => {
    const requested = { key: key.text, idempotency_key: "old" };
    await setClock(NOW - DAY);
    await commit(sql, [{ ...requested, change: created() }]);
    await setClock(NOW);
    return [
      [{ ...requested, change: created() }, { change: created(), key: key.text }],
      [["expired", NOTHING], ["committed", CREATED]],
    ];
  }],
  ["a response of a millisecond less than 24 hours ago", async ({ key, setClock }, sql) => {
    const requested = { key: key.text, idempotency_key: "not yet old" };
    await setClock(NOW - DAY + 1);
    await commit(sql, [{ ...requested, change: created() }]);
    await setClock(NOW);
    return [[{ ...requested, change: created() }], [["replay", NOTHING]]];
  }],
];

Deno.test("pay.commit()", async (t) => {
  const service = await startService();
  const functions = postgres(service.database.functions_url, { max: 1, onnotice: () => {} });
  try {
    for (const [name, run] of CASES) {
      await t.step(`${name}: each change has its own outcome`, async () => {
        const [list, expected] = await run(service, functions);
        const rows = await commit(functions, list);
        const found = await stored(service.sql, list);
        assert.deepEqual(rows.map(({ outcome }, i) => [outcome, found[i]]), expected);
        for (const [i, { change, key }] of list.entries()) {
          const { outcome, body } = rows[i]!;
          if (outcome === "replay" && i > 0) assert.equal(body, list[0]!.change.response.body);
          if (outcome !== "committed") continue;
          const [row] = await service.sql`
            select environment_id from pay.payments where body = ${change.payment!.body}`;
          const { environment_id } = key === service.other.text ? service.other : service.key;
          assert.equal(row!.environment_id, environment_id);
        }
      });
    }
  } finally {
    await functions.end();
    await service.close();
  }
});
