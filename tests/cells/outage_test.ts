/**
 * The outage of one of two cells behind HAProxy, under load: the other cell fulfils every request
 * as fast as before, the keys of this one get 503 at once, and nothing is lost.
 */

import assert from "node:assert/strict";
import { migrate } from "../../apps/server/migrations/migrate.ts";
import { ErrorBody } from "../../shared/schema/error.ts";
import { testWith } from "../support/common/programs.ts";
import { openCell } from "../support/production/production_stage.ts";
import { percentile, summary } from "../support/common/timed.ts";
import { pause, until } from "../support/common/until.ts";
import { keepConnection, type RawRequest } from "../support/proxy/raw_connection.ts";
import { startHaproxy } from "../support/proxy/cells_proxy.ts";
import { findHaproxy } from "../support/proxy/haproxy.ts";
import { keyedCall } from "../support/service/keyed_call.ts";
import { PAYMENTS } from "../support/service/service_case.ts";
import { startSupabaseServer } from "../support/supabase/supabase_server.ts";

/** `IDLE_MACHINE=true` states that nothing else runs on this machine. */
const is_idle = Deno.env.get("IDLE_MACHINE") === "true";
/** Clients of each cell. Each pauses after a response, so a slow machine gets fewer requests. */
const CLIENTS = 6;
const PAUSE_MS = 40;
const PHASE_MS = is_idle ? 20_000 : 2_000;
/** Requests that are under way at once when the cell dies. */
const BURST = 30;
/** The time within which a request to a cell that is away gets its 503, beside the usual time. */
const AWAY_WITHIN_MS = 1_500;
/** Two health checks of 2.5 s, 0.5 s before each, and time for a busy machine. */
const SILENT_WITHIN_MS = 8_000;
/** The time within which a cell that is back fulfils a request. */
const BACK_WITHIN_MS = 60_000;
/** The factor by which p99 of the other cell may grow. */
const GROWTH = 1.2;
/**
 * Added where other programs share the machine. A request that waits for the cell that is away
 * waits longer: until the shortest timeout of the proxy, 500 ms.
 */
const SHARED_MS = is_idle ? 0 : 250;
/** One round within the limits shows that no request waits. The machine may disturb the others. */
const ROUNDS = 3;

/** A request and its response. */
interface Sent {
  key: string;
  /** Its idempotency key. */
  order: string;
  /** When it was sent, in milliseconds of `performance.now()`. */
  at_ms: number;
  ms: number;
  /** 0 if the connection broke. */
  status: number;
  headers: Headers;
  text: string;
}

/** Takes a cell away and brings it back. */
interface Outage {
  begin(): Promise<unknown>;
  end(): Promise<unknown>;
}

