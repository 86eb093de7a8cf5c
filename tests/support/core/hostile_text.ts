/**
 * Texts that make a careless reader slow: the first part of a valid text, a piece that is repeated
 * very often, and the rest, with or without an invalid character. A backtracking expression or a
 * nested loop takes more than linear time on some of them.
 */

import type { Random } from "./random.ts";

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
export function stretch({ before, repeated, after }: HostileShape, length: number): string {
  const count = Math.max(1, Math.ceil((length - before.length - after.length) / repeated.length));
  return before + repeated.repeat(count) + after;
}

/** An endless sequence of shapes from valid texts; a seed always gives the same shapes. */
export function* hostileShapes(
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
