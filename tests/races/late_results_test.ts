/**
 * Results that come later in a sandbox meet requests about the same payment: an advance, a capture,
 * a cancel, evidence. Whichever comes first decides. The later one changes nothing: a late result
 * books no money for a payment that is over, and leaves no operation to anybody. Of commands of a
 * clock at the same time every advance that returned has happened in the end, and each response is
 * of its own target or later.
 */

import assert from "node:assert/strict";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { card } from "../support/service/service_case.ts";
import {
  type Ask,
  ASKS,
  raceCase,
  sizeOf,
  type TwoInstances,
} from "../support/service/two_instances.ts";

const ROUNDS = sizeOf("ROUNDS", 6);
/** Payments of a round. Each meets its result once. */
const PAYMENTS = 6;
/** Later than every timeout and late response, and than every window. */
const SOON_S = 120;
const WINDOW_S = 8 * 24 * 3_600;

/** Two instances, and a function that sends a request to the first of them. */
interface Race {
  two: TwoInstances;
  post(path: string, body?: unknown): Promise<Record<string, string>>;
}

/** Makes a payment whose result is still to come. Returns the request to send when it comes. */
type Meeting = (race: Race) => Promise<Ask>;

const EVIDENCE = { text: "The parcel was signed for" };
const pay = (race: Race, body: unknown) =>
  race.post("/api-v1-payments/v1/payments", { amount: 1000, currency: "EUR", ...body as object });
const approved = (more: object = {}) => ({ ...card("4242 4242 4242 4242"), ...more });
const declareTimeout = (race: Race, operation: string) =>
  race.post("/api-v1-sandbox/faults", { on: "provider", fault: "timeout", where: { operation } });

/** A payment whose operation has a declared timeout, so that its result comes later. */
async function lost(race: Race, operation: string, body: object, path?: string) {
  if (path === undefined) {
    await declareTimeout(race, operation);
    return await pay(race, body);
  }
  const payment = await pay(race, body);
  await declareTimeout(race, operation);
  return await race.post(`/api-v1-payments/v1/payments/${payment.id}/${path}`, {});
}

/** The races: what comes later, the time after which it comes, and the request that meets it. */
const RACES: [name: string, advance_s: number, meeting: Meeting][] = [
  ...["failed", "declined", "completed"].map((to): [string, number, Meeting] => [
    `a late card against an advance to ${to}`,
    SOON_S,
    async (race) => {
      const { id } = await pay(race, card("4000 0000 0000 0119"));
      return ASKS.advance(id!, to);
    },
  ]),
  ["a create with a timeout against an advance to failed", SOON_S, async (race) => {
    const { id } = await lost(race, "authorize", approved());
    return ASKS.advance(id!, "failed");
  }],
  ["a capture with a timeout against an advance to failed", SOON_S, async (race) => {
    const { id } = await lost(race, "capture", approved({ capture: "manual" }), "capture");
    return ASKS.advance(id!, "failed");
  }],
  ["a capture with a timeout against a cancel", SOON_S, async (race) => {
    const { id } = await lost(race, "capture", approved({ capture: "manual" }), "capture");
    return ASKS.cancel(id!);
  }],
  ["a cancel with a timeout against a capture", SOON_S, async (race) => {
    const { id } = await lost(race, "cancel", approved({ capture: "manual" }), "cancel");
    return { path: `/api-v1-payments/v1/payments/${id}/capture`, body: {} };
  }],
  ...["failed", "completed"].map((to): [string, number, Meeting] => [
    `a refund with a timeout against its advance to ${to}`,
    SOON_S,
    async (race) => {
      const { id } = await lost(race, "refund", approved(), "refund");
      return { path: `/api-v1-sandbox/refunds/${id}/advance`, body: { to } };
    },
  ]),
  ["the end of an authorization against a capture", WINDOW_S, async (race) => {
    const { id } = await pay(race, approved({ capture: "manual" }));
    return { path: `/api-v1-payments/v1/payments/${id}/capture`, body: {} };
  }],
  ["the end of an abandoned payment against its authentication", WINDOW_S, async (race) => {
    const { id } = await pay(race, card("4000 0025 0000 3155"));
    return { path: `/api-v1-sandbox/payments/${id}/authenticate`, body: { result: "success" } };
  }],
  ["the deadline of a dispute against evidence", WINDOW_S, async (race) => {
    const { id } = await race.post("/api-v1-sandbox/payments", {
      amount_minor: 1000,
      currency: "EUR",
      outcome: "chargeback",
    });
    const [dispute] = await race.two.service.sql`
      select id from pay.disputes where payment_id = ${id!}`;
    return { path: `/api-v1-payments/v1/disputes/${dispute!.id}/evidence`, body: EVIDENCE };
  }],
];

