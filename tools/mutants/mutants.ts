/**
 * `deno task mutants`: plants one fault at a time in a copy of the project and records in
 * `noticed.json` which test file notices it. A deletion of tests is safe if every fault that was
 * noticed before still is, so the command exits with 1 if one is not.
 *
 * Without flags it plants the faults of the table again. `--draw N` adds mutants up to N, and every fix and
 * database object that the table does not have; `--kind` takes one kind, and `--minutes` ends the
 * run early. A mutant is noticed by the cheapest test file that executes it and fails. The search
 * tries every pure test file, then DATABASE_FILES of those that need a database.
 */

import { parseArgs } from "node:util";
import { fileURLToPath } from "node:url";
import postgres from "postgres";
import { migrate } from "../../apps/server/migrations/migrate.ts";
import {
  type ScratchServer,
  withScratchServer,
} from "../../apps/server/postgres/scratch_database.ts";
import { applyBack, draw, type Fault, instrument, oldFixes, sqlObjects } from "./faults.ts";
import { isSeen, type ReachingFile, reachOf, testFiles } from "./reach.ts";
import { copyProject, runTests } from "./test_runs.ts";
import { type NoticedFault, readTable, rowOf, summary, writeTable } from "./table.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** Test files with a database that are tried for a fault, the most specific first. */
const DATABASE_FILES = 6;
/** Several times the duration of a file on a busy machine. */
const TIMEOUT_MS = 240_000;
/** Faults that are planted at the same time, each with its own processes. */
const WORKERS = 2;
/** Files that could notice any fault of the database, after those that name the object. */
const DATABASE_TESTS = [
  "tests/database/constraints_test.ts",
  "tests/database/row_level_security_test.ts",
  "tests/database/tenant_keys_test.ts",
];

if (import.meta.main) Deno.exit(await main(Deno.args));

interface Options {
  draw: number;
  kind: string | undefined;
  ends_at_ms: number;
}

async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      draw: { type: "string", default: "0" },
      kind: { type: "string" },
      minutes: { type: "string", default: "100000" },
    },
  });
  const options = {
    draw: Number(values.draw),
    kind: values.kind,
    ends_at_ms: Date.now() + Number(values.minutes) * 60_000,
  };
  const lost = await withScratchServer((server) => plantAll(server, options));
  for (const { name, change, noticed_by } of lost) {
    console.error(`NOT NOTICED ANY MORE ${name}: ${change} (before by ${noticed_by})`);
  }
  return lost.length === 0 ? 0 : 1;
}

/** Plants the faults and writes the table. Returns the rows that no test notices any more. */
async function plantAll(server: ScratchServer, options: Options): Promise<NoticedFault[]> {
  const table = await readTable();
  const plain = await copyProject(ROOT);
  const mutated = await copyProject(ROOT);
  const lost: NoticedFault[] = [];
  try {
    const wants = (kind: string) => options.kind === undefined || options.kind === kind;
    const [mutants, reach] = wants("mutant")
      ? await mutantsWithReach(mutated, table, options.draw)
      : [[], []];
    const others = [
      ...wants("sql") ? await server.withDatabase(objectsOf) : [],
      ...wants("fix") ? await oldFixes(ROOT) : [],
    ];
    const queue = [
      ...others.filter(({ name }) => options.draw > 0 || table.has(name)),
      ...mutants,
    ];
    const plain_copies = [plain, await copyProject(ROOT)];
    const files = (await testFiles(plain)).filter(isSeen);
    const work = async (copy: string) => {
      for (
        let fault = queue.shift();
        fault && Date.now() < options.ends_at_ms;
        fault = queue.shift()
      ) {
        const before = table.get(fault.name);
        const known = before?.noticed_by ?? null;
        const by = fault.kind === "mutant"
          ? await noticeMutant(mutated, fault, reach, known)
          : await noticeOther(copy, fault, files, known);
        if (before?.noticed_by && by === null) lost.push(before);
        // A hunk that nothing notices is mostly a comment or a type, so it is not a fault.
        else if (by !== null || fault.kind !== "fix") table.set(fault.name, rowOf(fault, by));
        console.log(`${by?.file ?? "NOT NOTICED"}  ${fault.name}: ${fault.change}`);
        await writeTable(table);
      }
    };
    await Promise.all(plain_copies.slice(0, WORKERS).map(work));
    await Deno.remove(plain_copies[1]!, { recursive: true });
    console.log(summary(table.values()));
    return lost;
  } finally {
    await Deno.remove(plain, { recursive: true });
    await Deno.remove(mutated, { recursive: true });
  }
}

