/**
 * Worker: it leases, runs and records until nothing is due, and stops without losing a result.
 * Alarm: a process wakes itself for the work that it has rescheduled.
 */

import assert from "node:assert/strict";
import { Alarm } from "../../shared/jobs/alarm.ts";
import { JobWorker, type Leased } from "../../shared/jobs/worker.ts";
import { until } from "../support/common/until.ts";

/** Resolves after all work that waits only for promises. */
function settled(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}

type Poll = { results: string[]; leased: string[] };

/**
 * A worker over a list of due jobs. The test ends each job; its result is its name. A poll that
 * leases as many jobs as it may reports that more may be due.
 */
function open({ most = 2, ...options }: { most?: number; collect_ms?: number } = {}) {
  const due: string[] = [];
  const polls: Poll[] = [];
  const begun = new Map<string, PromiseWithResolvers<void>>();
  const errors: unknown[] = [];
  const state = { failure: null as Error | null, polling: Promise.resolve() };
  const worker: JobWorker<string, string> = new JobWorker<string, string>({
    async recordAndLease(results): Promise<Leased<string>> {
      const leased = worker.is_stopped ? [] : due.splice(0, most);
      polls.push({ results: [...results], leased });
      await state.polling;
      if (state.failure !== null) {
        due.push(...leased);
        worker.record(...results);
        throw state.failure;
      }
      return { jobs: leased, has_more: leased.length === most };
    },
    async run(job) {
      const end = Promise.withResolvers<void>();
      begun.set(job, end);
      await end.promise;
      worker.record(job);
    },
    clock: Date.now,
    on_error: (error) => errors.push(error),
    ...options,
  });
  /** Waits until a job has begun, and ends it. */
  const end = async (job: string, error?: Error) => {
    while (!begun.has(job)) await settled();
    if (error) begun.get(job)!.reject(error);
    else begun.get(job)!.resolve();
  };
  return { worker, due, polls, begun, errors, state, end };
}

Deno.test("JobWorker leases until nothing is due, and records what has ended", async () => {
  const { worker, due, polls, end } = open();
  due.push("a", "b", "c");
  const idle = worker.notify();
  for (const job of ["a", "b", "c"]) await end(job);
  await idle;
  assert.deepEqual(polls.flatMap(({ leased }) => leased), ["a", "b", "c"]);
  assert.deepEqual(polls.flatMap(({ results }) => results).sort(), ["a", "b", "c"]);
  assert.deepEqual(polls.at(-1)!.leased, []);
});

Deno.test("JobWorker polls again for a notification during a poll, and shares a loop", async () => {
  const { worker, due, polls, state, end } = open();
  const polling = Promise.withResolvers<void>();
  state.polling = polling.promise;
  const idle = worker.notify();
  await settled();
  due.push("late");
  assert.equal(worker.notify(), idle);
  polling.resolve();
  await end("late");
  await idle;
  assert.deepEqual(polls.slice(0, 2).map(({ leased }) => leased), [[], ["late"]]);
});

Deno.test("JobWorker.idle() ends when nothing is left, or after its time", async () => {
  const { worker, due, end } = open();
  due.push("a");
  const began = performance.now();
  await worker.idle(30);
  assert.ok(performance.now() - began >= 29, "the job still runs");
  const idle = worker.idle(60_000);
  await end("a");
  await idle;
  await worker.idle(60_000);
});

Deno.test("JobWorker does not let a slow job hold up others", async () => {
  const { worker, due, begun, end } = open({ collect_ms: 20 });
  due.push("slow");
  const idle = worker.notify();
  while (!begun.has("slow")) await settled();
  due.push("quick");
  void worker.notify();
  await end("quick");
  await end("slow");
  await idle;
});

Deno.test("JobWorker records results of one poll together", async () => {
  const { worker, due, polls, end } = open({ most: 3, collect_ms: 60_000 });
  const began = performance.now();
  due.push("a", "b");
  const idle = worker.notify();
  await end("a");
  await settled();
  await end("b");
  await idle;
  // The pause ends when all jobs of the poll have ended.
  assert.ok(performance.now() - began < 30_000);
  assert.deepEqual(polls.map(({ results }) => results), [[], ["a", "b"]]);
});

