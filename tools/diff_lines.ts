/** Compares two texts line by line, for messages about generated files. */

/** Unchanged lines that are shown before a difference. */
const CONTEXT_LINES = 2;

/**
 * Returns the difference as text. `-` marks a line that only `before` has, `+` one that only
 * `after` has. The text is empty if both are equal.
 */
export function diffLines(before: string, after: string): string {
  const [a, b] = [before.split("\n"), after.split("\n")];
  const shown: string[] = [];
  let [i, j, printed] = [0, 0, 0];
  while (i < a.length || j < b.length) {
    if (a[i] === b[j]) {
      i++;
      j++;
      continue;
    }
    const [removed, added] = nextAgreement(a.slice(i), b.slice(j));
    shown.push(`@@ line ${i + 1} @@`);
    for (const line of a.slice(Math.max(printed, i - CONTEXT_LINES), i)) shown.push(`  ${line}`);
    for (const line of a.slice(i, i + removed)) shown.push(`- ${line}`);
    for (const line of b.slice(j, j + added)) shown.push(`+ ${line}`);
    printed = i += removed;
    j += added;
  }
  return shown.join("\n");
}

/**
 * Returns how many lines to skip in each text, as few as possible, until the next two lines are
 * equal in both. The end of both texts counts as equal.
 */
function nextAgreement(a: readonly string[], b: readonly string[]): [number, number] {
  for (let dropped = 1; dropped < a.length + b.length; dropped++) {
    for (let removed = Math.max(0, dropped - b.length); removed <= dropped; removed++) {
      const added = dropped - removed;
      if (a[removed] === b[added] && a[removed + 1] === b[added + 1]) return [removed, added];
    }
  }
  return [a.length, b.length];
}
