/** `logs tail`: each request of the sandbox once, as it comes. */

import assert from "node:assert/strict";
import { List } from "../../packages/client/list.ts";
import type { LoggedRequest } from "../../packages/client/mod.ts";
import { RequestTail } from "../../packages/sandbox/request_tail.ts";
import { outputOf } from "../support/common/running_command.ts";
import { until } from "../support/common/until.ts";
import { call, launch, PROGRAM, variablesOf } from "../support/package/command_line.ts";
import { type ServedService, withServedService } from "../support/service/served_service.ts";

const PAYMENT = { amount: 1999, currency: "EUR", outcome: "success" } as const;
const SELF = "/api-v1-sandbox/requests";

/** Runs a test over a service that has the log turned on. */
function withLog(run: (served: ServedService) => Promise<void>): Promise<void> {
  return withServedService(run, { request_log: true });
}

/** Waits until the log has so many requests. */
async function logged({ client }: ServedService, count: number): Promise<LoggedRequest[]> {
  let data: LoggedRequest[] = [];
  await until(`${count} requests are in the log`, async () => {
    data = (await client.sandbox.listRequests({ limit: 100 })).data;
    return data.length >= count;
  });
  return data;
}

Deno.test("logs tail shows the last requests, and then each new one once", () =>
  withLog(async (served) => {
    const { client } = served;
    for (let i = 0; i < 3; i++) await client.payments.create(PAYMENT);
    await logged(served, 3);
    const command = launch(["logs", "tail", "--lines", "2"], variablesOf(served), Deno.cwd());
    try {
      await command.printed(/(?:.*POST.*\n){2}/);
      const lines = () => command.stdout().trim().split("\n");
      assert.equal(lines().length, 2);
      const card = { number: "4000 0000 0000 9995", exp_month: 12, exp_year: 2034, cvc: "123" };
      await client.payments.create({ amount: 1, currency: "EUR", card }).catch(() => {});
      await command.printed(/insufficient_funds/);
      await client.payments.create(PAYMENT, { idempotencyKey: "twice" });
      await client.payments.create(PAYMENT, { idempotencyKey: "twice" });
      await client.payments.list({ status: "completed" });
      await command.printed(/GET/);
      assert.equal(lines().length, 6);
      const path = "/api-v1-payments/v1/payments";
      const end = String.raw`  [\d.]+ ms  req_\w+`;
      for (
        const [i, line] of [
          `POST  ${path}  201${end}`,
          `POST  ${path}  201${end}`,
          `POST  ${path}  402 insufficient_funds${end}`,
          `POST  ${path}  201${end}`,
          `POST  ${path}  201${end}  replay`,
          String.raw`GET  ${path}\?status=completed  200${end}`,
        ].entries()
      ) {
        assert.match(lines()[i]!, new RegExp(`^\\d\\d:\\d\\d:\\d\\d  ${line}$`));
      }
      // Its own reads are not in the log.
      assert.ok(!command.stdout().includes(SELF));
      assert.equal((await command.end("SIGINT")).code, 0);
    } finally {
      await command.end("SIGKILL");
    }
  }));

Deno.test("logs tail --no-follow ends, filters, and prints JSON that the API returns", () =>
  withLog(async (served) => {
    const { client } = served;
    for (let i = 0; i < 3; i++) await client.payments.create(PAYMENT, { idempotencyKey: `k${i}` });
    await client.payments.list();
    const all = await logged(served, 4);
    const tail = async (...args: string[]) => {
      const given = ["logs", "tail", "--no-follow", "--json", ...args];
      const { code, stdout, stderr } = await call(given, variablesOf(served));
      assert.equal(code, 0, stderr);
      return stdout.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));
    };
    assert.deepEqual(await tail(), all.toReversed());
    assert.deepEqual(await tail("--lines", "0"), []);
    assert.deepEqual(await tail("--method", "GET"), all.filter(({ method }) => method === "GET"));
    assert.deepEqual((await tail("--idempotency-key", "k1")).length, 1);
    assert.deepEqual(await tail("--status", "402"), []);
    const wrong = await call(["logs", "tail", "--json", "--status", "paid"], variablesOf(served));
    assert.equal(wrong.code, 2);
    // The output of a stream is read line by line.
    assert.equal(JSON.parse(wrong.stdout.trimEnd().split("\n")[0]!).error.param, "status");
  }));

Deno.test("logs tail ends without an error when the reader of its output ends", () =>
  withLog(async (served) => {
    for (let i = 0; i < 3; i++) await served.client.payments.create(PAYMENT);
    await logged(served, 3);
    const more = setInterval(() => served.client.payments.create(PAYMENT).catch(() => {}), 200);
    const script = '"$@" logs tail | head -n 1; echo "${PIPESTATUS[0]}"';
    const printed = await outputOf(["bash", "-c", script, "-", Deno.execPath(), ...PROGRAM], {
      env: variablesOf(served),
    });
    clearInterval(more);
    assert.match(printed, /POST.*\n0\n$/);
  }));

/** A log in memory, newest first, in pages of two. */
function logOf(requests: () => { id: string; at_s: number }[]) {
  return () =>
    new List<LoggedRequest>((cursor) => {
      const all = requests();
      const begin = cursor === undefined ? 0 : Number(cursor);
      const data = all.slice(begin, begin + 2).map(({ id, at_s }) => {
        const created_at = new Date(at_s * 1000).toISOString();
        return { id, created_at } as LoggedRequest;
      });
      const has_more = begin + 2 < all.length;
      const next_cursor = has_more ? String(begin + 2) : null;
      return Promise.resolve({ object: "list", url: SELF, data, has_more, next_cursor });
    });
}

Deno.test("RequestTail.next() finds a long request behind newer ones, and forgets old ones", async () => {
  const requests = [{ id: "a", at_s: 1_000 }, { id: "old", at_s: 900 }];
  const tail = new RequestTail(logOf(() => requests));
  const ids = (found: LoggedRequest[]) => found.map(({ id }) => id);
  assert.deepEqual(ids(await tail.last(1)), ["a"]);
  assert.deepEqual(ids(await tail.next()), []);
  requests.unshift({ id: "c", at_s: 1_005 }, { id: "b", at_s: 1_004 });
  assert.deepEqual(ids(await tail.next()), ["b", "c"]);
  // A request that began 20 seconds ago and has ended now.
  requests.splice(2, 0, { id: "long", at_s: 985 });
  assert.deepEqual(ids(await tail.next()), ["long"]);
  requests.unshift({ id: "d", at_s: 1_100 });
  assert.deepEqual(ids(await tail.next()), ["d"]);
  assert.deepEqual(ids(await tail.next()), []);
});

Deno.test("RequestTail.next() returns the requests of a failed read at the next call", async () => {
  const requests = [{ id: "a", at_s: 1_000 }];
  let failures = 0;
  const read = logOf(() => {
    if (failures-- > 0) throw new Error("no response");
    return requests;
  });
  const tail = new RequestTail(read);
  await tail.last(10);
  requests.unshift({ id: "c", at_s: 1_002 }, { id: "b", at_s: 1_001 });
  failures = 1;
  await assert.rejects(tail.next());
  assert.deepEqual((await tail.next()).map(({ id }) => id), ["b", "c"]);
});