async function objectsOf(url: string): Promise<Fault[]> {
  await migrate(url);
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    return await sqlObjects(sql);
  } finally {
    await sql.end();
  }
}

/** Draws the mutants, and runs every test file once to see which mutants it executes. */
async function mutantsWithReach(
  copy: string,
  table: ReadonlyMap<string, NoticedFault>,
  count: number,
): Promise<[Fault[], ReachingFile[]]> {
  const all = await instrument(copy);
  const drawn = new Set(draw(all, count));
  const mutants = all.filter((fault) => drawn.has(fault) || table.has(fault.name));
  const files = (await testFiles(copy)).filter(isSeen);
  const reach: ReachingFile[] = [];
  const work = async () => {
    for (let file = files.shift(); file; file = files.shift()) {
      const found = await reachOf(copy, file);
      if (found) reach.push(found);
      else console.log(`left out, because it fails without a fault: ${file}`);
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, work));
  reach.sort((a, b) => a.mutants.size - b.mutants.size);
  return [mutants, reach];
}

type Noticed = { file: string; level: "pure" | "database" } | null;

async function noticeMutant(
  copy: string,
  { plant }: Fault,
  reach: readonly ReachingFile[],
  known: string | null,
): Promise<Noticed> {
  const reaching = reach.filter(({ mutants }) => mutants.has(plant));
  const before = reaching.filter(({ file }) => file === known);
  const pure = reaching.filter(({ level }) => level === "pure");
  const database = reaching.filter(({ level }) => level === "database").slice(0, DATABASE_FILES);
  for (const files of [before.slice(0, 1), pure, database]) {
    if (files.length === 0) continue;
    const { level } = files[0]!;
    const { failed_file } = await runTests({
      copy,
      files: files.map(({ file }) => file),
      needs_database: level === "database",
      env: { __STRYKER_ACTIVE_MUTANT__: plant },
      timeout_ms: TIMEOUT_MS,
    });
    if (failed_file !== null) return { file: failed_file, level };
  }
  return null;
}

/** Tries the test that noticed the fault before, then those that belong to it. */
async function noticeOther(
  copy: string,
  fault: Fault,
  files: readonly string[],
  known: string | null,
): Promise<Noticed> {
  const named = fault.kind === "sql"
    ? [...await filesThatName(copy, files, fault.name.split(" ").at(-1)!), ...DATABASE_TESTS]
    : fault.own_tests.filter((file) => files.includes(file));
  const tried = [...new Set([...known ? [known] : [], ...named])].slice(0, DATABASE_FILES);
  if (tried.length === 0) return null;
  const is_patched = fault.kind === "fix";
  if (is_patched && !await applyBack(copy, fault.plant)) return null;
  try {
    if (is_patched && !await compiles(copy, fault.place)) return null;
    const { failed_file } = await runTests({
      copy,
      files: tried,
      needs_database: true,
      env: is_patched ? {} : { TEST_TEMPLATE_SQL: fault.plant },
      timeout_ms: TIMEOUT_MS,
    });
    return failed_file === null ? null : { file: failed_file, level: "database" };
  } finally {
    if (is_patched) await restore(copy, fault.place);
  }
}

/** Whether a file has no error of types. SQL has none: the migration fails, and no test has judged. */
async function compiles(copy: string, place: string): Promise<boolean> {
  if (!place.endsWith(".ts")) return true;
  const { success } = await new Deno.Command(Deno.execPath(), {
    args: ["check", "--quiet", place],
    cwd: copy,
    stdout: "null",
    stderr: "null",
  }).output();
  return success;
}

async function restore(copy: string, place: string): Promise<void> {
  await Deno.copyFile(`${ROOT}${place}`, `${copy}/${place}`);
}

async function filesThatName(
  copy: string,
  files: readonly string[],
  name: string,
): Promise<string[]> {
  const texts = await Promise.all(files.map((file) => Deno.readTextFile(`${copy}/${file}`)));
  return files.filter((_, i) => texts[i]!.includes(name));
}
