/** Divides words into lines, for generated files. */

/** Returns lines of at most `width` columns, with `separator` between two words of a line. */
export function wrapped(words: readonly string[], width: number, separator = " "): string[] {
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + separator.length + word.length <= width) {
      lines[lines.length - 1] = last + separator + word;
    } else lines.push(word);
  }
  return lines;
}
