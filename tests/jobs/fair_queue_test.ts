/**
 * FairQueue: the slots of accounts, environments and endpoints, turns, bounds and rests. FairTime:
 * the time of a dispatcher, which sends one poison delivery at a time, divided between accounts.
 */

import assert from "node:assert/strict";
import {
  FairQueue,
  type FairQueueBounds,
  type Owners,
  type Slot,
} from "../../shared/jobs/fair_queue.ts";

import { FairTime } from "../../shared/jobs/fair_time.ts";

/** Resolves after all work that waits only for promises. */
function settled(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}

/**
 * A queue with a clock that the test sets. Names the owners of a job by a path: `account/endpoint`.
 */
function open(bounds: Partial<FairQueueBounds> = {}) {
  const clock = { now_ms: 1_000 };
  const queue = new FairQueue({ slots: 1, levels: [1], ...bounds }, () => clock.now_ms);
  const begun: string[] = [];
  const slots: Slot[] = [];
  const refused: unknown[] = [];
  const add = async (...paths: string[]) => {
    for (const path of paths) {
      queue.take(path.split("/").slice(0, bounds.levels?.length ?? 1) as unknown as Owners).then(
        (slot) => {
          begun.push(path);
          slots.push(slot);
        },
        (error) => refused.push(error),
      );
    }
    await settled();
  };
  /** Ends the oldest running job. */
  const end = async (is_success = true, rest_ms = 0) => {
    const slot = slots.shift()!;
    slot.endPart(is_success);
    slot.leave(rest_ms);
    await settled();
  };
  /** Adds jobs and ends them one after another, each after `took_ms`. */
  const train = async (path: string, count: number, took_ms: number, is_success = true) => {
    for (let i = 0; i < count; i++) {
      await add(path);
      clock.now_ms += took_ms;
      await end(is_success);
    }
  };
  return { clock, queue, begun, slots, refused, add, end, train };
}

/** Adds many jobs. Returns how many of them begin. */
async function flood({ add, begun }: ReturnType<typeof open>, path: string, count = 40) {
  const before = begun.length;
  await add(...Array(count).fill(path));
  return begun.length - before;
}

function codesOf(errors: unknown[]) {
  return (errors as { code: string; headers: Record<string, string> }[])
    .map(({ code, headers }) => `${code} ${headers["Retry-After"]}`);
}

Deno.test("FairQueue takes owners in turns, for any number of jobs", async () => {
  const { add, end, begun } = open();
  const waiting = ["a", "a", "b", "c", "a", "b", "c", "a", "a"];
  await add(...["a", "a", "a", "a", "a", "b", "c", "c", "b"]);
  for (const _ of waiting) await end();
  assert.deepEqual(begun, waiting);
});

Deno.test("FairQueue with one slot for each owner runs its jobs in order, beside all others", async () => {
  const opened = open({ slots: Infinity });
  await opened.add("a", "a", "b", "c");
  assert.deepEqual(opened.begun, ["a", "b", "c"]);
  await opened.end();
  assert.deepEqual(opened.begun, ["a", "b", "c", "a"]);
});

Deno.test("FairQueue keeps slots for other owners during the jobs of one", async () => {
  const { add, end, begun } = open({ slots: 3, levels: [2] });
  await add("a", "a", "a", "b", "c");
  assert.deepEqual(begun, ["a", "a", "b"]);
  await end();
  assert.deepEqual(begun, ["a", "a", "b", "a"]);
});

Deno.test("FairQueue bounds each level: endpoint, environment, account, all", async () => {
  const opened = open({ slots: 12, levels: [9, 6, 4] });
  const counts = [];
  for (const path of ["a/a1/x", "a/a1/y", "a/a2/z", "b/b1/v", "c/c1/w"]) {
    counts.push(await flood(opened, path));
  }
  assert.deepEqual(counts, [4, 2, 3, 3, 0]);
});

Deno.test("FairQueue reserves slots for owners with few jobs", async () => {
  const opened = open({ slots: 10, reserved: { slots: 4, few: 2 }, levels: [8] });
  const counts = [];
  for (const path of ["a", "b", "c", "d"]) counts.push(await flood(opened, path));
  assert.deepEqual(counts, [6, 2, 2, 0]);
});

