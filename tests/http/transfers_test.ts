/**
 * Transfers over HTTP (contract §3): the balance that they need and move, the rows of a whole life,
 * refusals that change nothing, lists, and races for a balance. tests/domain has the rules of each
 * step.
 */

import assert from "node:assert/strict";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { startSecondService } from "../support/service/second_service.ts";
import type { TestService } from "../support/service/service.ts";
import {
  APPROVED,
  assertRefused,
  LEDGER,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

const V1 = "/api-v1-payments/v1";
const TRANSFERS = `${V1}/transfers`;
const UNKNOWN = `tr_${"0".repeat(26)}`;

function send(
  service: Pick<TestService, "call">,
  body: Record<string, unknown> = {},
  options = {},
) {
  return service.call("POST", TRANSFERS, {
    body: { amount: 100, currency: "EUR", destination: APPROVED.sepa, ...body },
    ...options,
  });
}

async function balanceOf(service: TestService): Promise<Record<string, number>> {
  const { body } = await service.call("GET", `${V1}/balance`);
  const rows = body.balances as { currency: string; account: string; amount_minor: number }[];
  return Object.fromEntries(
    rows.map(({ currency, account, amount_minor }) => [`${currency} ${account}`, amount_minor]),
  );
}

serviceCase("POST /v1/transfers moves money that is there", async (t, service) => {
  await t.step("without money it is 402, also as a replay when there is some", async () => {
    const refused = await send(service, {}, { idempotency_key: "poor" });
    assertRefused(refused, 402, "balance_insufficient");
    await service.make({ amount_minor: 1000, outcome: "success" });
    const again = await send(service, {}, { idempotency_key: "poor" });
    assert.equal(again.text, refused.text);
    assert.equal(again.headers.get("Idempotent-Replayed"), "true");
  });
  await t.step("it takes the amount from the balance, once", async () => {
    const sent = await send(service, {}, { idempotency_key: "rich" });
    assert.deepEqual([sent.status, sent.body.status], [201, "completed"], sent.text);
    assert.equal((await send(service, {}, { idempotency_key: "rich" })).text, sent.text);
    assert.deepEqual(await balanceOf(service), {
      "EUR available": 900,
      "EUR external": 100,
      "EUR in_transit": 0,
      "EUR processor": -1000,
    });
  });
  await t.step("a pending one holds its amount until it is cancelled", async () => {
    const { body: waiting } = await send(service, { settlement: "manual", amount: 900 });
    assert.equal((await balanceOf(service))["EUR available"], 0);
    assertRefused(await send(service, { amount: 1 }), 402, "balance_insufficient");
    const cancelled = await service.call("POST", `${TRANSFERS}/${waiting.id}/cancel`);
    assert.equal(cancelled.body.status, "cancelled", cancelled.text);
    assert.equal((await balanceOf(service))["EUR available"], 900);
    const again = await service.call("POST", `${TRANSFERS}/${waiting.id}/cancel`);
    assertRefused(again, 409, "invalid_state");
    assert.deepEqual(again.body.error.allowed, []);
  });
  await t.step("the balance of another currency does not count", async () => {
    const refused = await send(service, { currency: "USD", destination: APPROVED.swift });
    assertRefused(refused, 402, "balance_insufficient");
  });
  await t.step("a reset deletes all transfers", async () => {
    const { body } = await service.call("POST", `${SANDBOX}/reset`);
    assert.equal(body.deleted.transfers, 2);
    assert.deepEqual(await balanceOf(service), {});
  });
});

serviceCase("the rows of a transfer from its creation to its return", async (t, service) => {
  await service.make({ amount_minor: 1000, outcome: "success" });
  const { body: made } = await send(service, { settlement: "manual" });
  const advances: [path: string, body: Record<string, unknown>][] = [
    [`${SANDBOX}/transfers/${made.id}/advance`, { to: "pending" }],
    [`${SANDBOX}/v1/transfers/${made.id}/advance`, { to: "completed" }],
    [`${SANDBOX}/transfers/${made.id}/advance`, { to: "failed", return_code: "AC04" }],
  ];
  let last = made;
  for (const [path, body] of advances) {
    const response = await service.call("POST", path, { body });
    assert.equal(response.status, 200, response.text);
    last = response.body;
    assert.deepEqual((await service.call("GET", `${TRANSFERS}/${made.id}`)).body, last);
  }
  assert.deepEqual([last.status, last.return_code], ["failed", "AC04"]);
  await t.step("its events show it, and count its changes", async () => {
    const rows = await service.sql`
      select type, sequence, pay_internal.event_body(e) as body
      from pay.events e where subject_id = ${made.id} order by sequence`;
    assert.deepEqual(rows.map(({ type, sequence }) => `${sequence} ${type}`), [
      "1 transfer.created",
      "2 transfer.completed",
      "3 transfer.failed",
    ]);
    const shown = rows.map(({ body }) => JSON.parse(body).data.object);
    assert.deepEqual([shown[0], shown[2]], [made, last]);
  });
  await t.step("its movements have two entries each, and name it", async () => {
    const { body } = await service.call("GET", `${LEDGER}?transfer_id=${made.id}&limit=100`);
    const moves = new Map<string, Record<string, string>>();
    for (const entry of body.data.toReversed()) {
      assert.deepEqual([entry.amount_minor, entry.transfer_id, entry.payment_id], [
        100,
        made.id,
        null,
      ]);
      const move = moves.get(entry.transaction_id) ?? {};
      moves.set(entry.transaction_id, { ...move, [entry.direction]: entry.account });
    }
    assert.deepEqual([...moves.values()].map(({ debit, credit }) => `${debit}>${credit}`), [
      "available>in_transit",
      "in_transit>external",
      "external>available",
    ]);
  });
  await t.step("?transfer_id= lists its events and deliveries alone", async () => {
    const endpoint = { body: { delivery: "inbox" } };
    assert.equal((await service.call("POST", `${V1}/webhook_endpoints`, endpoint)).status, 201);
    const { body: { id } } = await send(service, { settlement: "manual" });
    await send(service);
    await service.call("POST", `${TRANSFERS}/${id}/cancel`);
    const list = async (name: string) =>
      (await service.call("GET", `${V1}/${name}?transfer_id=${id}&limit=100`)).body.data;
    type Event = { id: string; type: string; data: { object: { id: string } } };
    const events: Event[] = await list("events");
    assert.deepEqual(events.map(({ type, data }) => [type, data.object.id]), [
      ["transfer.cancelled", id],
      ["transfer.created", id],
    ]);
    const deliveries: { event_id: string }[] = await list("webhook_deliveries");
    assert.deepEqual(
      deliveries.map(({ event_id }) => event_id).sort(),
      events.map(({ id }) => id).sort(),
    );
  });
  await t.step("a route of payments refuses its id, and its route that of a payment", async () => {
    const { body: paid } = await service.make({ outcome: "pending" });
    for (
      const path of [
        `${V1}/sandbox/${made.id}/advance`,
        `${SANDBOX}/payments/${made.id}/advance`,
        `${SANDBOX}/transfers/${paid.id}/advance`,
      ]
    ) {
      const response = await service.call("POST", path, { body: { to: "completed" } });
      assertRefused(response, 404, "not_found");
    }
  });
});

serviceCase("a refused transfer changes nothing", async (t, service) => {
  await service.make({ amount_minor: 1000, outcome: "success" });
  const rows = async () => {
    const [row] = await service.sql`
      select (select count(*)::int from pay.transfers) as transfers,
        (select count(*)::int from pay.ledger_entries) as entries,
        (select count(*)::int from pay.events) as events,
        (select coalesce(sum(amount_minor), 0) from pay.ledger_totals) as total`;
    return row;
  };
  const before = await rows();
  const live = { key: service.live.text };
  const payee = { destination: { ...APPROVED.sepa, holder_name: "Ada" } };
  const cases: [Record<string, unknown>, object, number, code: string, param?: string][] = [
    [{ amount: 1001 }, {}, 402, "balance_insufficient"],
    [{ amount: undefined, currency: "EUX" }, {}, 400, "invalid_parameter", "currency"],
    [{ destination: { iban: "DE88" } }, {}, 400, "invalid_parameter", "destination.iban"],
    [payee, live, 503, "provider_not_configured"],
    [{ ...payee, settlement: "manual" }, live, 400, "invalid_parameter", "settlement"],
  ];
  for (const [body, options, status, code, param] of cases) {
    await t.step(`${JSON.stringify(body)} is ${status} ${code}`, async () => {
      assertRefused(await send(service, body, options), status, code, param);
      assert.deepEqual(await rows(), before);
    });
  }
  await t.step("a live key may not advance one", async () => {
    const path = `${SANDBOX}/transfers/${UNKNOWN}/advance`;
    const refused = await service.call("POST", path, { ...live, body: { to: "completed" } });
    assertRefused(refused, 403, "test_key_required");
  });
});

serviceCase(
  "GET /v1/transfers lists newest first, and filters",
  async (_t, service) => {
    await service.make({ amount_minor: 1000, outcome: "success" });
    for (let i = 0; i < 7; i++) await send(service, { amount: 1, metadata: { i: String(i) } });
    const list = async (query: string) => {
      const { body } = await service.call("GET", `${TRANSFERS}?${query}`);
      assert.equal(body.url, "/v1/transfers");
      return body;
    };
    const all = (await list("limit=100")).data;
    assert.equal(all.map((one: { metadata: { i: string } }) => one.metadata.i).join(""), "6543210");
    const [newest] = all;
    const kept: [query: string, count: number][] = [
      ["currency=usd", 0],
      ["currency=EUR&status=completed", 7],
      [`created_before=${newest.created_at}`, 6],
      [`created_after=${newest.created_at}`, 0],
    ];
    for (const [query, count] of kept) assert.equal((await list(query)).data.length, count, query);
  },
);

serviceCase("concurrent transfers on two isolates never overdraw", async (t, first) => {
  const second = startSecondService(first);
  const services = [first, second];
  const race = (i: number, body: Record<string, unknown>, idempotency_key?: string) =>
    send(services[i % 2]!, { amount: 7, ...body }, idempotency_key ? { idempotency_key } : {});
  /** The available balance of each currency, as the sum of the entries. */
  const available = async () => {
    const rows = await first.sql`
      select currency,
        sum(case direction when 'credit' then amount_minor else -amount_minor end)::int as n
      from pay.ledger_entries where account = 'available' group by 1 order by 1`;
    return Object.fromEntries(rows.map(({ currency, n }) => [currency, n]));
  };
  try {
    await first.make({ amount_minor: 100, outcome: "success" });
    await first.make({
      amount_minor: 50,
      currency: "USDC",
      method_kind: "stablecoin",
      outcome: "success",
    });
    await t.step("of 80, only 14 of 7 EUR and 7 of 7 USDC fit into the balance", async () => {
      const responses = await Promise.all(
        Array.from(
          { length: 80 },
          (_, i) =>
            race(i, i % 4 < 2 ? {} : { currency: "USDC", destination: APPROVED.stablecoin }),
        ),
      );
      const made = (currency: string) =>
        responses.filter(({ status, body }) => status === 201 && body.currency === currency).length;
      assert.deepEqual([made("EUR"), made("USDC")], [14, 7]);
      assert.deepEqual([...new Set(responses.map(({ status }) => status))].sort(), [201, 402]);
      assert.deepEqual(await available(), { EUR: 2, USDC: 1 });
    });
    await t.step("with concurrent payments the balance never falls below 0", async () => {
      const paid = [];
      for (let i = 0; i < 10; i++) {
        paid.push((await first.make({ amount_minor: 70, outcome: "success" })).body.id);
      }
      const work = Array.from(
        { length: 100 },
        (_, i) =>
          i % 10 > 7
            ? services[i % 2]!.call("POST", "/api-v1-sandbox/payments", {
              body: { amount: 7, currency: "EUR", outcome: "success" },
            })
            : race(i, { amount: 10 }),
      );
      const responses = (await Promise.all(work)) as { status?: number }[];
      const made = responses.filter((response, i) => i % 10 < 8 && response.status === 201).length;
      const { EUR } = await available();
      assert.equal(EUR, 2 + 700 + 140 - 10 * made);
      assert.ok(EUR! >= 0 && made >= 70, `${made} made, ${EUR} left`);
    });
    await t.step("one of cancel, complete and fail succeeds and moves the money once", async () => {
      await first.make({ amount_minor: 1000, outcome: "success" });
      for (let round = 0; round < 30; round++) {
        const before = (await available()).EUR!;
        const { body: made } = await race(0, { settlement: "manual" });
        const advance = `/api-v1-sandbox/transfers/${made.id}/advance`;
        const responses = await Promise.all([
          first.call("POST", `${TRANSFERS}/${made.id}/cancel`),
          second.call("POST", `${TRANSFERS}/${made.id}/cancel`),
          // Not both in one round, because a completed transfer can fail later.
          second.call("POST", advance, { body: { to: round % 2 ? "completed" : "failed" } }),
        ]);
        const { body } = await first.call("GET", `${TRANSFERS}/${made.id}`);
        assert.equal(body.sequence, 2);
        const won = responses.filter(({ status }) => status === 200);
        assert.equal(won.length, 1, responses.map(({ text }) => text).join("\n"));
        assert.deepEqual(won[0]!.body, body);
        assert.equal((await available()).EUR, before - (body.status === "completed" ? 7 : 0));
      }
    });
    await t.step("duplicates of a transfer that empties the balance get its response", async () => {
      const amount = (await available()).EUR!;
      const duplicates = await Promise.all(
        Array.from({ length: 20 }, (_, i) => race(i, { amount }, "last")),
      );
      assert.deepEqual([...new Set(duplicates.map(({ status }) => status))], [201]);
      assert.equal(new Set(duplicates.map(({ text }) => text)).size, 1);
      assert.equal((await available()).EUR, 0);
    });
    await t.step("the invariants hold", () => assertSilent(first.sql));
  } finally {
    await second.close();
  }
});
