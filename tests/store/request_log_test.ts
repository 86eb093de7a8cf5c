/**
 * The log of requests: batches, its bounds, and the entries that are lost and counted.
 */

import assert from "node:assert/strict";
import { RequestLog, type RequestLogEntry } from "../../shared/store/request_log.ts";

const LIMITS = { collect_ms: 5, most: 4, waiting: 20, stored: 6 };
type Sent = { ids: string[]; replays: [key: string, count: number][] };

/** An error of the driver with this code. */
function driverError(code: string): Error {
  return Object.assign(new Error("refused"), { code });
}

function entryOf(id: number, environment_id = "env_1"): RequestLogEntry {
  return {
    environment_id,
    api_key_id: "key_1",
    id: `req_${id}`,
    method: "GET",
    path: "/",
    status: 200,
    duration_us: 1,
    at: "2026-11-20T09:00:00.000Z",
  };
}

/** A queue whose statements a test decides, with what they carried and what was lost. */
function openLog(
  respond: (n: number) => Promise<unknown> = () => Promise.resolve(),
  limits = LIMITS,
) {
  const sent: Sent[] = [];
  const lost: number[] = [];
  const log = new RequestLog(
    (requests, replays) => {
      sent.push({
        ids: requests.map(({ id }) => id),
        replays: replays.map(({ key, count }) => [key, count]),
      });
      return respond(sent.length);
    },
    (count) => lost.push(count),
    () => {},
    limits,
  );
  return { log, sent, lost };
}

Deno.test("RequestLog sends requests together, and the replays of a key as their number", async () => {
  const { log, sent, lost } = openLog();
  for (let i = 0; i < 3; i++) log.countReplay("env_1", "key_1", "a");
  log.countReplay("env_1", "key_1", "b");
  for (let i = 0; i < 6; i++) log.logRequest(entryOf(i));
  assert.deepEqual(sent, []);
  await log.close();
  assert.deepEqual(sent, [
    { ids: ["req_0", "req_1", "req_2", "req_3"], replays: [] },
    { ids: ["req_4", "req_5"], replays: [["a", 3], ["b", 1]] },
  ]);
  assert.deepEqual(lost, []);
});

Deno.test("RequestLog writes after a moment, and what a flush has written only once", async () => {
  const { log, sent } = openLog();
  log.logRequest(entryOf(0));
  await log.flush();
  log.logRequest(entryOf(1));
  for (let i = 0; i < 1000 && sent.length < 2; i++) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  assert.deepEqual(sent.map(({ ids }) => ids), [["req_0"], ["req_1"]]);
});

Deno.test("RequestLog writes at once when half of its places are taken", async () => {
  const { log, sent, lost } = openLog(undefined, { ...LIMITS, collect_ms: 60_000 });
  for (let i = 0; i < 40; i++) {
    log.logRequest(entryOf(i, `env_${i}`));
    if (i % 10 === 9) await new Promise((resolve) => setTimeout(resolve));
  }
  await log.close();
  assert.deepEqual([sent.flatMap(({ ids }) => ids).length, lost], [40, []]);
});

Deno.test("RequestLog writes the newest requests of a sandbox, as many as are stored", async () => {
  const { log, sent, lost } = openLog();
  log.logRequest(entryOf(0, "env_2"));
  for (let i = 1; i <= 30; i++) log.logRequest(entryOf(i));
  log.logRequest(entryOf(31, "env_2"));
  await log.flush();
  const ids = [0, 31, 25, 26, 27, 28, 29, 30].map((i) => `req_${i}`);
  assert.deepEqual(sent.flatMap(({ ids }) => ids), ids);
  for (let i = 0; i < 22; i++) log.logRequest(entryOf(i, `env_${i}`));
  await log.close();
  // Those of the flush have left their places.
  assert.deepEqual([sent.length, lost], [7, [2]]);
});

Deno.test("RequestLog drops and counts what a full queue cannot hold", async () => {
  const { log, sent, lost } = openLog();
  for (let i = 0; i < 23; i++) log.logRequest(entryOf(i, `env_${i}`));
  for (let i = 0; i < 22; i++) log.countReplay("env_1", "key_1", `key-${i}`);
  await log.close();
  assert.equal(sent.flatMap(({ ids }) => ids).length, 20);
  assert.deepEqual(lost, [5]);
});

Deno.test("RequestLog keeps requests while the database is unavailable", async () => {
  const { log, sent, lost } = openLog((n) =>
    n <= 2 ? Promise.reject(driverError("57P03")) : Promise.resolve()
  );
  log.logRequest(entryOf(1));
  log.countReplay("env_1", "key_1", "a");
  await log.flush();
  await log.flush();
  log.logRequest(entryOf(2));
  await log.close();
  assert.deepEqual(sent.map(({ ids }) => ids), [["req_1"], ["req_1"], ["req_1", "req_2"]]);
  // The replay may have been counted, so it does not come again.
  assert.deepEqual([sent[0]!.replays, sent[1]!.replays, lost], [[["a", 1]], [], [1]]);
});

Deno.test("RequestLog that closes beside a failing write writes what waits", async () => {
  const { log, sent, lost } = openLog((n) =>
    n === 1 ? Promise.reject(driverError("57P01")) : Promise.resolve()
  );
  for (let i = 0; i < 6; i++) log.logRequest(entryOf(i));
  const flushed = log.flush();
  await log.close();
  await flushed;
  assert.deepEqual(sent.map(({ ids }) => ids.length), [4, 4, 2]);
  assert.deepEqual(lost, []);
});

Deno.test("RequestLog counts entries that the database refuses or never takes", async () => {
  const refused = openLog((n) => n < 3 ? Promise.reject(driverError("23514")) : Promise.resolve());
  for (let i = 0; i < 3; i++) refused.log.logRequest(entryOf(i));
  await refused.log.close();
  assert.deepEqual(refused.sent.map(({ ids }) => ids.length), [3, 1, 1, 1]);
  assert.deepEqual(refused.lost, [1]);
  const unavailable = openLog(() => Promise.reject(driverError("57P03")));
  unavailable.log.logRequest(entryOf(1));
  await unavailable.log.close();
  assert.deepEqual(unavailable.lost, [1]);
});
