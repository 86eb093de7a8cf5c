/**
 * `deno task mutants`: plants one fault at a time in a copy of the project and records in
 * `noticed.json` which test file notices it. A deletion of tests is safe if every fault that was
 * noticed before still is. Exit codes: 0, and 1 if a test that noticed a fault does so no more, nor
 * does another.
 *
 * Without flags it plants the faults of the table that were noticed. `--draw N` plants those that
 * the table does not have: of the first N mutants, of all fixes, and of all objects of the
 * database. `--kind` takes one kind, `--by` those that tests of a folder or file noticed,
 * `--minutes` ends the run early, and `--jobs` is the number of processes (2).
 *
 * Tests run in processes that stay: a mutant is a switch, a fault of SQL a database, and only a fix
 * needs a process of its own. Tests that the table names are tried first, then pure tests, then
 * tests with a database. Each test tried executes the mutant; of the others the cheapest are tried.
 */

import { parseArgs } from "node:util";
import { withTestServer } from "../testing/test_server.ts";
import { Search } from "./search.ts";

if (import.meta.main) Deno.exit(await main(Deno.args));

async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      draw: { type: "string", default: "0" },
      kind: { type: "string" },
      by: { type: "string", default: "" },
      minutes: { type: "string", default: "100000" },
      jobs: { type: "string", default: "2" },
    },
  });
  return await withTestServer(async (server, folder) => {
    Deno.env.set("TMPDIR", folder);
    const search = await Search.open(server, Number(values.jobs), Number(values.minutes));
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      Deno.addSignalListener(signal, () => search.stop());
    }
    try {
      return await search.run(Number(values.draw), values.kind, values.by);
    } finally {
      await search.close();
    }
  });
}
