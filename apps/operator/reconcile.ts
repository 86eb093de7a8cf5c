/**
 * `deno task reconcile [URL]` compares the books with those of the providers: it prints every
 * breach of the invariants of operations, provider events and daily totals. Without a URL it uses
 * the database of DATABASE_URL, or else the embedded server of DATA_DIR.
 *
 * Exit codes: 0 no difference, 1 differences, 2 the books could not be read, 3 no difference, and a
 * person has to look at provider events ("deno task providers facts").
 */

import { exitCodeOf, type Severity } from "./check_books.ts";
import { action } from "./command_line.ts";

/** A row of `pay.reconcile`. */
interface Difference {
  invariant: string;
  environment_id: string;
  subject_id: string;
  detail: string;
  severity: Severity;
}

export const ACTIONS = action([], () => async ({ sql, print }) => {
  const differences = await sql<Difference[]>`select * from pay.reconcile()`;
  for (const { invariant, environment_id, subject_id, detail, severity } of differences) {
    const warning = severity === "warning" ? "warning: " : "";
    print(`${warning}${invariant} ${environment_id} ${subject_id}: ${detail}\n`);
  }
  const code = exitCodeOf(differences);
  if (code !== 1) print("The books agree with those of the providers\n");
  return code;
});
