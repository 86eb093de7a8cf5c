/**
 * pay.commit() with a list of several changes, called as pay_api: each change has its own outcome.
 * A change that fails writes nothing and does not affect the others. Replays count neither for the
 * rate limit of their key nor against the balance.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { connect } from "../support/database/database.ts";
import { idGenerator } from "../../shared/core/ids.ts";
import type { Payment } from "../../shared/schema/payment.ts";
import { transferOf } from "../../shared/domain/transfers/create_transfer.ts";
import { createEnvironment } from "../support/database/api_keys.ts";
import {
  commit,
  created,
  DAY,
  newContext,
  NOW,
  refunded,
  type Requested,
  stored,
} from "../support/database/commit_list.ts";
import { decided } from "../support/domain/decided_change.ts";
import type { TestService } from "../support/service/service.ts";
import { serviceCase } from "../support/service/service_case.ts";

/** Registers a test with a connection as the functions have it. */
function commitCase(
  name: string,
  run: (t: Deno.TestContext, service: TestService, functions: postgres.Sql) => Promise<void>,
): void {
  serviceCase(name, async (t, service) => {
    await using functions = connect(service.database.functions_url);
    await run(t, service, functions);
  });
}

const CREATED = "1 0 1 2";
const REFUNDED = "1 1 1 3";
const NOTHING = "0 0 0 0";

/** The lists of a case: each change with its outcome and the rows that it stores. */
type List = [requested: Requested, outcome: string, stored: string][];
type Case = (service: TestService, sql: postgres.Sql) => List | Promise<List>;

/** A case of one failing change between two valid ones. */
function between(
  outcome: string,
  make: (service: TestService) => Promise<Partial<Requested>>,
): Case {
  return async (service) => {
    const good = () => ({ change: created(), key: service.key.text });
    const odd = { ...good(), ...await make(service) };
    return [
      [good(), "committed", CREATED],
      [odd, outcome, NOTHING],
      [good(), "committed", CREATED],
    ];
  };
}

async function paid(service: TestService, key = service.key.text): Promise<Payment> {
  return (await service.make({ outcome: "success" }, { key })).body;
}

const CASES: Record<string, Case> = {
  "an unknown key": between("unauthorized", async ({ sql, issueKey, key }) => {
    const { text, id } = await issueKey(key.environment_id);
    await sql`delete from pay.api_key_secrets where api_key_id = ${id}`;
    return { key: text };
  }),
  "a key that expires at that instant": between("unauthorized", async ({ issueKey, key }) => {
    const expires_at = new Date(NOW).toISOString();
    return { key: (await issueKey(key.environment_id, { expires_at })).text };
  }),
  "a key without the scope": between("forbidden", async ({ issueKey, key }) => ({
    key: (await issueKey(key.environment_id, { scopes: ["payments:read"] })).text,
  })),
  "a stale refund": between("stale", async (service) => {
    const payment = await paid(service);
    const path = `/api-v1-payments/v1/payments/${payment.id}/refund`;
    await service.call("POST", path, { body: { amount: 1 } });
    return { change: refunded(payment) };
  }),
  "a refund of another environment's payment": between("stale", async (service) => ({
    change: refunded(await paid(service, service.other.text)),
  })),
  "an idempotency key of another request": between("conflict", async (service) => {
    await service.pay({}, { idempotency_key: "taken" });
    return { idempotency_key: "taken" };
  }),
  "a refund of the payment of an environment that is in the list": async (service) => {
    const { key, other } = service;
    const foreign = refunded(await paid(service, other.text));
    return [
      [{ change: created(), key: other.text }, "committed", CREATED],
      [{ change: foreign, key: key.text }, "stale", NOTHING],
      [{ change: created(), key: key.text }, "committed", CREATED],
    ];
  },
  "an idempotency key three times, once of another request": ({ key }) => {
    const requested = () => ({ key: key.text, idempotency_key: "twice", change: created() });
    return [
      [requested(), "committed", CREATED],
      [requested(), "replay", NOTHING],
      [{ ...requested(), fingerprint: "b" }, "conflict", NOTHING],
    ];
  },
  "collections of two accounts under a new mandate": ({ key }) => {
    const mandate = { id: "M-1", signed_at: "2026-11-01", sequence: "recurring" };
    const [own, other] = ["DE89370400440532013000", "DE69512108001245133000"].map((iban) => () => ({
      change: created("pending", { outcome: undefined, iban: { iban }, mandate }),
      key: key.text,
    }));
    return [
      [own!(), "committed", "1 0 0 2"],
      [own!(), "committed", "1 0 0 2"],
      [other!(), "stale", NOTHING],
    ];
  },
  "one idempotency key under two keys": ({ key, other }) =>
    [key, other].map(({ text }, i): List[number] => [
      { change: created(), key: text, idempotency_key: "shared", fingerprint: "ab"[i]! },
      "committed",
      CREATED,
    ]),
  "two refunds of one payment": async (service) => {
    const payment = await paid(service);
    const key = service.key.text;
    return [
      [{ change: refunded(payment, 10), key }, "committed", REFUNDED],
      [{ change: refunded(payment, 20), key }, "stale", NOTHING],
    ];
  },
  "refunds of two environments and a create": async (service) => {
    const [key, other] = [service.key.text, service.other.text];
    return [
      [{ change: refunded(await paid(service)), key }, "committed", REFUNDED],
      [{ change: created(), key }, "committed", CREATED],
      [{ change: refunded(await paid(service, other)), key: other }, "committed", REFUNDED],
    ];
  },
  "a response of 24 hours ago, one of a millisecond less, and a create": async (
    { key, setClock },
    sql,
  ) => {
    const requested = (idempotency_key: string) => ({
      key: key.text,
      idempotency_key,
      change: created(),
    });
    for (const [name, later_ms] of [["old", 0], ["not yet old", 1]] as const) {
      await setClock(NOW - DAY + later_ms);
      await commit(sql, [requested(name)]);
    }
    await setClock(NOW);
    return [
      [requested("old"), "expired", NOTHING],
      [requested("not yet old"), "replay", NOTHING],
      [{ change: created(), key: key.text }, "committed", CREATED],
    ];
  },
};