Deno.test("FairQueue: an owner begins with few slots, and each fast success adds one", async () => {
  const opened = open({ slots: 100, levels: [{ first: 4, most: 16, least: 2 }] });
  assert.equal(await flood(opened, "a"), 4);
  for (let most = 5; most <= 20; most++) {
    opened.clock.now_ms += 10;
    await opened.end();
    assert.equal(opened.slots.length, Math.min(16, most));
  }
});

/** [name, duration of each job, jobs that may run] */
const PACES: [string, number, number][] = [
  ["half a second", 500, 16],
  ["a second", 1_000, 8],
  ["two seconds", 2_000, 4],
  ["thirteen seconds", 13_000, 2],
];

for (const [name, took_ms, expected] of PACES) {
  Deno.test(`FairQueue: an outer owner whose jobs take ${name} has ${expected} slots`, async () => {
    const opened = open({ slots: 100, levels: [{ first: 4, most: 16, least: 2 }, 100] });
    await opened.train("a/1", 20, 1);
    await opened.train("a/1", 40, took_ms);
    // On new endpoints too, because the account is remembered.
    assert.equal(await flood(opened, "a/2"), expected);
  });
}

Deno.test("FairQueue counts a long job as slow before it ends", async () => {
  const opened = open({ slots: 100, levels: [{ first: 4, most: 16, least: 2 }] });
  await flood(opened, "a");
  opened.clock.now_ms += 4_000;
  await opened.end();
  assert.equal(opened.slots.length, 3);
});

Deno.test("FairQueue: an innermost owner without jobs begins again", async () => {
  const opened = open({ slots: 100, levels: [{ first: 4, most: 16, least: 2 }] });
  await opened.train("a", 20, 1);
  assert.equal(await flood(opened, "a"), 4);
});

Deno.test("FairQueue: an owner whose last job failed has fewer slots", async () => {
  const opened = open({ slots: 100, levels: [{ first: 4, most: 16, least: 4, failing: 2 }] });
  await flood(opened, "a");
  for (let i = 0; i < 3; i++) await opened.end(false);
  assert.equal(opened.slots.length, 2);
});

Deno.test("FairQueue: the parts of a job keep its slot", async () => {
  const { queue, add, begun } = open();
  const slot = (await queue.take(["a"], 3))!;
  await add("b");
  slot.endPart(true);
  slot.endPart(true);
  await settled();
  assert.deepEqual(begun, []);
  // The job ends without its last part.
  slot.leave();
  await settled();
  assert.deepEqual(begun, ["b"]);
  assert.deepEqual([...queue.owner_queues].map(({ owners }) => owners), [["b"]]);
});

Deno.test("FairQueue: a running job can move to another owner", async () => {
  const { queue, add, begun } = open({ slots: 3, levels: [1] });
  const slot = queue.tryTake(["early"])!;
  slot.move(["a"]);
  await add("a", "early");
  assert.deepEqual(begun, ["early"]);
  slot.leave();
  await settled();
  assert.deepEqual(begun, ["early", "a"]);
});

Deno.test("FairQueue.tryTake() takes no slot of a full queue, but may take one above all", () => {
  const { queue } = open();
  assert.ok(queue.tryTake(["a"]));
  assert.equal(queue.tryTake(["b"]), null);
  assert.ok(queue.tryTake(["b"], 1, true));
});

Deno.test("FairQueue refuses a job beyond the bound of its owner, and of all", async () => {
  const opened = open({ waiting_of_owner: 2, waiting: 3 });
  await opened.add("a", "a", "a", "a", "b", "c");
  assert.deepEqual(codesOf(opened.refused), ["rate_limited 1", "rate_limited 1"]);
  for (let i = 0; i < 4; i++) await opened.end();
  assert.deepEqual(opened.begun, ["a", "a", "b", "a"]);
  assert.deepEqual([...opened.queue.owner_queues], []);
});

Deno.test("FairQueue refuses jobs that wait too long, and goes on", async () => {
  const opened = open({ patience_ms: 20 });
  await opened.add("a", "a", "b", "b");
  while (opened.refused.length < 3) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual(codesOf(opened.refused), Array(3).fill("service_unavailable 1"));
  await opened.end();
  await opened.add("b");
  assert.deepEqual(opened.begun, ["a", "b"]);
});

