/**
 * Random numbers that a seed repeats: splitmix32, one stream for each purpose, so that what one part
 * draws does not shift what another does.
 */

/** A stream of random numbers. */
export interface Random {
  /** 0 up to 1. */
  next(): number;
  /** A whole number from `min` to `max`, both included. */
  integer(min: number, max: number): number;
  /** True so often. */
  chance(probability: number): boolean;
  pick<T>(items: readonly T[]): T;
}

/** The stream of a seed and the names of what it is for. */
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
  };
}

function mix(value: number): number {
  let z = (value + 0x9e3779b9) >>> 0;
  z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
  z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
  return (z ^ (z >>> 15)) >>> 0;
}