commitCase("pay.commit()", async (t, service, functions) => {
  for (const [name, run] of Object.entries(CASES)) {
    await t.step(`${name}: each change has its own outcome`, async () => {
      const cases = await run(service, functions);
      const list = cases.map(([requested]) => requested);
      const rows = await commit(functions, list);
      const found = await stored(service.sql, list);
      assert.deepEqual(
        rows.map(({ outcome }, i) => [outcome, found[i]]),
        cases.map(([, outcome, rows]) => [outcome, rows]),
      );
      for (const [i, { change, key }] of list.entries()) {
        const { outcome, body } = rows[i]!;
        if (outcome === "replay" && rows[0]!.outcome === "committed") {
          assert.equal(body, list[0]!.change.response.body);
        }
        if (outcome !== "committed") continue;
        const [row] = await service.sql`
          select environment_id from pay.payments where body = ${change.payment!.body}`;
        const { environment_id } = key === service.other.text ? service.other : service.key;
        assert.equal(row!.environment_id, environment_id);
      }
    });
  }
});

/** Texts that have a meaning in the text of rows and arrays, and in lines. */
const ODD_TEXTS = [
  " ",
  "null",
  '"',
  "\\",
  "\\n",
  '\\"',
  "(,)",
  "{1}",
  "a\nb\r\tc",
  "\u0001\u2028",
  "é🎉",
  "'",
];

commitCase("pay.commit() stores every text as it is", async (_, { sql, key }, functions) => {
  const list = ODD_TEXTS.map((text) => ({
    change: created("success", { reference: text, customer: { id: text }, metadata: { text } }),
    key: key.text,
    idempotency_key: `odd ${ODD_TEXTS.indexOf(text)}`,
  }));
  await commit(functions, list);
  for (const [i, { change: { payment, events } }] of list.entries()) {
    const [row] = await sql`
      select p.reference, p.customer_id, p.body, (
        select array_agg(pay_internal.event_body(v) order by v.sequence) from pay.events v
        where v.environment_id = p.environment_id and v.subject_id = p.id
      ) as events
      from pay.payments p where p.id = ${payment!.id}`;
    const { reference, customer_id, body } = row!;
    const expected = { reference: ODD_TEXTS[i], customer_id: ODD_TEXTS[i], body: payment!.body };
    assert.deepEqual({ reference, customer_id, body }, expected);
    const shown = row!.events.map((text: string) => JSON.parse(text).data.object);
    assert.equal(shown.length, events.length);
    for (const { metadata } of shown) assert.equal(metadata.text, ODD_TEXTS[i]);
  }
});

/** Five requests a second allow ten in two seconds. */
const LIMIT = 10;
const RATE_LIMITS = { key: LIMIT / 2, account: 0 };
/** A time after the window of the first requests. */
const LATER = NOW + 60_000;