testWith(
  "haproxy",
  await findHaproxy() !== null,
  "an outage of one of two cells under load",
  async (t) => {
    await using open = new AsyncDisposableStack();
    const a = await openCell(open, "sk7f");
    // On a server of its own, which the test stops.
    const server = await startSupabaseServer(17);
    await migrate(server.url);
    const b = await openCell(open, "sk8q", {
      url: server.admin_url,
      functions_url: server.url,
      drop: server.close,
    });
    const proxy = await startHaproxy({ a: a.address, b: b.address });
    open.defer(proxy.close);

    const pay = async (key: string, order: string): Promise<Sent> => {
      const at_ms = performance.now();
      const { status, headers, text } = await keyedCall(
        `${proxy.origin}/functions/v1`,
        "POST",
        PAYMENTS,
        { key, idempotency_key: order, body: { amount: 1000, currency: "EUR" } },
      ).catch(() => ({ status: 0, headers: new Headers(), text: "" }));
      return { key, order, at_ms, ms: performance.now() - at_ms, status, headers, text };
    };
    const orders = { [a.key]: 0, [b.key]: 0 };
    const payNext = (key: string) => pay(key, `order-${orders[key]!++}`);
    /** Pays at both cells while something happens. */
    const loadWhile = async (work: Promise<unknown>) => {
      let is_over = false;
      const client = async (key: string) => {
        const sent: Sent[] = [];
        for (; !is_over; await pause(PAUSE_MS)) sent.push(await payNext(key));
        return sent;
      };
      const clients = [a.key, b.key].map((key) =>
        Promise.all(Array.from({ length: CLIENTS }, () => client(key)))
      );
      await work.finally(() => is_over = true);
      const [of_a, of_b] = await Promise.all(clients);
      return { a: of_a!.flat(), b: of_b!.flat() };
    };
    /** Sends requests again until each has success. */
    const untilBack = async (sent: readonly Sent[]) => {
      for (const { key, order } of sent) {
        await until("the cell is back", async () => !failed(await pay(key, order)), BACK_WITHIN_MS);
      }
    };
    /** Pays before and in an outage, and afterwards sends again every request without success. */
    const measure = async ({ begin, end }: Outage) => {
      const before = await loadWhile(pause(PHASE_MS));
      let away_ms = Infinity;
      const of_burst: Sent[] = [];
      const during = await loadWhile((async () => {
        const burst = Array.from({ length: BURST }, () => payNext(b.key));
        await Promise.race(burst);
        await begin();
        away_ms = performance.now();
        await pause(PHASE_MS);
        of_burst.push(...await Promise.all(burst));
      })());
      const of_b = [...during.b, ...of_burst];
      const refused = assertAway(of_b, away_ms);
      await end();
      await untilBack([...before.a, ...before.b, ...during.a, ...of_b].filter(failed));
      return {
        before: before.a,
        during: during.a.filter(({ at_ms }) => at_ms > away_ms),
        refused_ms: Math.max(...refused.map(({ ms }) => ms)),
      };
    };
    const withstand = async (outage: Outage) => {
      const rounds: string[] = [];
      while (rounds.length < ROUNDS) {
        const { before, during, refused_ms } = await measure(outage);
        const failures = [...before, ...during].filter(failed).length;
        const [usual, now] = [before, during].map((sent) => sent.map(({ ms }) => ms));
        rounds.push(
          `before: ${summary(usual!)}; during: ${summary(now!)}, ${failures} without success; ` +
            `503 within ${refused_ms.toFixed(1)} ms`,
        );
        console.log(rounds.at(-1));
        const [usual_ms, now_ms] = [usual!, now!].map((all) => percentile(all, 0.99));
        const is_fast = now_ms! <= GROWTH * usual_ms! + SHARED_MS &&
          refused_ms < AWAY_WITHIN_MS + usual_ms!;
        if (failures === 0 && is_fast) return;
      }
      assert.fail(`every round is outside the limits:\n${rounds.join("\n")}`);
    };

    await t.step(
      "a killed cell costs the other nothing",
      () => withstand({ begin: b.kill, end: b.restart }),
    );
    await t.step("so does a cell without its database", async () => {
      let over: PromiseWithResolvers<void>;
      let restarted: Promise<void>;
      await withstand({
        begin() {
          const { promise, resolve } = Promise.withResolvers<void>();
          over = Promise.withResolvers();
          restarted = server.restart(() => (resolve(), over.promise));
          return promise;
        },
        end: () => (over.resolve(), restarted),
      });
    });
    await t.step("a silent cell is 503 when two health checks have failed", async () => {
      b.freeze();
      const sent = await payNext(b.key);
      b.resume();
      assertAway([sent], 0);
      assert.ok(sent.ms < SILENT_WITHIN_MS, `${sent.ms} ms`);
      await untilBack([sent]);
    });
    await t.step("requests under way on kept connections go to another instance", async () => {
      const { port } = new URL(proxy.origin);
      const path = "/functions/v1/api-v1-payments";
      const read: RawRequest = { line: `GET ${path}/health` };
      const order = `order-${orders[b.key]!++}`;
      const write: RawRequest = {
        line: `POST ${path}/v1/payments`,
        headers: {
          "Authorization": `Bearer ${b.key}`,
          "Content-Type": "application/json",
          "Idempotency-Key": order,
        },
        body: JSON.stringify({ amount: 1000, currency: "EUR" }),
      };
      const kept = await Promise.all(
        Array.from(
          { length: 8 },
          async () => await keepConnection(await Deno.connect({ port: Number(port) }), read),
        ),
      );
      b.freeze();
      // Half of the reads are sent to each cell, because they have no key.
      const responses = kept.map(({ send }, i) => send(i === 0 ? write : read));
      await pause(100);
      await b.kill();
      const [written, ...others] = await Promise.all(responses);
      for (const text of others) assert.match(text, /^HTTP\/1\.1 200 /);
      // The cell has no other instance.
      assert.match(written!, /^$|^HTTP\/1\.1 503 [^]*retry-after: 1/i);
      for (const { close } of kept) close();
      await b.restart();
      await until("back", async () => !failed(await pay(b.key, order)), BACK_WITHIN_MS);
    });
    await t.step("each order is one payment", async () => {
      assert.deepEqual([await a.payments(), await b.payments()], Object.values(orders));
    });
  },
);

function failed({ status }: Sent): boolean {
  return status !== 201;
}

/** Asserts that a cell is away since a time, and returns its responses from then on. */
function assertAway(sent: readonly Sent[], away_ms: number): Sent[] {
  const refused = sent.filter((each) => failed(each) || each.at_ms > away_ms);
  for (const { at_ms, status, headers, text } of refused) {
    // The request was under way when the cell died, and a part of its response had arrived.
    if (at_ms < away_ms && status === 0) continue;
    assert.equal(status, 503, text);
    assert.equal(headers.get("Retry-After"), "1");
    const { error } = ErrorBody.parse(JSON.parse(text));
    assert.equal(error.code, "service_unavailable");
    assert.equal(headers.get("Request-Id"), error.request_id);
  }
  return refused;
}
