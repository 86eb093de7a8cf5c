/**
 * The log of requests: batches, its bounds, and the entries that are lost and counted.
 */

import assert from "node:assert/strict";
import { RequestLog, type RequestLogEntry } from "../../shared/store/request_log.ts";

const LIMITS = { collect_ms: 5, most: 4, waiting: 10 };
type Sent = { ids: string[]; replays: [key: string, count: number][] };

/** An error of the driver with this code. */
function driverError(code: string): Error {
  return Object.assign(new Error("refused"), { code });
}

function entryOf(id: number): RequestLogEntry {
  return {
    environment_id: "env_1",
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
function openLog(respond: (n: number) => Promise<unknown> = () => Promise.resolve()) {
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
    LIMITS,
  );
  return { log, sent, lost };
}

Deno.test("RequestLog sends requests together, and the replays of a key as their number", async () => {
  const { log, sent, lost } = openLog();
  for (let i = 0; i < 3; i++) log.countReplay("env_1", "key_1", "a");
  log.countReplay("env_1", "key_1", "b");
  for (let i = 0; i < 6; i++) log.logRequest(entryOf(i));
  assert.deepEqual(sent, [{ ids: ["req_0", "req_1"], replays: [["a", 3], ["b", 1]] }]);
  log.countReplay("env_1", "key_1", "a");
  await log.close();
  assert.deepEqual(sent.slice(1), [
    { ids: ["req_2", "req_3", "req_4", "req_5"], replays: [] },
    { ids: [], replays: [["a", 1]] },
  ]);
  assert.deepEqual(lost, []);
});

Deno.test("RequestLog drops and counts what a full queue cannot hold", async () => {
  const { log, sent, lost } = openLog();
  for (let i = 0; i < 13; i++) log.logRequest(entryOf(i));
  for (let i = 0; i < 12; i++) log.countReplay("env_1", "key_1", `key-${i}`);
  await log.close();
  assert.equal(sent.flatMap(({ ids }) => ids).length, 10);
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
  assert.deepEqual(sent.map(({ ids }) => ids), [["req_1"], ["req_1"], ["req_2", "req_1"]]);
  // The replay may have been counted, so it does not come again.
  assert.deepEqual([sent[0]!.replays, sent[1]!.replays, lost], [[["a", 1]], [], [1]]);
});

Deno.test("RequestLog counts entries that the database refuses or never takes", async () => {
  const refused = openLog(() => Promise.reject(driverError("23514")));
  refused.log.logRequest(entryOf(1));
  await refused.log.close();
  assert.deepEqual(refused.lost, [1]);
  const unavailable = openLog(() => Promise.reject(driverError("57P03")));
  unavailable.log.logRequest(entryOf(1));
  await unavailable.log.close();
  assert.deepEqual(unavailable.lost, [1]);
});
