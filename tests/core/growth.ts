/**
 * Whether a reader of texts takes more than linear time on texts of one shape.
 */

import { randomOf } from "../../torture/random.ts";
import { type HostileShape, hostileShapes, stretch } from "../support/hostile_text.ts";

/** A text that is read in this time needs no closer look. */
const QUICK_MS = 4;
/**
 * Twice the length takes twice as long when linear, 4 times when quadratic, and then at each
 * doubling: a garbage collection that begins at some length shows in one of two only.
 */
const GROWTH_MAX = 2.8;
/** Rounds of measurements. The shortest time of each length counts: neighbours only add to it. */
const ROUNDS = 60;
/** A time that is so long after a few rounds does not come from neighbours. */
const HOPELESS = { rounds: 5, ms: 500 };

/** A reader of texts. */
export interface Reader {
  /** Valid texts, from which hostile ones are made. */
  samples: readonly string[];
  /** Longest text that can reach it. */
  longest: number;
  /** Makes of a text what is read, such as a request; its time does not count. */
  prepare?(text: string): unknown;
  /** Reads a text, or what was prepared of it; what it throws is its verdict. */
  // deno-lint-ignore no-explicit-any -- `prepare` says what it gets
  read(input: any): unknown;
}

/** How many shapes a reader is given, unless it takes longer than that time. */
const SHAPES_MAX = 400;
const BUDGET_MS = 3_000;

/**
 * The first text that a reader takes more than linear time for, and the times; null when none of
 * many texts is one. The texts are the same for the same seed.
 */
export async function findSlowText(
  reader: Reader,
  seed: number,
): Promise<string | null> {
  const until = performance.now() + BUDGET_MS;
  let count = 0;
  for (const shape of hostileShapes(reader.samples, randomOf(seed))) {
    if (count++ === SHAPES_MAX || performance.now() > until) break;
    const finding = await findSlowness(reader, shape);
    if (finding !== null) return `${finding}: ${JSON.stringify(shape)}, seed ${seed}`;
  }
  return null;
}

/**
 * What is wrong with the time that texts of this shape take; null when nothing is. Lengths double
 * up to the longest, so that a reader that takes exponential time is left before it hangs.
 */
export async function findSlowness(
  reader: Pick<Reader, "longest" | "prepare" | "read">,
  shape: HostileShape,
): Promise<string | null> {
  for (let length = 64; length <= reader.longest; length *= 2) {
    if (await timeOf(reader, stretch(shape, length)) <= QUICK_MS) continue;
    const lengths = [length / 4, length / 2, length];
    const times = await shortestTimes(reader, lengths.map((length) => stretch(shape, length)));
    if (isLinear(times)) continue;
    const shown = times.map((ms) => ms.toFixed(2)).join(", ");
    return `${shown} ms at ${lengths.join(", ")} characters`;
  }
  return null;
}

/** The shortest time of each text; measured no longer than it takes to see that they are linear. */
async function shortestTimes(
  reader: Pick<Reader, "prepare" | "read">,
  texts: readonly string[],
): Promise<number[]> {
  const times = texts.map(() => Infinity);
  for (let round = 1; round <= ROUNDS; round++) {
    for (const [i, text] of texts.entries()) {
      times[i] = Math.min(times[i]!, await timeOf(reader, text));
    }
    if (isLinear(times) || (round >= HOPELESS.rounds && times.at(-1)! > HOPELESS.ms)) break;
    // Gives the processor away, to begin the next round with a whole time slice.
    await new Promise((resolve) => setTimeout(resolve));
  }
  return times;
}

function isLinear(times: readonly number[]): boolean {
  const [first, second, third] = times as [number, number, number];
  return third <= QUICK_MS || third <= GROWTH_MAX * second || second <= GROWTH_MAX * first;
}

async function timeOf(
  { prepare, read }: Pick<Reader, "prepare" | "read">,
  text: string,
): Promise<number> {
  let began = performance.now();
  try {
    const input = prepare === undefined ? text : prepare(text);
    began = performance.now();
    await read(input);
  } catch {
    // Refused: as good an end as any.
  }
  return performance.now() - began;
}
