/**
 * `deno task check-books [URL]` checks every invariant of the database (the views
 * `pay.invariant_*`) and prints a line for each. Without a URL it uses the database of
 * DATABASE_URL, or else the embedded server of DATA_DIR.
 *
 * Breaches that testers in sandboxes can cause come last, apart. They are no broken promise.
 *
 * Exit codes: 0 every promise holds, 1 a promise is broken, 2 the books could not be read.
 */

import postgres from "postgres";
import { fileURLToPath } from "node:url";
import { openOperatorDatabase } from "./operator_database.ts";
import { readSettings } from "../data_dir/settings.ts";

const PROJECT_DIR = fileURLToPath(new URL("../../", import.meta.url));

/** The result of one invariant: its alarms, or its breaches that are none. */
interface Verdict {
  invariant: string;
  /** The numbers of the promises in docs/reliability.md, and the promises in words. */
  promise: string;
  /** False: a tester in a sandbox can cause the breaches. */
  is_alarm: boolean;
  /** Number of rows that break the promise. */
  breaches: number;
  /** Up to three breaches, each with its environment, resource and fault. */
  examples: string[];
}

if (import.meta.main) Deno.exit(await main(Deno.args));

/**
 * Checks every invariant. Returns its alarms, also if there are none, and its other breaches if
 * there are any. The user of the connection must be a member of `pay_operator`.
 */
export async function checkBooks(sql: postgres.Sql): Promise<Verdict[]> {
  const rows = await sql<(Verdict & { breaches: string })[]>`select * from pay.check_books()`;
  return rows.map((row) => ({ ...row, breaches: Number(row.breaches) }));
}

/** The verdicts as lines of text: the alarms, then the breaches that are none. */
function renderVerdicts(verdicts: readonly Verdict[]): string {
  const width = Math.max(...verdicts.map(({ invariant }) => invariant.length));
  const render = ({ invariant, promise, is_alarm, breaches, examples }: Verdict) => {
    const word = !is_alarm ? "note  " : breaches === 0 ? "ok    " : "BROKEN";
    const line = `${word} ${invariant.padEnd(width)}  ${promise}\n`;
    if (breaches === 0) return line;
    const count = breaches === 1 ? "1 breach:" : `${breaches} breaches, for example:`;
    return [line, `       ${count}\n`, ...examples.map((e) => `       ${e}\n`)].join("");
  };
  const apart = verdicts.filter(({ is_alarm }) => !is_alarm);
  return [
    ...verdicts.filter(({ is_alarm }) => is_alarm).map(render),
    ...apart.length === 0 ? [] : ["\nBreaches that testers in sandboxes can cause:\n"],
    ...apart.map(render),
  ].join("");
}

async function main(args: readonly string[]): Promise<number> {
  try {
    if (args.length > 1) throw new Error("Usage: deno task check-books [URL]");
    const env = (name: string) =>
      name === "DATABASE_URL" ? args[0] ?? Deno.env.get(name) : Deno.env.get(name);
    const database = await openOperatorDatabase(
      readSettings(env, PROJECT_DIR),
      (line) => console.error(line),
    );
    try {
      const verdicts = await checkBooks(database.sql);
      await Deno.stdout.write(new TextEncoder().encode(renderVerdicts(verdicts)));
      return verdicts.some(({ is_alarm, breaches }) => is_alarm && breaches > 0) ? 1 : 0;
    } finally {
      await database.close();
    }
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    return 2;
  }
}
