/**
 * The queue of changes runs one task at a time for a key, in order. Different keys do not wait for
 * each other.
 */

import assert from "node:assert/strict";
import { KeyedQueue } from "../../shared/domain/changes/keyed_queue.ts";

/** A task that the test ends. */
function controlled<T>() {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  let has_started = false;
  const task = () => {
    has_started = true;
    return promise;
  };
  return { task, resolve, reject, hasStarted: () => has_started };
}

/** Resolves after all work that waits only for promises. */
function settled(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}

Deno.test("KeyedQueue.run() starts a task after all earlier ones of its key", async () => {
  const queue = new KeyedQueue();
  const tasks = [controlled<number>(), controlled<number>(), controlled<number>()];
  const results = tasks.map(({ task }) => queue.run("a", task));
  for (const [i, { resolve }] of tasks.entries()) {
    await settled();
    assert.deepEqual(tasks.map(({ hasStarted }) => hasStarted()), tasks.map((_, j) => j <= i));
    resolve(i);
  }
  assert.deepEqual(await Promise.all(results), [0, 1, 2]);
});

Deno.test("KeyedQueue.run() starts a task of another key at once", async () => {
  const queue = new KeyedQueue();
  const first = controlled<string>();
  const waiting = queue.run("a", first.task);
  assert.equal(await queue.run("b", () => Promise.resolve("done")), "done");
  first.resolve("late");
  assert.equal(await waiting, "late");
});

Deno.test("KeyedQueue.run() continues after a failed task", async () => {
  const queue = new KeyedQueue();
  const first = controlled<string>();
  const failing = queue.run("a", first.task);
  const next = queue.run("a", () => Promise.resolve("done"));
  first.reject(new Error("broken"));
  await assert.rejects(() => failing, { message: "broken" });
  assert.equal(await next, "done");
});

Deno.test("KeyedQueue.run() starts at once when all earlier tasks have ended", async () => {
  const queue = new KeyedQueue();
  await queue.run("a", () => Promise.resolve());
  await settled();
  const later = controlled<void>();
  const running = queue.run("a", later.task);
  assert.equal(later.hasStarted(), true);
  later.resolve();
  await running;
});