raceCase("late results against requests", async (t, two) => {
  const { sql, key } = two.service;
  const race: Race = {
    two,
    async post(path, body) {
      const { status, text, body: returned } = await two.post(0, { path, body });
      assert.ok(status === 200 || status === 201, text);
      return returned;
    },
  };
  const clock = (body: unknown): Ask => ({ path: "/api-v1-sandbox/clock", body });
  /** Completes the advances of the clock. */
  const finish = async () => {
    for (;;) {
      const { has_more } = await race.post("/api-v1-sandbox/clock", { mode: "frozen" });
      if (!has_more) return;
    }
  };
  for (const [name, advance_s, meeting] of RACES) {
    await t.step(`${name}: ${ROUNDS} rounds`, async () => {
      for (let round = 0; round < ROUNDS; round++) {
        await race.post("/api-v1-sandbox/clock", { mode: "frozen" });
        const asks: Ask[] = [];
        for (let i = 0; i < PAYMENTS; i++) asks.push(await meeting(race));
        const told = await two.race([clock({ advance: advance_s }), ...asks]);
        for (const { status, text } of told) assert.ok([200, 409].includes(status), text);
        await finish();
      }
      const operations = await sql`select op, state, last_reply from pay.provider_operations
        where environment_id = ${key.environment_id} and state = 'operator'`;
      assert.deepEqual([...operations], []);
      const provider_events =
        await sql`select op, state, outcome, exception from pay.provider_events
        where environment_id = ${key.environment_id}
          and (outcome is null or outcome not in ('applied', 'ignored') or exception is not null)`;
      assert.deepEqual([...provider_events], []);
      const money = await sql`select kind from pay.ledger_movements where kind like 'unmatched%'`;
      assert.deepEqual([...money], []);
      // The deadline loses no dispute whose evidence was taken.
      const lost = await sql`select id from pay.disputes
        where status = 'lost' and position('"evidence":null' in body) = 0`;
      assert.deepEqual([...lost], []);
    });
  }
  await t.step("the invariants hold", () => assertSilent(sql));
});

/** Commands of a clock at once. */
const COMMANDS = 10;

const command = (body: unknown): Ask => ({
  path: "/api-v1-sandbox/clock",
  body,
  idempotency_key: crypto.randomUUID(),
});

raceCase("commands of a clock at the same time", async (t, two) => {
  const send = async (ask: Ask) => {
    const response = await two.post(0, ask);
    assert.equal(response.status, 200, response.text);
    return response.body;
  };
  /** Sends commands at once. Those that find the clock set too often meanwhile are sent again. */
  const race = async (asks: readonly Ask[]) => {
    const bodies = [];
    for (const [i, { status, text, body }] of (await two.race(asks)).entries()) {
      assert.ok(status === 200 || status === 503, text);
      bodies.push(status === 200 ? body : await send(asks[i]!));
    }
    return bodies;
  };
  /** Completes the advances, and returns the time of the clock. */
  const finish = async () => {
    for (;;) {
      const { has_more, now } = await send(command({ mode: "frozen" }));
      if (!has_more) return Date.parse(now);
    }
  };
  for (let round = 0; round < sizeOf("ROUNDS", 3); round++) {
    await t.step(`each of ${COMMANDS} advances counts beside modes, round ${round}`, async () => {
      const begin_ms = Date.parse((await send(command({ mode: "frozen" }))).now);
      const advances = Array.from({ length: COMMANDS }, () => command({ advance: 10 }));
      const modes = advances.map(() => command({ mode: "frozen" }));
      const responses = await race([...advances, ...modes]);
      assert.equal(await finish(), begin_ms + COMMANDS * 10_000);
      // The first of n advances ends at 10 s, the next one at 20 s.
      const nows = responses.slice(0, COMMANDS).map(({ now }) => Date.parse(now)).sort();
      for (const [i, now_ms] of nows.entries()) {
        assert.ok(now_ms >= begin_ms + (i + 1) * 10_000, `${i}: ${now_ms - begin_ms} ms`);
      }
    });
  }
});
