/**
 * Finds texts for which a reader takes more than linear time.
 */

import { randomOf } from "./random.ts";
import { type HostileShape, hostileShapes, stretch } from "./hostile_text.ts";

/** A text that takes no longer than this, at its greatest length, needs no comparison. */
const QUICK_MS = 4;
/** A text that takes longer than this is compared before its length doubles again. */
const LONG_MS = 50;
/**
 * The long text is this many times as long as the short one, which is read this many times. So both
 * sides take the same time if the reader is linear, and other load slows down both. The long text
 * takes 8 times as long as the other side if the reader is quadratic.
 */
const SPAN = 8;
/** The largest ratio of a linear reader. A collection of garbage or a full cache can cause 3.4. */
const RATIO_MAX = SPAN / 2;
/** A comparison has at least this many rounds, and ends after this time. */
const ENOUGH = { rounds: 10, ms: 2_000 };
/** Measurements of the short text in each round. Other load must not hide a slow reader. */
const BURSTS = 2;

/** A reader of texts. */
export interface Reader {
  /** Valid texts; the hostile ones are derived from them. */
  samples: readonly string[];
  /** Length of the longest text that can reach the reader. */
  longest: number;
  /** Converts a text into the input, such as a request; its time does not count. */
  prepare?(text: string): unknown;
  /** Reads the input. It may throw: that is a refusal. */
  // deno-lint-ignore no-explicit-any -- the result of `prepare`
  read(input: any): unknown;
}

/**
 * The number of shapes for each reader: as many as fit into the time, within these bounds. Other
 * load cannot reduce them below the lower one.
 */
const SHAPES = { least: 50, most: 400 };
const BUDGET_MS = 200;

/**
 * Returns the first shape for which a reader takes more than linear time, with the times. Returns
 * null if there is none among many shapes. A seed always gives the same shapes.
 */
export async function findSlowText(
  reader: Reader,
  seed: number,
): Promise<string | null> {
  const until = performance.now() + BUDGET_MS;
  const shapes = hostileShapes(reader.samples, randomOf(seed)).take(SHAPES.most);
  let count = 0;
  for (const shape of shapes) {
    if (count++ >= SHAPES.least && performance.now() > until) break;
    const slowness = await findSlowness(reader, shape);
    if (slowness !== null) return `${slowness}: ${JSON.stringify(shape)}, seed ${seed}`;
  }
  return null;
}

/**
 * The times for texts of one shape if they grow more than linearly, else null. The length doubles
 * up to the longest, so that the function returns before a reader of exponential time hangs.
 */
async function findSlowness(
  reader: Pick<Reader, "longest" | "prepare" | "read">,
  shape: HostileShape,
): Promise<string | null> {
  for (let length = 64; length <= reader.longest; length *= 2) {
    const ms = await timeOf(reader, stretch(shape, length));
    const is_longest = 2 * length > reader.longest;
    if (ms <= (is_longest ? QUICK_MS : LONG_MS)) continue;
    const slowness = await compare(reader, shape, length);
    if (slowness !== null) return slowness;
  }
  return null;
}

/**
 * Compares one read of a text with several reads of a shorter one. Returns the times if the long
 * text takes too long in every round. The shortest times count, because other load only adds time.
 */
async function compare(
  reader: Pick<Reader, "prepare" | "read">,
  shape: HostileShape,
  length: number,
): Promise<string | null> {
  const [short, long] = [stretch(shape, length / SPAN), stretch(shape, length)];
  const until = performance.now() + ENOUGH.ms;
  let [short_ms, long_ms] = [Infinity, Infinity];
  for (let round = 1; round <= ENOUGH.rounds || performance.now() < until; round++) {
    // V8 can optimize the reader at any time. The long text is read first, so that a round never
    // compares a slow read of the short text with a fast one of the long text.
    long_ms = Math.min(long_ms, await timeOf(reader, long));
    for (let burst = 0; burst < BURSTS; burst++) {
      short_ms = Math.min(short_ms, await timeOf(reader, short, SPAN));
    }
    if (long_ms <= QUICK_MS || long_ms <= RATIO_MAX * short_ms) return null;
    // Yields the processor, so that the next round begins with a whole time slice.
    await new Promise((resolve) => setTimeout(resolve));
  }
  return `${long_ms.toFixed(2)} ms for ${length} characters, ` +
    `${short_ms.toFixed(2)} ms for ${SPAN} times ${length / SPAN}`;
}

/** The time for reading a text this many times. */
async function timeOf(
  { prepare, read }: Pick<Reader, "prepare" | "read">,
  text: string,
  times = 1,
): Promise<number> {
  let taken_ms = 0;
  for (let time = 0; time < times; time++) {
    let began = performance.now();
    try {
      const input = prepare === undefined ? text : prepare(text);
      began = performance.now();
      await read(input);
    } catch {
      // A refusal is a valid result.
    }
    taken_ms += performance.now() - began;
  }
  return taken_ms;
}
