/** The search for the tests that notice faults. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openConnection } from "../../apps/server/postgres/connection.ts";
import { databaseUrl, withDatabase } from "../testing/scratch_server.ts";
import { renderMigration } from "../schema/schema_files.ts";
import { selectTestFiles } from "../testing/test_files.ts";
import { startsPrograms } from "../testing/test_groups.ts";
import type { TestServer } from "../../tests/support/database/database.ts";
import { applyBack, draw, type Fault, instrument, oldFixes, sqlObjects } from "./faults.ts";
import { type NoticedFault, readTable, rowOf, summary, writeTable } from "./table.ts";
import {
  copyProject,
  type Knowledge,
  type KnownTest,
  learnTests,
  notices,
  runTest,
  TestProcess,
} from "./test_process.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** The rank of tests that no more than execute a mutant. */
const LAST_RANK = 4;
/** Those that are tried for a fault take up to this time without it. */
const TRIED_MS = { pure: 4_000, database: 12_000 };
/** Files learned for a fix or an object of the database. */
const NEAR_FILES = 5;
/** Its tests measure time, which switches of mutants falsify. */
const MEASURES_TIME = "tests/core/linear_time_test.ts";
/** Files that could notice any fault of the database, after those that name the object. */
const DATABASE_TESTS = /^tests\/database\/(constraints|row_level_security|privileges)_test/;

type Level = "pure" | "database";

