/**
 * `deno task check-books [URL]` checks every invariant of the database (the views
 * `pay.invariant_*`) and prints a line for each. Without a URL it uses the database of
 * DATABASE_URL, or else the embedded server of DATA_DIR.
 *
 * Breaches that testers in sandboxes can cause come last, apart. They are no broken promise.
 *
 * Exit codes: 0 every promise holds, 1 a promise is broken, 2 the books could not be read, 3 every
 * promise holds, and a person has to look at something (REVIEW).
 */

import type postgres from "postgres";
import { action } from "./command_line.ts";

/**
 * Whether breaches break a promise (`alarm`), whether a person has to look (`warning`), or whether
 * a tester in a sandbox can cause them (`note`).
 */
export type Severity = "alarm" | "warning" | "note";

const WORDS: Record<Severity, string> = { alarm: "BROKEN", warning: "REVIEW", note: "note  " };

interface Verdict {
  invariant: string;
  /** The numbers of the promises in docs/reliability.md, and the promises in words. */
  promise: string;
  severity: Severity;
  /** Number of rows that break the promise. */
  breaches: number;
  /** Up to three breaches, each with its environment, resource and fault. */
  examples: string[];
}

/**
 * Checks every invariant. Returns its verdict, also without breaches, and its notes if there are
 * any. The user of the connection must be a member of `pay_operator`.
 */
export async function checkBooks(sql: postgres.Sql): Promise<Verdict[]> {
  const rows = await sql<(Verdict & { breaches: string })[]>`select * from pay.check_books()`;
  return rows.map((row) => ({ ...row, breaches: Number(row.breaches) }));
}

/** The verdicts as lines of text, the notes apart. */
function renderVerdicts(verdicts: readonly Verdict[]): string {
  const width = Math.max(...verdicts.map(({ invariant }) => invariant.length));
  const render = ({ invariant, promise, severity, breaches, examples }: Verdict) => {
    const word = breaches === 0 ? "ok    " : WORDS[severity];
    const line = `${word} ${invariant.padEnd(width)}  ${promise}\n`;
    if (breaches === 0) return line;
    const count = breaches === 1 ? "1 breach:" : `${breaches} breaches, for example:`;
    return [line, `       ${count}\n`, ...examples.map((e) => `       ${e}\n`)].join("");
  };
  const apart = verdicts.filter(({ severity }) => severity === "note");
  return [
    ...verdicts.filter(({ severity }) => severity !== "note").map(render),
    ...apart.length === 0 ? [] : ["\nBreaches that testers in sandboxes can cause:\n"],
    ...apart.map(render),
  ].join("");
}

/** Returns 1 for alarms, 3 for warnings alone, and else 0. */
export function exitCodeOf(found: readonly { severity: Severity }[]): number {
  const has = (severity: Severity) => found.some((each) => each.severity === severity);
  return has("alarm") ? 1 : has("warning") ? 3 : 0;
}

export const ACTIONS = action([], () => async ({ sql, print }) => {
  const verdicts = await checkBooks(sql);
  print(renderVerdicts(verdicts));
  return exitCodeOf(verdicts.filter(({ breaches }) => breaches > 0));
});