Deno.test("FairQueue.cancel() rejects the newest waiting jobs of an owner", async () => {
  const { queue, refused, add, begun, end } = open();
  await add("a", "a", "a", "b");
  queue.cancel("a", "too many", 1);
  queue.cancel("c", "unknown");
  await end();
  assert.deepEqual([refused, begun], [["too many"], ["a", "a"]]);
  queue.cancelAll("over");
  await settled();
  assert.deepEqual(refused, ["too many", "over"]);
});

Deno.test("FairQueue begins no job during a rest", async () => {
  const opened = open();
  const { queue, clock, add, end, begun } = opened;
  await add("a", "a");
  await end(true, 20);
  assert.deepEqual(begun, ["a"]);
  assert.equal(queue.tryTake(["b"]), null);
  clock.now_ms += 20;
  while (begun.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  await end(true, 20);
  // Without a waiting job there is no timer: Deno fails a test that leaves one.
  await add("a");
  queue.cancelAll("over");
});

Deno.test("FairQueue.run() returns the result of a job, and frees the slot of a failed one", async () => {
  const { queue } = open();
  const failure = new Error("of this job");
  const failing = queue.run(["a"], () => Promise.reject(failure));
  const next = queue.run(["a"], () => Promise.resolve("result"));
  await assert.rejects(failing, failure);
  assert.equal(await next, "result");
});

Deno.test("FairQueue remembers 4 096 owners and the slots of those with jobs", async () => {
  const opened = open({ slots: 10_000, levels: [1, 1] });
  await opened.add("busy/0");
  for (let i = 0; i < 5_000; i++) opened.queue.tryTake([`a${i}`, `x${i}`])!.leave();
  assert.equal(opened.queue.tryTake(["busy", "other"]), null);
});

/**
 * The number of turns of each account within `for_ms`, if each always has a poison delivery
 * waiting.
 */
function share(turns: FairTime, takes_ms: Record<string, number>, for_ms: number) {
  const counts: Record<string, number> = {};
  for (let now = 0; now < for_ms;) {
    const ahead = turns.ahead()!;
    // The database takes the account that is least ahead, then by name.
    const [account] = Object.keys(takes_ms).toSorted((a, b) =>
      (ahead[a] ?? 0) - (ahead[b] ?? 0) || (a < b ? -1 : 1)
    );
    turns.begin(account!, now);
    assert.equal(turns.ahead(), null);
    turns.end(now += takes_ms[account!]!);
    counts[account!] = (counts[account!] ?? 0) + 1;
  }
  return counts;
}

Deno.test("FairTime gives equal turns to accounts with equally slow poison deliveries", () => {
  assert.deepEqual(share(new FairTime(), { a: 5, b: 5, c: 5 }, 150), { a: 10, b: 10, c: 10 });
});

Deno.test("FairTime gives an account with slow poison deliveries no more time", () => {
  const counts = share(new FairTime(), { quick: 5, silent: 15_000 }, 60_000);
  assert.ok(counts.silent === 2 && counts.quick! >= 3_000, JSON.stringify(counts));
});

Deno.test("FairTime counts a poison delivery that takes no time as 1 ms", () => {
  const turns = new FairTime();
  turns.begin("a", 0);
  turns.end(0);
  assert.deepEqual({ ...turns.ahead() }, { a: 1 });
});

Deno.test("FairTime gives a new account neither a debt nor a credit", () => {
  const turns = new FairTime();
  share(turns, { a: 1_000, b: 1_000 }, 100_000);
  const counts = share(turns, { a: 1_000, b: 1_000, late: 1_000 }, 30_000);
  for (const count of Object.values(counts)) assert.ok(Math.abs(count - 10) <= 1, `${count}`);
});

Deno.test("FairTime stores only accounts that are ahead", () => {
  const turns = new FairTime();
  for (let i = 0; i < 10_000; i++) {
    turns.begin(`account ${i}`, i);
    turns.end(i + 1);
  }
  share(turns, { last: 5 }, 100);
  assert.deepEqual(Object.keys(turns.ahead()!), ["last"]);
});