commitCase("pay.commit() at the rate limit", async (t, service, functions) => {
  const requested = (idempotency_key: string, at_ms = LATER): Requested => ({
    change: created(),
    key: service.key.text,
    rate_limits: RATE_LIMITS,
    idempotency_key,
    at_ms,
  });
  const list = (from: number, to: number, at_ms?: number) =>
    Array.from({ length: to - from }, (_, i) => requested(`key ${from + i}`, at_ms));
  const outcomes = async (asks: readonly Requested[]) =>
    (await commit(functions, asks)).map(({ outcome, remaining }) => `${outcome} ${remaining}`);
  const used = async () => {
    const [row] = await service.sql`
      select sum(current_count)::int as requests from pay.rate_counters`;
    return row!.requests;
  };
  await t.step("each request of a list counts once", async () => {
    const told = Array.from({ length: LIMIT }, (_, i) => `committed ${LIMIT - 1 - i}`);
    assert.deepEqual(await outcomes(list(0, LIMIT, NOW)), told);
    assert.equal(await used(), LIMIT);
  });
  await t.step("replays leave the whole limit to the other requests", async () => {
    const replays = list(0, LIMIT);
    const others = list(LIMIT, 2 * LIMIT + 1);
    const told = await outcomes([...replays, ...others]);
    assert.deepEqual(told, [
      ...replays.map(() => `replay ${LIMIT}`),
      ...Array.from({ length: LIMIT }, (_, i) => `committed ${LIMIT - 1 - i}`),
      "rate_limited 0",
    ]);
    assert.equal(await used(), LIMIT);
  });
  await t.step("a refused request stores no response", async () => {
    const kept = await service.sql`
      select from pay.idempotency_keys where key = ${`key ${2 * LIMIT}`}`;
    assert.equal(kept.count, 0);
  });
  await t.step("replays succeed at an exhausted limit", async () => {
    const told = await outcomes([...list(0, 2), ...list(2 * LIMIT, 2 * LIMIT + 1)]);
    assert.deepEqual(told, ["replay 0", "replay 0", "rate_limited 0"]);
    assert.equal(await used(), LIMIT);
  });
});

type TransferCase = [
  name: string,
  lists: [amount: number, key: string | null, outcome: string][][],
];

/** The lists of a case are committed one after the other. The balance before them is 100. */
const TRANSFERS: TransferCase[] = [
  ["without keys the balance is used up in the order of the list", [
    [[60, null, "committed"], [50, null, "insufficient"], [40, null, "committed"]],
  ]],
  ["a replay takes nothing", [
    [[30, "a", "committed"]],
    [[30, "a", "replay"], [70, "b", "committed"], [1, "c", "insufficient"]],
  ]],
  ["a duplicate in the list takes nothing", [
    [[40, "a", "committed"], [40, "a", "replay"], [60, "b", "committed"]],
  ]],
  ["a duplicate of a refused transfer is refused too", [
    [[101, "a", "insufficient"], [101, "a", "insufficient"], [100, "b", "committed"]],
  ]],
  ["a key of another request takes nothing", [
    [[40, "a", "committed"]],
    [[50, "a", "conflict"], [60, "b", "committed"]],
  ]],
];

commitCase("pay.commit() of transfers", async (t, service, functions) => {
  const emptySandbox = async () => {
    const id = idGenerator(Date.now())("env_");
    await createEnvironment(service.sql, { id, account: "transfers", livemode: false });
    return id;
  };
  for (const [name, lists] of TRANSFERS) {
    await t.step(name, async () => {
      const key = (await service.issueKey(await emptySandbox())).text;
      await service.make({ amount_minor: 100, outcome: "success" }, { key });
      for (const list of lists) {
        const requested = list.map(([amount, idempotency_key]) =>
          transferred(key, amount, idempotency_key)
        );
        const rows = await commit(functions, requested);
        assert.deepEqual(rows.map(({ outcome }) => outcome), list.map(([, , told]) => told));
      }
      const drawn = lists.flat().filter(([, , told]) => told === "committed")
        .reduce((sum, [amount]) => sum + amount, 0);
      const { body } = await service.call("GET", "/api-v1-payments/v1/balance", { key });
      const available = body.balances.find((b: { account: string }) => b.account === "available");
      assert.equal(available.amount_minor, 100 - drawn);
    });
  }
});

/** A new transfer. The fingerprint of its key depends on its amount. */
function transferred(key: string, amount: number, name: string | null): Requested {
  const body = {
    ...{ amount, currency: "EUR", settlement: "manual" as const },
    destination: { iban: { iban: "DE89370400440532013000" } },
  };
  const change = decided(transferOf(body, newContext()));
  const keyed = name !== null && { idempotency_key: name, fingerprint: (amount % 16).toString(16) };
  return { change, key, scope: "transfers:write", ...keyed };
}