/** The faults of a run and the tests that it tries. */
export class Search {
  readonly #tests: KnownTest[] = [];
  readonly #noticers = new Map<string, Set<KnownTest>>();
  /** Test files that have run, with their level. */
  readonly #learned = new Map<string, Promise<void>>();
  readonly #texts = new Map<string, string>();
  readonly #plain = new Map<TestProcess, Promise<string>>();
  readonly #knowledge: Knowledge = {
    mutants: new Map(),
    at_start: new Set(),
    with_database: new Set(),
  };

  private constructor(
    readonly server: TestServer,
    private ends_at_ms: number,
    readonly processes: TestProcess[],
    readonly table: Map<string, NoticedFault>,
  ) {}

  static async open(server: TestServer, jobs: number, minutes: number): Promise<Search> {
    const copy = await copyProject(ROOT);
    const processes = Array.from({ length: jobs }, () => new TestProcess(copy));
    return new Search(server, Date.now() + minutes * 60_000, processes, await readTable());
  }

  /** Ends the run after the tests that run now. */
  stop() {
    this.ends_at_ms = 0;
  }

  async close(): Promise<void> {
    for (const process of this.processes) await process.end();
    const plain = await Promise.all(this.#plain.values());
    for (const folder of [this.processes[0]!.copy, ...plain]) {
      await Deno.remove(folder, { recursive: true });
    }
  }

  /** The copy without mutants in which a process plants fixes, made with its first one. */
  #plainOf(process: TestProcess): Promise<string> {
    const copy = this.#plain.get(process) ?? copyProject(ROOT);
    this.#plain.set(process, copy);
    return copy;
  }

  get #is_over() {
    return Date.now() >= this.ends_at_ms;
  }

  /** Plants the faults and writes the table. Returns the exit code. */
  async run(count: number, kind: string | undefined, by: string): Promise<number> {
    const faults = await this.#faults(count, kind, by);
    const { files } = await selectTestFiles(["tests"], ROOT);
    const usable = files
      .filter((file) => !startsPrograms(file) && file !== MEASURES_TIME).sort();
    const named = new Set(
      faults.map(({ kind, name }) => kind === "mutant" && this.table.get(name)?.noticed_by),
    );
    let open = faults;
    for (const step_files of [usable.filter((file) => named.has(file)), usable]) {
      for (const level of ["pure", "database"] as const) {
        const is_last = step_files === usable;
        if (is_last && !open.some(({ kind }) => kind === "mutant")) continue;
        await this.#learnAll(level, step_files);
        open = await this.#plantAll(open, level, is_last ? [] : usable, is_last);
      }
    }
    console.log(summary(this.table.values()));
    if (this.#is_over) return 1;
    const lost = open.flatMap(({ name }) => this.table.get(name) ?? [])
      .filter(({ noticed_by }) => noticed_by !== null);
    for (const { name, change, noticed_by } of lost) {
      console.error(`NOT NOTICED ANY MORE ${name}: ${change} (before by ${noticed_by})`);
    }
    return lost.length === 0 ? 0 : 1;
  }

  /** The faults to plant. Rows whose code is gone leave the table. */
  async #faults(count: number, kind: string | undefined, by: string): Promise<Fault[]> {
    const wants = (wanted: string) => kind === undefined || kind === wanted;
    const all = await instrument(this.processes[0]!.copy);
    await using sql = openConnection(databaseUrl(this.server.superuser_url, this.server.template));
    const objects = await sqlObjects(sql);
    // No database can be copied while it has a connection.
    await sql.end();
    const fixes = wants("fix") ? await oldFixes(ROOT) : [];
    const present = new Set([...all, ...objects, ...fixes].map(({ name }) => name));
    for (const { name, kind } of [...this.table.values()]) {
      if (wants(kind) && !present.has(name)) this.table.delete(name);
    }
    const is_noticed = ({ name }: Fault) =>
      this.table.get(name)?.noticed_by?.startsWith(by) ?? false;
    const isPlanted = (fault: Fault) => count > 0 ? !this.table.has(fault.name) : is_noticed(fault);
    const mutants = wants("mutant") ? draw(all, count || all.length).filter(isPlanted) : [];
    const planted = new Set(mutants);
    this.#knowledge.mutants = new Map(
      all.map((fault) => [fault.plant, { place: fault.place, is_drawn: planted.has(fault) }]),
    );
    const others = draw([...mutants, ...fixes.filter(isPlanted)], Infinity);
    return [...wants("sql") ? objects.filter(isPlanted) : [], ...others];
  }

  /** Runs the tests of the files once, to see what they execute. */
  async #learnAll(level: Level, files: readonly string[]): Promise<void> {
    const queue = [...files];
    await Promise.all(this.processes.map(async (process) => {
      // A file that could not be loaded without a server is loaded again.
      await process.end();
      for (let file = queue.shift(); file !== undefined && !this.#is_over; file = queue.shift()) {
        await this.#learn(process, level, file);
      }
    }));
    console.log(`${this.#tests.length} tests pass without a fault`);
  }

  #learn(process: TestProcess, level: Level, file: string): Promise<void> {
    const key = `${level} ${file}`;
    const learned = this.#learned.get(key) ?? this.#learnNow(process, level, file);
    this.#learned.set(key, learned);
    return learned;
  }

  async #learnNow(process: TestProcess, level: Level, file: string): Promise<void> {
    const server = level === "pure" ? null : JSON.stringify(this.server);
    const known = new Set(this.#tests.filter((test) => test.file === file).map((t) => t.index));
    if (server !== null && !this.#knowledge.with_database.has(file)) return;
    this.#tests.push(...await learnTests(process, file, server, this.#knowledge, known));
  }

  /**
   * Tries the known tests of a level. Returns the faults that none of them notices.
   * @param files those that are learned for a fix or an object when they are near to it
   */
  async #plantAll(
    faults: readonly Fault[],
    level: Level,
    files: readonly string[],
    is_last: boolean,
  ): Promise<Fault[]> {
    const queue = [...faults];
    const open: Fault[] = [];
    await Promise.all(this.processes.map(async (process) => {
      for (let fault = queue.shift(); fault !== undefined; fault = queue.shift()) {
        if (is_last && fault.kind !== "mutant") {
          open.push(fault);
          continue;
        }
        const near = fault.kind === "mutant" ? [] : files.filter((f) => this.#isNear(f, fault));
        for (const file of near.slice(0, NEAR_FILES)) {
          if (!this.#is_over) await this.#learn(process, level, file);
        }
        const is_final = is_last || fault.kind !== "mutant";
        const tests = this.#is_over ? null : this.#candidates(fault, level, is_final);
        const by = tests && await this.#firstNoticer(fault, tests, process);
        if (!by || this.#is_over) open.push(fault);
        if (this.#is_over || !tests || !by && !(is_final && level === "database")) continue;
        this.#record(fault, by);
      }
    }));
    return open;
  }

  #record(fault: Fault, by: KnownTest | null) {
    console.log(`${by?.file ?? "NOT NOTICED"}  ${fault.name}: ${fault.change}`);
    if (by) {
      const noticers = this.#noticers.get(fault.place) ?? new Set();
      this.#noticers.set(fault.place, noticers.add(by));
    }
    // A fix that nothing notices is mostly a comment or a type. A lost row stays to be named.
    if (by || fault.kind !== "fix" && !this.table.has(fault.name)) {
      this.table.set(fault.name, rowOf(fault, by));
    }
    writeTable(this.table);
  }

  /** The tests that could notice a fault, the most promising first. */
  #candidates(fault: Fault, level: Level, is_final: boolean): KnownTest[] {
    const named = this.table.get(fault.name)?.noticed_by;
    const noticers = this.#noticers.get(fault.place);
    const rank = (test: KnownTest): number => {
      if (test.file === named) return 0;
      if (!is_final) return Infinity;
      if (noticers?.has(test)) return 2;
      if (fault.kind !== "mutant" && this.#isNear(test.file, fault)) {
        return DATABASE_TESTS.test(test.file) ? 3 : 1;
      }
      return fault.kind === "fix" ? Infinity : LAST_RANK;
    };
    // A test that executes few of the mutants is about their place.
    const cost = ({ ms, hits }: KnownTest) => (ms + 1) * (hits.size + 1);
    const ranked = this.#tests
      .filter((test) => test.level === level && this.#reaches(test, fault))
      .map((test) => ({ test, rank: rank(test), cost: cost(test) }))
      .filter(({ rank }) => rank !== Infinity)
      .sort((a, b) => a.rank - b.rank || a.cost - b.cost);
    let ms = 0;
    return ranked.filter(({ test, rank }) => rank < LAST_RANK || (ms += test.ms) < TRIED_MS[level])
      .map(({ test }) => test);
  }

  #reaches(test: KnownTest, { kind, plant, place }: Fault): boolean {
    const is_sql = kind === "sql" || place.endsWith(".sql");
    if (kind !== "mutant") return test.level === "database" || !is_sql;
    return test.hits.has(plant) || this.#knowledge.at_start.has(plant) && test.places.has(place);
  }

  /** Whether a test file is tried for a fault before it is known what it executes. */
  #isNear(file: string, { kind, name, own_tests }: Fault): boolean {
    if (this.table.get(name)?.noticed_by === file || own_tests.includes(file)) return true;
    if (kind !== "sql") return false;
    const text = this.#texts.get(file) ?? Deno.readTextFileSync(join(ROOT, file));
    this.#texts.set(file, text);
    return DATABASE_TESTS.test(file) || text.includes(name.split(" ").at(-1)!);
  }

  async #firstNoticer(
    fault: Fault,
    tests: readonly KnownTest[],
    process: TestProcess,
  ): Promise<KnownTest | null> {
    const server = JSON.stringify(this.server);
    const first = async (isNoticedBy: (test: KnownTest) => Promise<boolean>) => {
      for (const test of tests) if (await isNoticedBy(test)) return test;
      return null;
    };
    if (tests.length === 0) return null;
    const { kind, plant: mutant } = fault;
    if (kind === "mutant" && !this.#knowledge.at_start.has(mutant)) {
      return await first((test) => notices(process, test, server, { mutant }));
    }
    if (kind === "mutant") {
      return await withProcess(
        process.copy,
        { MUTANT_FROM_START: mutant },
        (other) => first((test) => differs(other, process, test, server)),
      );
    }
    const plain = kind === "fix" ? await this.#plainOf(process) : "";
    const statement = kind === "sql" ? mutant : await sqlOfFix(plain, fault);
    if (statement !== null) {
      const steps = fault.name.split(" ").at(-1)!;
      // Steps of its own are quick.
      return await this.#withWeakened(
        fault,
        statement,
        (weakened) =>
          first(async (test) =>
            await notices(process, test, server, { server: weakened, steps }) ||
            await notices(process, test, server, { server: weakened })
          ),
      );
    }
    if (!applyBack(plain, mutant)) return null;
    try {
      const by = await withProcess(
        plain,
        {},
        (other) => first((test) => differs(other, process, test, server)),
      );
      return by && await compiles(plain, fault.place, by.file) ? by : null;
    } finally {
      await restore(plain, fault.place);
    }
  }

  /**
   * Runs `work` with a copy of the template in which a statement has run. Returns null if the
   * statements of a fix do not fit.
   */
  async #withWeakened(
    { kind }: Fault,
    statement: string,
    work: (server: string) => Promise<KnownTest | null>,
  ): Promise<KnownTest | null> {
    return await withDatabase(this.server.superuser_url, async (url) => {
      await using sql = openConnection(url);
      const is_planted = await sql.unsafe(statement).then(() => true, (error) => {
        if (kind === "sql") throw error;
        return false;
      });
      await sql.end();
      const weakened = new URL(url).pathname.slice(1);
      return is_planted ? await work(JSON.stringify({ ...this.server, template: weakened })) : null;
    }, this.server.template);
  }
}

