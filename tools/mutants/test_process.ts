/** The processes in which tests run (worker.ts), and what a test shows without and with a fault. */

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { NO_SERVER } from "../../tests/support/database/shared_server.ts";
import { git } from "../git.ts";
import { ANSWER, type TestAnswer, type TestRequest } from "./worker.ts";

const WORKER = fileURLToPath(new URL("worker.ts", import.meta.url));
const GRACE_MS = 5_000;
/** Runs after which a process is replaced, because loaded files and failed tests leave things. */
const RUNS = 2_000;
/** Deadline of the first run of a test. Slower ones, as those that measure time, are left out. */
const LEARN_MS = { pure: 10_000, database: 90_000 };

export async function copyProject(root: string): Promise<string> {
  const copy = await Deno.makeTempDir({ prefix: "payments-mutants-" });
  await Deno.chmod(copy, 0o755);
  const listed = await git(root, ["ls-files", "--cached", "--others", "--exclude-standard"]);
  for (const file of listed.split("\n")) {
    if (file === "" || !await Deno.stat(join(root, file)).catch(() => null)) continue;
    await Deno.mkdir(dirname(join(copy, file)), { recursive: true });
    await Deno.copyFile(join(root, file), join(copy, file));
  }
  return copy;
}

/** A process that runs tests of a copy. It is replaced when it is dirty or does not answer. */
export class TestProcess {
  #child: ReturnType<typeof spawn> | null = null;
  #answer: (answer: TestAnswer | null) => void = () => {};
  #runs = 0;

  constructor(readonly copy: string, readonly env: Record<string, string> = {}) {}

  /** Runs a test. A process that ends or does not answer is a failure of the test. */
  async ask(request: TestRequest & { file: string }): Promise<TestAnswer> {
    if (++this.#runs % RUNS === 0) await this.end();
    const child = this.#child ??= this.#start();
    const started = performance.now();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const answer = await new Promise<TestAnswer | null>((resolve) => {
      this.#answer = resolve;
      timer = setTimeout(() => resolve(null), request.timeout_ms + GRACE_MS);
      child.stdin!.write(`${JSON.stringify(request)}\n`);
    });
    clearTimeout(timer);
    if (answer === null) this.#kill();
    else if (answer.is_dirty) await this.end();
    const ms = Math.round(performance.now() - started);
    return answer ?? { error: "the process ended or hung", is_dirty: true, ms, hits: {} };
  }

  /** Ends the process; the next request starts another one. */
  async end(): Promise<void> {
    const child = this.#child;
    if (child === null) return;
    const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.stdin!.write(`${JSON.stringify({ timeout_ms: 0 })}\n`);
    const timer = setTimeout(() => this.#kill(), GRACE_MS);
    await ended;
    clearTimeout(timer);
    this.#child = null;
  }

  #kill() {
    this.#child?.kill("SIGKILL");
    this.#child = null;
  }

  #start() {
    const child = spawn(Deno.execPath(), ["run", "-A", "--no-check", WORKER], {
      cwd: this.copy,
      env: { ...Deno.env.toObject(), NO_COLOR: "1", SEED: "1", ...this.env },
      stdio: ["pipe", "pipe", Deno.env.has("MUTANTS_DEBUG") ? "inherit" : "ignore"],
    });
    child.stdin!.on("error", () => {});
    child.once("exit", () => {
      if (this.#child !== child) return;
      this.#child = null;
      this.#answer(null);
    });
    createInterface({ input: child.stdout! }).on("line", (line) => {
      if (this.#child === child && line.startsWith(ANSWER)) {
        this.#answer(JSON.parse(line.slice(ANSWER.length)));
      }
    });
    return child;
  }
}

/** A test that passes without a fault. */
export interface KnownTest {
  file: string;
  /** Its position in the file. */
  index: number;
  /** `pure` needs no database. */
  level: "pure" | "database";
  ms: number;
  /** How often it executes each of the drawn mutants. */
  hits: ReadonlyMap<string, number>;
  /** How many mutants of each file it executes. */
  places: ReadonlyMap<string, number>;
}

/** How a fault is present in a run: a mutant, or a database with the fault (TEST_SERVER). */
interface Planted {
  mutant?: string;
  server?: string;
  /** Only steps with this text in their name run. */
  steps?: string;
}

/** Runs a known test, with a deadline far beyond its time on a busy machine. */
export async function runTest(
  process: TestProcess,
  test: KnownTest,
  server: string | null,
  { mutant, server: weakened, steps }: Planted = {},
): Promise<TestAnswer> {
  const hits = mutant === undefined ? undefined : test.hits.get(mutant);
  return await process.ask({
    file: test.file,
    test: test.index,
    timeout_ms: Math.max(15_000, 8 * test.ms),
    steps,
    server: test.level === "pure" ? null : weakened ?? server,
    ...(mutant !== undefined && { mutant }),
    ...(hits !== undefined && { hit_limit: 1_000 + 100 * hits }),
  });
}

/**
 * Whether a test fails with a fault, and passes directly afterwards without it. A fault can leave
 * something behind in the process, so that a test is tried again in a new one.
 */
export async function notices(
  process: TestProcess,
  test: KnownTest,
  server: string | null,
  planted: Planted,
): Promise<boolean> {
  const fails = async (fault: Planted) =>
    (await runTest(process, test, server, fault)).error !== null;
  if (!await fails(planted)) return false;
  const { steps = "" } = planted;
  if (!await fails({ steps })) return true;
  await process.end();
  const is_noticed = await fails(planted);
  await process.end();
  return is_noticed && !await fails({ steps });
}

/** The drawn mutants and the test files learned so far. `learnTests` adds to the sets. */
export interface Knowledge {
  mutants: ReadonlyMap<string, { place: string; is_drawn: boolean }>;
  /** Mutants that are executed when a module is loaded. */
  at_start: Set<string>;
  /** Files with tests that need a database. */
  with_database: Set<string>;
}

/**
 * Runs every test of a file once and returns those that pass.
 * @param skipped the positions of tests that are known
 */
export async function learnTests(
  process: TestProcess,
  file: string,
  server: string | null,
  { mutants, at_start, with_database }: Knowledge,
  skipped: ReadonlySet<number>,
): Promise<KnownTest[]> {
  const found: KnownTest[] = [];
  const level = server === null ? "pure" : "database";
  const timeout_ms = LEARN_MS[level];
  const listed = await process.ask({ file, server, timeout_ms: 60_000 });
  for (const id of Object.keys(listed.hits)) at_start.add(id);
  if (listed.error?.includes(NO_SERVER)) with_database.add(file);
  for (const index of (listed.names ?? []).keys()) {
    if (skipped.has(index)) continue;
    const { error, ms, hits } = await process.ask({ file, test: index, server, timeout_ms });
    if (error?.includes(NO_SERVER)) with_database.add(file);
    if (error !== null) continue;
    const reached = Object.entries(hits);
    const places = new Map<string, number>();
    for (const [id] of reached) {
      const { place } = mutants.get(id)!;
      places.set(place, (places.get(place) ?? 0) + 1);
    }
    const of_drawn = new Map(reached.filter(([id]) => mutants.get(id)!.is_drawn));
    found.push({ file, index, level, ms, hits: of_drawn, places });
  }
  return found;
}
