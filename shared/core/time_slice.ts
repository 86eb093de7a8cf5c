/**
 * Divides long computations into slices, so that one thread serves others meanwhile. All
 * computations of the process take turns: however many run, the event loop stands still for one
 * slice at a time.
 */

/** A request takes several turns of the event loop, and each can wait for a slice. */
const SLICE_MS = 10;

let ends_at = 0;
/** The computations that wait for their next slice, the oldest first. */
const waiting: (() => void)[] = [];

/** Reports whether a computation has to give way before it goes on. */
export function isSliceOver(): boolean {
  return performance.now() >= ends_at;
}

/** Lets everything else that is ready run. Resolves at the beginning of the next slice. */
export function giveWay(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) setTimeout(resumeOne, 0);
  });
}

/** Returns the results of a function for each of some items, one after another. */
export async function mapInSlices<Item, Result>(
  items: Iterable<Item>,
  compute: (item: Item) => Result | Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  for (const item of items) {
    if (isSliceOver()) await giveWay();
    const result = compute(item);
    results.push(result instanceof Promise ? await result : result);
  }
  return results;
}

function resumeOne(): void {
  ends_at = performance.now() + SLICE_MS;
  waiting.shift()!();
  if (waiting.length > 0) setTimeout(resumeOne, 0);
}
