/**
 * The queue of notes about requests: batches, its bounds, and the notes that are lost and counted.
 */

import assert from "node:assert/strict";
import { type NotedRequest, RequestNotes } from "../../shared/store/request_notes.ts";

const LIMITS = { collect_ms: 5, batch: 4, waiting: 10 };
type Sent = { ids: string[]; replays: [key: string, count: number][] };

/** An error of the driver with this code. */
function driverError(code: string): Error {
  return Object.assign(new Error("refused"), { code });
}

function noted(id: number): NotedRequest {
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
function openNotes(answer: (n: number) => Promise<unknown> = () => Promise.resolve()) {
  const sent: Sent[] = [];
  const lost: number[] = [];
  const notes = new RequestNotes(
    (requests, replays) => {
      sent.push({
        ids: requests.map(({ id }) => id),
        replays: replays.map(({ key, count }) => [key, count]),
      });
      return answer(sent.length);
    },
    (count) => lost.push(count),
    () => {},
    LIMITS,
  );
  return { notes, sent, lost };
}

Deno.test("RequestNotes sends notes together, in batches, after a moment", async () => {
  const { notes, sent, lost } = openNotes();
  for (let i = 0; i < 6; i++) notes.logRequest(noted(i));
  for (let i = 0; i < 3; i++) notes.countReplay("env_1", "key_1", "a");
  notes.countReplay("env_1", "key_1", "b");
  assert.deepEqual(sent, []);
  while (sent.length < 2) await new Promise((resolve) => setTimeout(resolve, 1));
  await notes.close();
  assert.deepEqual(sent, [
    { ids: ["req_0", "req_1", "req_2", "req_3"], replays: [["a", 3], ["b", 1]] },
    { ids: ["req_4", "req_5"], replays: [] },
  ]);
  assert.deepEqual(lost, []);
});

Deno.test("RequestNotes.close() writes everything that waits", async () => {
  const { notes, sent, lost } = openNotes();
  for (let i = 0; i < 10; i++) notes.logRequest(noted(i));
  await notes.close();
  assert.equal(sent.flatMap(({ ids }) => ids).length, 10);
  assert.deepEqual(lost, []);
});

Deno.test("RequestNotes.flush() waits for the notes before it, also those under way", async () => {
  const first = Promise.withResolvers<void>();
  const { notes, sent } = openNotes((n) => n === 1 ? first.promise : Promise.resolve());
  notes.logRequest(noted(1));
  const flushed = notes.flush();
  notes.logRequest(noted(2));
  const again = notes.flush();
  first.resolve();
  await Promise.all([flushed, again]);
  assert.deepEqual(sent.map(({ ids }) => ids), [["req_1"], ["req_2"]]);
  await notes.close();
});

Deno.test("RequestNotes.flush() waits for a batch that another flush has begun", async () => {
  const batches = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { notes, sent } = openNotes((n) => batches[n - 1]!.promise);
  notes.logRequest(noted(1));
  const one = notes.flush();
  notes.logRequest(noted(2));
  let has_ended = false;
  const two = notes.flush().then(() => has_ended = true);
  batches[0]!.resolve();
  while (sent.length < 2) await new Promise((resolve) => setTimeout(resolve, 1));
  await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(has_ended, false);
  batches[1]!.resolve();
  await Promise.all([one, two]);
  await notes.close();
});

Deno.test("RequestNotes drops and counts what a full queue cannot hold", async () => {
  const { notes, sent, lost } = openNotes();
  for (let i = 0; i < 13; i++) notes.logRequest(noted(i));
  for (let i = 0; i < 12; i++) notes.countReplay("env_1", "key_1", `key-${i}`);
  await notes.close();
  assert.equal(sent.flatMap(({ ids }) => ids).length, 10);
  assert.deepEqual(lost, [5]);
});

Deno.test("RequestNotes keeps requests while the database is unavailable", async () => {
  const { notes, sent, lost } = openNotes((n) =>
    n <= 2 ? Promise.reject(driverError("57P03")) : Promise.resolve()
  );
  notes.logRequest(noted(1));
  notes.countReplay("env_1", "key_1", "a");
  await notes.flush();
  await notes.flush();
  notes.logRequest(noted(2));
  await notes.close();
  assert.deepEqual(sent.map(({ ids }) => ids), [["req_1"], ["req_1"], ["req_1", "req_2"]]);
  // The replay may have been counted, so it does not come again.
  assert.deepEqual([sent[0]!.replays, sent[1]!.replays, lost], [[["a", 1]], [], [1]]);
});

Deno.test("RequestNotes counts notes that the database refuses or never takes", async () => {
  const refused = openNotes(() => Promise.reject(driverError("23514")));
  refused.notes.logRequest(noted(1));
  await refused.notes.close();
  assert.deepEqual(refused.lost, [1]);
  const unavailable = openNotes(() => Promise.reject(driverError("57P03")));
  unavailable.notes.logRequest(noted(1));
  await unavailable.notes.close();
  assert.deepEqual(unavailable.lost, [1]);
});
