/**
 * `deno task schema` writes docs/schema.sql: what the migrations make of an empty database, read
 * back from its catalogue. `deno task schema --check` writes nothing and fails with the difference
 * when the file says something else. TEST_DATABASE_URL names a server to use (its user must be
 * allowed to create databases); else PostgreSQL is started for the purpose.
 */

import postgres from "postgres";
import { fileURLToPath } from "node:url";
import { migrate } from "./migrate.ts";
import { describeSchema } from "./schema_catalogue.ts";
import { writeRelease } from "./schema_release.ts";
import { withScratchServer } from "./scratch_database.ts";

/** The committed description. */
export const SCHEMA_FILE = fileURLToPath(new URL("../docs/schema.sql", import.meta.url));

const HEADER =
  `-- The database as the migrations make it: written by "deno task schema", compared by
-- "deno task schema --check" and by the tests. A description: do not edit it, do not run it.

`;
/** Lines shown before and after a difference. */
const CONTEXT_LINES = 2;

if (import.meta.main) Deno.exit(await main(Deno.args));

/** The text of the file for a migrated database. */
export async function renderSchema(url: string): Promise<string> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    return HEADER + await describeSchema(sql);
  } finally {
    await sql.end();
  }
}

/**
 * The description without the queries of views: PostgreSQL 15 writes column names in full where later
 * versions do not, and a restored view otherwise than the one it was dumped from.
 */
export function withoutViewQueries(schema: string): string {
  return schema.replaceAll(/^(create view .* as)\n[^;]*;$/gm, "$1 …;");
}

/** What differs, as lines of `-` (only in the first), `+` (only in the second); empty if equal. */
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

/** The fewest lines to drop of each so that both go on with the same line (or end). */
function nextAgreement(a: readonly string[], b: readonly string[]): [number, number] {
  for (let dropped = 1; dropped < a.length + b.length; dropped++) {
    for (let removed = Math.max(0, dropped - b.length); removed <= dropped; removed++) {
      const added = dropped - removed;
      if (a[removed] === b[added] && a[removed + 1] === b[added + 1]) return [removed, added];
    }
  }
  return [a.length, b.length];
}

async function main(args: readonly string[]): Promise<number> {
  const release = args.indexOf("--release");
  if (release !== -1) console.log(`Written: ${await writeRelease(args[release + 1]!)}`);
  const found = await withScratchServer((server) =>
    server.withDatabase(async (url) => {
      await migrate(url);
      return await renderSchema(url);
    })
  );
  if (!args.includes("--check")) {
    await Deno.writeTextFile(SCHEMA_FILE, found);
    console.log(`Written: ${SCHEMA_FILE}`);
    return 0;
  }
  const committed = await Deno.readTextFile(SCHEMA_FILE).catch(() => "");
  if (committed === found) {
    console.log("docs/schema.sql is what the migrations make");
    return 0;
  }
  console.error(diffLines(committed, found));
  console.error('docs/schema.sql (-) is not what the migrations make (+): run "deno task schema"');
  return 1;
}
