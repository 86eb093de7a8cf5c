/**
 * Finds texts for which a reader takes more than linear time: the first part of a valid text, a
 * piece that is repeated very often, and the rest, with or without an invalid character. A
 * backtracking expression or a nested loop takes more than linear time on some of them.
 */

import { type Random, randomOf } from "./random.ts";

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

/** Characters that separate, quote, escape, pad or end something in some format. */
const SPECIAL = Array.from(
  "\t\n\r\0 \u00a0\u2003\u0301\u0316\u200d\ufeff\"'%&()*+,-./0123456789:;<=>?@AFZ[\\]^_`afxz{|}~\u0663\uff14é€😀",
);

/** Characters whose repetition makes readers slow most often; chosen more often. */
// deno-fmt-ignore
const PADDING = [
  " ", "\t", "0", "9", "a", "A", ".", ",", "-", "/", ";", "=", "%20", "\r\n",
  // Marks of two combining classes, which normalization sorts.
  "\u0301\u0316",
];

/** A hostile text of any length. */
interface HostileShape {
  before: string;
  repeated: string;
  after: string;
}

/** The text of a shape, about `length` characters long. */
function stretch({ before, repeated, after }: HostileShape, length: number): string {
  const count = Math.max(1, Math.ceil((length - before.length - after.length) / repeated.length));
  return before + repeated.repeat(count) + after;
}

/** An endless sequence of shapes from valid texts; a seed always gives the same shapes. */
function* hostileShapes(
  samples: readonly string[],
  { chance, integer, pick }: Random,
): Generator<HostileShape> {
  const own = [...new Set(samples.join(""))];
  const character = () => chance(0.6) ? pick(own) : pick(SPECIAL);
  const piece = (text: string) => {
    const from = integer(0, text.length - 1);
    return text.slice(from, from + integer(1, 8));
  };
  for (;;) {
    const sample = pick(samples);
    const cut = integer(0, sample.length);
    const rest = sample.slice(cut);
    yield {
      before: sample.slice(0, cut),
      repeated: pick([
        () => pick(PADDING),
        () => pick(PADDING),
        () => sample.charAt(Math.max(0, cut - 1)),
        character,
        () => character() + character(),
        () => piece(sample),
        () => piece(sample) + character(),
      ])(),
      after: pick([rest, rest, character() + rest, character(), rest + character(), ""]),
    };
  }
}
