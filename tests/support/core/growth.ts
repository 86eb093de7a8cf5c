/**
 * Finds texts for which a reader takes more than linear time.
 */

import { randomOf } from "../../../torture/random.ts";
import { type HostileShape, hostileShapes, stretch } from "./hostile_text.ts";

/** A time up to this needs no further measurement. */
const QUICK_MS = 4;
/**
 * Twice the length takes 2 times as long if the reader is linear and 4 times if it is quadratic. A
 * quadratic reader shows this at both doublings; a garbage collection shows at one of them.
 */
const GROWTH_MAX = 2.8;
/** Rounds of measurements. The shortest time of each length counts: other load only adds time. */
const ROUNDS = 60;
/** After this number of rounds, a time this long has another cause than other load. */
const HOPELESS = { rounds: 5, ms: 500 };

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

/** The maximum number of shapes for each reader, and the maximum time. */
const SHAPES_MAX = 400;
const BUDGET_MS = 3_000;

/**
 * Returns the first shape for which a reader takes more than linear time, with the times. Returns
 * null if there is none among many shapes. A seed always gives the same shapes.
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
 * The times for texts of one shape if they grow more than linearly, else null. The length doubles
 * up to the longest, so that the function returns before a reader of exponential time hangs.
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

/** The shortest time of each text; stops as soon as the times are linear. */
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
    // Yields the processor, so that the next round begins with a whole time slice.
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
    // A refusal is a valid result.
  }
  return performance.now() - began;
}
