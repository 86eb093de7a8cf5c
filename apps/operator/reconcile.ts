/**
 * `deno task reconcile [URL]` compares the books with those of the providers: it prints every
 * breach of the invariants of operations, provider events and daily totals. Without a URL it uses
 * the database of DATABASE_URL, or else the embedded server of DATA_DIR.
 *
 * Exit codes: 0 no difference, 1 differences, 2 the books could not be read, 3 no difference, and a
 * person has to look at provider events ("deno task providers facts").
 */

import { fileURLToPath } from "node:url";
import { exitCodeOf, type Severity } from "./check_books.ts";
import { print, printMessage } from "./command_line.ts";
import { openOperatorDatabase } from "./operator_database.ts";
import { readSettings } from "../server/data_dir/settings.ts";

const PROJECT_DIR = fileURLToPath(new URL("../../", import.meta.url));

/** A row of `pay.reconcile`. */
interface Difference {
  invariant: string;
  environment_id: string;
  subject_id: string;
  detail: string;
  severity: Severity;
}

if (import.meta.main) Deno.exit(await main(Deno.args));

async function main(args: readonly string[]): Promise<number> {
  try {
    if (args.length > 1) throw new Error("Usage: deno task reconcile [URL]");
    const env = (name: string) =>
      name === "DATABASE_URL" ? args[0] ?? Deno.env.get(name) : Deno.env.get(name);
    const database = await openOperatorDatabase(readSettings(env, PROJECT_DIR), printMessage);
    try {
      const differences = await database.sql<Difference[]>`select * from pay.reconcile()`;
      for (const { invariant, environment_id, subject_id, detail, severity } of differences) {
        print(
          `${
            severity === "warning" ? "warning: " : ""
          }${invariant} ${environment_id} ${subject_id}: ${detail}\n`,
        );
      }
      const code = exitCodeOf(differences);
      if (code !== 1) print("The books agree with those of the providers\n");
      return code;
    } finally {
      await database.close();
    }
  } catch (error) {
    printMessage(error instanceof Error ? error.message : String(error));
    return 2;
  }
}