Deno.test("JobWorker keeps the results of a failed poll, and does not try again by itself", async () => {
  const { worker, due, polls, errors, state, end } = open();
  due.push("a");
  const idle = worker.notify();
  while (polls.length === 0) await settled();
  state.failure = new Error("no database");
  await end("a");
  await idle;
  const { length } = polls;
  assert.ok(length <= 3, `${length} polls`);
  assert.ok(errors.length > 0 && errors.every((error) => error === state.failure));
  state.failure = null;
  await worker.notify();
  assert.deepEqual(polls[length]!.results, ["a"]);
});

Deno.test("JobWorker reports a job that fails, and goes on", async () => {
  const { worker, due, polls, errors, end } = open();
  const failure = new Error("of this job");
  due.push("bad", "good");
  const idle = worker.notify();
  await end("bad", failure);
  await end("good");
  await idle;
  assert.deepEqual(errors, [failure]);
  assert.deepEqual(polls.flatMap(({ results }) => results), ["good"]);
});

Deno.test("Worker.notifyAt() notifies at a time", async () => {
  const { worker, due, begun, end } = open();
  worker.notifyAt(Date.now() + 20);
  due.push("later");
  assert.equal(begun.size, 0);
  await end("later");
  await worker.stop();
});

Deno.test("Worker.stop() leases nothing more, and records the running jobs", async () => {
  const { worker, due, polls, begun, end } = open();
  due.push("a");
  void worker.notify();
  while (!begun.has("a")) await settled();
  due.push("b");
  const stopped = worker.stop();
  await end("a");
  await stopped;
  assert.deepEqual(due, ["b"]);
  assert.deepEqual(polls.flatMap(({ results }) => results), ["a"]);
});

Deno.test("Worker.stop() gives running jobs back when its time is over", async () => {
  const { worker, due, polls, begun, end } = open();
  due.push("a");
  const idle = worker.notify();
  while (!begun.has("a")) await settled();
  await worker.stop(Promise.resolve(), () => worker.record("a given back"));
  assert.deepEqual(polls.at(-1)!.results, ["a given back"]);
  await end("a");
  await idle;
});

Deno.test("Worker.stop() during a poll waits for its jobs", async () => {
  const { worker, due, polls, state, end } = open();
  const polling = Promise.withResolvers<void>();
  state.polling = polling.promise;
  due.push("a");
  void worker.notify();
  await settled();
  const stopped = worker.stop();
  polling.resolve();
  await end("a");
  await stopped;
  assert.deepEqual(polls.at(-1)!.results, ["a"]);
});

Deno.test("Alarm rings at each of its times, in any order, and not after close()", async () => {
  const rung: number[] = [];
  const alarm = new Alarm(Date.now, () => rung.push(Date.now()));
  const now = Date.now();
  const times = [now + 60, now + 20, now + 40];
  for (const at_ms of times) alarm.at(at_ms);
  await until("the last has rung", () => rung.some((at_ms) => at_ms >= now + 60));
  // A busy process rings once for several times that have passed.
  assert.ok(rung.length <= 3 && rung[0]! >= now + 20, rung.join(", "));
  // Deno fails a test that leaves a timer.
  alarm.at(Date.now() + 60_000);
  alarm.close();
  alarm.at(Date.now());
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.ok(rung.length <= 3);
});

Deno.test("Alarm takes 1 000 times, and none in more than ten minutes", () => {
  let now = 0;
  const set: number[] = [];
  const original = globalThis.setTimeout;
  globalThis.setTimeout = ((_: unknown, ms: number) => set.push(ms)) as never;
  try {
    const alarm = new Alarm(() => now, () => {});
    alarm.at(10 * 60_000 + 1);
    assert.deepEqual(set, []);
    alarm.at(10 * 60_000);
    for (let i = 1; i < 1_000; i++) alarm.at(10 * 60_000 - i);
    assert.equal(set.length, 1_000);
    alarm.at(1);
    assert.equal(set.length, 1_000);
    now = 1;
    alarm.close();
  } finally {
    globalThis.setTimeout = original;
  }
});
