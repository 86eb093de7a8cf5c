/** Finds texts for which a reader takes more than linear time. */

import { randomOf } from "./random.ts";
import { hostileShapes, stretch } from "./hostile_text.ts";

/**
 * The longest time of a read. Linear readers take a fraction of it at their greatest length, and
 * quadratic ones several times as long.
 */
const MOST_MS = 30;
/** Reads of a text, of which the fastest counts: other load only adds time. */
const READS = 20;

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
 * Returns the first shape of which a reader takes too long to read a text, with the time. Returns
 * null if there is none among many shapes. A seed always gives the same shapes. The length doubles
 * up to the longest, so that the function returns before a reader of exponential time hangs.
 */
export async function findSlowText(reader: Reader, seed: number): Promise<string | null> {
  const until = performance.now() + BUDGET_MS;
  const shapes = hostileShapes(reader.samples, randomOf(seed)).take(SHAPES.most);
  let count = 0;
  for (const shape of shapes) {
    if (count++ >= SHAPES.least && performance.now() > until) break;
    for (let length = 64; length <= reader.longest; length *= 2) {
      let least_ms = Infinity;
      for (let i = 0; i < READS && least_ms > MOST_MS; i++) {
        least_ms = Math.min(least_ms, await timeOf(reader, stretch(shape, length)));
      }
      if (least_ms <= MOST_MS) continue;
      return `${least_ms} ms for ${length} characters: ${JSON.stringify(shape)}, seed ${seed}`;
    }
  }
  return null;
}

/** The time for reading a text. */
async function timeOf({ prepare, read }: Reader, text: string): Promise<number> {
  let began = performance.now();
  try {
    const input = prepare === undefined ? text : prepare(text);
    began = performance.now();
    await read(input);
  } catch {
    // A refusal is a valid result.
  }
  return performance.now() - began;
}
