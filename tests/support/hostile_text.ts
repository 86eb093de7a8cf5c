/**
 * Texts that make a careless reader slow: a valid text is cut somewhere, a piece is repeated there
 * very often, and the rest follows, with or without a character that spoils it. A backtracking
 * expression or a nested loop takes more than linear time on some of them.
 */

/** Characters that separate, quote, escape, pad or end something in some format. */
const SPECIAL = Array.from(
  "\t\n\r\0 \u00a0\u2003\u0301\u0316\u200d\ufeff\"'%&()*+,-./0123456789:;<=>?@AFZ[\\]^_`afxz{|}~\u0663\uff14é€😀",
);

/** Characters whose repetition has made readers slow before; tried most often. */
// deno-fmt-ignore
const PADDING = [
  " ", "\t", "0", "9", "a", "A", ".", ",", "-", "/", ";", "=", "%20", "\r\n",
  // Marks of two combining classes, which normalization sorts.
  "\u0301\u0316",
];

/** A hostile text of any length. */
export interface HostileShape {
  before: string;
  repeated: string;
  after: string;
}

/** The text of a shape, of about so many characters. */
export function stretch({ before, repeated, after }: HostileShape, length: number): string {
  const count = Math.max(1, Math.ceil((length - before.length - after.length) / repeated.length));
  return before + repeated.repeat(count) + after;
}

/** Shapes made from valid texts, without end. @param random 0 up to 1 */
export function* hostileShapes(
  samples: readonly string[],
  random: () => number,
): Generator<HostileShape> {
  const below = (limit: number) => Math.floor(random() * limit);
  const oneOf = <T>(items: readonly T[]) => items[below(items.length)]!;
  const own = [...new Set(samples.join(""))];
  const character = () => random() < 0.6 ? oneOf(own) : oneOf(SPECIAL);
  const piece = (text: string) => {
    const from = below(text.length);
    return text.slice(from, from + 1 + below(8));
  };
  for (;;) {
    const sample = oneOf(samples);
    const cut = below(sample.length + 1);
    const rest = sample.slice(cut);
    yield {
      before: sample.slice(0, cut),
      repeated: oneOf([
        () => oneOf(PADDING),
        () => oneOf(PADDING),
        () => sample.charAt(Math.max(0, cut - 1)),
        character,
        () => character() + character(),
        () => piece(sample),
        () => piece(sample) + character(),
      ])(),
      after: oneOf([rest, rest, character() + rest, character(), rest + character(), ""]),
    };
  }
}

/** A sequence of numbers from 0 up to 1 that is the same for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
