/**
 * Repeatable random numbers (splitmix32). Each purpose has its own stream, so a draw in one part of
 * the run does not change another part.
 */

/** A stream of random numbers. */
export interface Random {
  /** From 0 to below 1. */
  next(): number;
  /** A whole number from `min` to `max` inclusive. */
  integer(min: number, max: number): number;
  /** True with this probability. */
  chance(probability: number): boolean;
  pick<T>(items: readonly T[]): T;
  /** The same items in another order. */
  shuffled<T>(items: readonly T[]): T[];
}

/** The stream of a seed and a purpose. */
export function randomOf(seed: number, ...purpose: (string | number)[]): Random {
  let state = seed >>> 0;
  for (const character of purpose.join("/")) {
    state = mix(state ^ character.charCodeAt(0));
  }
  const next = () => {
    state = (state + 0x9e3779b9) >>> 0;
    return mix(state) / 2 ** 32;
  };
  const integer = (min: number, max: number) => min + Math.floor(next() * (max - min + 1));
  return {
    next,
    integer,
    chance: (probability) => next() < probability,
    pick: (items) => items[integer(0, items.length - 1)]!,
    shuffled: (items) =>
      items.map((item) => ({ item, at: next() })).toSorted((a, b) => a.at - b.at)
        .map(({ item }) => item),
  };
}

function mix(value: number): number {
  let z = (value + 0x9e3779b9) >>> 0;
  z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
  z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
  return (z ^ (z >>> 15)) >>> 0;
}
