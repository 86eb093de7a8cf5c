/** Refused input of transfers, which changes nothing; replays; lists. */

import assert from "node:assert/strict";
import { startService } from "../support/service/service.ts";

const TRANSFERS = "/api-v1-payments/v1/transfers";
const IBAN = "DE89 3704 0044 0532 0130 00";
const ZERO = "0x0000000000000000000000000000000000000000";
const DEAD = "0x000000000000000000000000000000000000dEaD";

/** [name, fields that replace those of a valid body, status, code, param] */
const BAD: [string, Record<string, unknown>, number, string, string?][] = [
  ["no amount", { amount: undefined }, 400, "invalid_parameter", "amount"],
  ["an amount of 0", { amount: 0 }, 400, "invalid_parameter", "amount"],
  ["two different amounts", { amount_minor: 1 }, 400, "invalid_parameter", "amount_minor"],
  ["an amount beyond the largest", { amount: 1e12 }, 400, "invalid_parameter", "amount"],
  ["an unknown currency", { currency: "EUX" }, 400, "invalid_parameter", "currency"],
  [
    "an unknown currency without an amount",
    { amount: undefined, currency: "EUX" },
    400,
    "invalid_parameter",
    "currency",
  ],
  ["no destination", { destination: undefined }, 400, "invalid_parameter", "destination"],
  ["an empty destination", { destination: {} }, 400, "invalid_parameter", "destination"],
  [
    "two destinations",
    { destination: { iban: IBAN, wallet: DEAD } },
    400,
    "invalid_parameter",
    "destination",
  ],
  [
    "a malformed IBAN",
    { destination: { iban: "DE89 3704 0044 0532 0130 01" } },
    400,
    "invalid_parameter",
    "destination.iban",
  ],
  [
    "an invalid IBAN",
    { destination: { iban: { iban: "hello" } } },
    400,
    "invalid_parameter",
    "destination.iban.iban",
  ],
  [
    "the zero address",
    { currency: "USDC", destination: { wallet: ZERO } },
    400,
    "invalid_parameter",
    "destination.wallet",
  ],
  [
    "an address that is too short",
    { currency: "USDC", destination: { wallet: "0x1234" } },
    400,
    "invalid_parameter",
    "destination.wallet",
  ],
  [
    "an address of another network",
    {
      currency: "USDC",
      destination: { wallet: { address: `${DEAD.slice(0, -1)}E`, network: "tron" } },
    },
    400,
    "invalid_parameter",
    "destination.wallet.address",
  ],
  [
    "an asset that contradicts",
    { currency: "USDC", destination: { wallet: { address: DEAD, asset: "USDT" } } },
    400,
    "invalid_parameter",
    "destination.wallet.asset",
  ],
  ["stablecoin to an account", { currency: "USDC" }, 400, "invalid_parameter", "currency"],
  ["an unknown settlement", { settlement: "later" }, 400, "invalid_parameter", "settlement"],
  ["more than the balance", { amount: 1001 }, 402, "balance_insufficient"],
  [
    "more than another currency's balance",
    {
      currency: "USD",
      destination: {
        iban: "GB82 WEST 1234 5698 7654 32",
      },
    },
    402,
    "balance_insufficient",
  ],
];

Deno.test("POST /v1/transfers: refusals, replays and lists", async (t) => {
  const service = await startService();
  const send = (body: Record<string, unknown> = {}, options = {}) =>
    service.call("POST", TRANSFERS, {
      body: { amount: 100, currency: "EUR", destination: { iban: IBAN }, ...body },
      ...options,
    });
  const rows = async () => {
    const [row] = await service.sql`
      select (select count(*)::int from pay.transfers) as transfers,
        (select count(*)::int from pay.ledger_entries) as entries,
        (select count(*)::int from pay.events) as events,
        (select coalesce(sum(amount_minor), 0) from pay.ledger_totals) as total`;
    return row;
  };
  try {
    await service.make({ amount_minor: 1000, outcome: "success" });
    for (const [name, fields, status, code, param] of BAD) {
      await t.step(`${name} is ${status} ${code}`, async () => {
        const before = await rows();
        const refused = await send(fields);
        assert.equal(refused.status, status, refused.text);
        assert.equal(refused.body.error.code, code);
        assert.equal(refused.body.error.param, param);
        assert.deepEqual(await rows(), before);
      });
    }
    await t.step("no refusal repeats an account number", async () => {
      const refused = await send({ destination: { iban: "DE89370400440532013001" } });
      assert.ok(!refused.text.includes("0532013001"));
    });
    await t.step("a live key gets 503, stores nothing, and may not send settlement", async () => {
      const before = await rows();
      const key = service.live.text;
      const destination = { iban: IBAN, holder_name: "Ada" };
      const refusal = await send({ destination }, { key });
      assert.equal(refusal.body.error.code, "provider_not_configured");
      assert.equal((await send({ settlement: "manual" }, { key })).status, 400);
      assert.deepEqual(await rows(), before);
      const path = "/api-v1-sandbox/transfers/tr_00000000000000000000000000/advance";
      const refused = await service.call("POST", path, { key, body: { to: "completed" } });
      assert.equal(refused.body.error.code, "test_key_required");
    });
    await t.step("a 402 is replayed even if the balance suffices now", async () => {
      const poor = await send({ amount: 5000 }, { idempotency_key: "p" });
      assert.equal(poor.status, 402, poor.text);
      await service.make({ amount_minor: 9000, outcome: "success" });
      const again = await send({ amount: 5000 }, { idempotency_key: "p" });
      assert.equal(again.text, poor.text);
      assert.equal((await send({ amount: 5000 })).status, 201);
    });
    await t.step("lists hold every page, newest first, and filter", async () => {
      for (let i = 0; i < 7; i++) await send({ amount: 1, metadata: { i: String(i) } });
      const all = (await service.call("GET", `${TRANSFERS}?limit=100`)).body.data;
      const paged = [];
      for (let after = ""; after !== null;) {
        const url = `${TRANSFERS}?limit=3${after && `&starting_after=${after}`}`;
        const { body } = await service.call("GET", url);
        assert.equal(body.url, "/v1/transfers");
        paged.push(...body.data);
        after = body.next_cursor;
        assert.equal(body.has_more, after !== null);
      }
      assert.deepEqual(paged, all);
      assert.deepEqual(all.slice(0, 7).map((tr: { metadata: { i: string } }) => tr.metadata.i), [
        ..."6543210",
      ]);
      const ids = async (query: string) =>
        (await service.call("GET", `${TRANSFERS}?limit=100&${query}`)).body.data
          .map((tr: { id: string }) => tr.id);
      assert.deepEqual(await ids("currency=usd"), []);
      assert.deepEqual(await ids("status=completed"), await ids("currency=EUR"));
      const [newest] = all;
      assert.ok(!(await ids(`created_before=${newest.created_at}`)).includes(newest.id));
      assert.deepEqual(await ids(`created_after=${newest.created_at}`), []);
      for (const bad of ["limit=0", "limit=101", "status=lost", `starting_after=${IBAN}`]) {
        assert.equal((await service.call("GET", `${TRANSFERS}?${bad}`)).status, 400, bad);
      }
      const unknown = `${TRANSFERS}?starting_after=tr_00000000000000000000000000`;
      assert.equal((await service.call("GET", unknown)).body.error.param, "starting_after");
    });
  } finally {
    await service.close();
  }
});