async function withProcess<T>(
  copy: string,
  env: Record<string, string>,
  work: (process: TestProcess) => Promise<T>,
): Promise<T> {
  const process = new TestProcess(copy, env);
  return await work(process).finally(() => process.end());
}

/** Whether a test fails in the one process and passes in the other. */
async function differs(
  faulty: TestProcess,
  sound: TestProcess,
  test: KnownTest,
  server: string,
): Promise<boolean> {
  if ((await runTest(faulty, test, server)).error === null) return false;
  return (await runTest(sound, test, server)).error === null;
}

/** Returns the statements that take back a fix of a schema file; null if it is in another file. */
async function sqlOfFix(plain: string, { place, plant }: Fault): Promise<string | null> {
  if (!place.endsWith(".sql")) return null;
  applyBack(plain, plant);
  const text = await Deno.readTextFile(join(plain, place));
  await restore(plain, place);
  return renderMigration(text);
}

async function compiles(copy: string, ...files: string[]): Promise<boolean> {
  const { success } = await new Deno.Command(Deno.execPath(), {
    args: ["check", "--quiet", ...files],
    cwd: copy,
    stdout: "null",
    stderr: "null",
  }).output();
  return success;
}

async function restore(copy: string, place: string): Promise<void> {
  await Deno.copyFile(join(ROOT, place), join(copy, place));
}
