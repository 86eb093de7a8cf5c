/**
 * The process in which `deno task mutants` runs tests. It runs in a copy of the project, loads a
 * test file once, and runs its tests as often as they are asked for, with and without a fault.
 * Requests and answers are lines of JSON on its standard input and output.
 */

import process from "node:process";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** A request to run one test, to list the tests of a file, or to end. */
export interface TestRequest {
  file?: string;
  /** The position of the test in its file. Without it the tests are listed. */
  test?: number;
  mutant?: string;
  /** How often the mutant may be executed: beyond that it has made a loop endless. */
  hit_limit?: number;
  /** The content of TEST_SERVER; null for tests without a database. */
  server?: string | null;
  /** Only steps with this text in their name run. */
  steps?: string | undefined;
  timeout_ms: number;
}

/** The result of a request. */
export interface TestAnswer {
  /** The names of the tests, if they were asked for. */
  names?: string[];
  /** Why the test failed, or the file cannot be loaded; null if neither. */
  error: string | null;
  /** Whether work of the test may still be going on, so this process is to run no more tests. */
  is_dirty: boolean;
  ms: number;
  /** How often the test, or the loading of the file, executed each mutant. */
  hits: Record<string, number>;
}

/** Begins each line with an answer; other lines are output of tests. */
export const ANSWER = "\u0001";

interface StrykerState {
  activeMutant?: string | undefined;
  currentTestId?: string | undefined;
  hitCount?: number | undefined;
  hitLimit?: number | undefined;
  mutantCoverage?: { perTest: Record<string, Record<string, number>> };
}
type Body = (t: Deno.TestContext) => unknown;
interface Definition {
  name: string;
  fn: Body;
  ignore?: boolean;
}

const stryker: StrykerState = {};
const loaded = new Map<string, Definition[] | Error>();
const before: (() => unknown)[] = [];
const after: (() => unknown)[] = [];
let registered: Definition[] = [];
/** Steps of the present test run if their name has this text. */
let steps = "";
let runs = 0;
/** Ends the test that runs now with an error that it has not caught. */
let failNow: (error: unknown) => void = () => {};

/** `collectTests` replaces `Deno.exit`, which `process.exit` calls too. */
const { exit: endProcess } = Deno;

if (import.meta.main) await main();

async function main() {
  Object.assign(globalThis, { __stryker__: stryker });
  collectTests();
  for (const type of ["unhandledrejection", "error"] as const) {
    addEventListener(type, (event) => {
      event.preventDefault();
      failNow(event instanceof ErrorEvent ? event.error : (event as PromiseRejectionEvent).reason);
    });
  }
  const write = Deno.stdout.writeSync.bind(Deno.stdout);
  for await (const line of createInterface({ input: process.stdin })) {
    const request = JSON.parse(line) as TestRequest;
    if (request.file === undefined) break;
    const bytes = new TextEncoder().encode(
      `\n${ANSWER}${JSON.stringify(await respond(request))}\n`,
    );
    for (let rest = bytes; rest.length > 0;) rest = rest.subarray(write(rest));
  }
  for (const hook of after) await Promise.resolve(hook()).catch(() => {});
  Object.assign(Deno, { exit: endProcess });
  process.exit(0);
}

/** Makes `Deno.test` keep tests. A test cannot end this process. */
function collectTests() {
  const register = (...args: unknown[]) => {
    const body = args.findLast((arg) => typeof arg === "function") as Body | undefined;
    const parts = args.filter((arg) => typeof arg === "object") as Partial<Definition>[];
    const named = typeof args[0] === "string" ? { name: args[0] } : {};
    const options = Object.assign({ name: body?.name ?? "" }, ...parts, named);
    registered.push({ ...options, fn: options.fn ?? body });
  };
  Object.assign(register, {
    beforeAll: (hook: () => unknown) => before.push(hook),
    afterAll: (hook: () => unknown) => after.push(hook),
    ignore: () => {},
    only: register,
  });
  const exit = (code?: number) => {
    throw new Error(`a test has called Deno.exit(${code})`);
  };
  Object.assign(Deno, { test: register, exit });
}

async function respond(request: TestRequest): Promise<TestAnswer> {
  const { file, test, server = null, timeout_ms } = request;
  Deno.env.set("TEST_SERVER", server ?? "");
  const loading = await measured(timeout_ms, () => load(file!));
  if (loading.error !== null || test === undefined) {
    const tests = loaded.get(file!);
    return { ...loading, names: Array.isArray(tests) ? tests.map(({ name }) => name) : [] };
  }
  const { fn, name, ignore } = (loaded.get(file!) as Definition[])[test]!;
  if (ignore) return { error: "ignored", is_dirty: false, ms: 0, hits: {} };
  switchOn(request.mutant, request.hit_limit);
  steps = request.steps ?? "";
  try {
    return await measured(timeout_ms, () => fn(contextOf(name)));
  } finally {
    switchOn(undefined);
  }
}

/** Programs that the test starts from the same copy get the mutant by their environment. */
function switchOn(mutant: string | undefined, hit_limit?: number) {
  const at_start = Deno.env.get("MUTANT_FROM_START");
  Object.assign(stryker, { activeMutant: mutant ?? at_start, hitLimit: hit_limit });
  stryker.hitCount = hit_limit === undefined ? undefined : 0;
  if (stryker.activeMutant === undefined) Deno.env.delete("__STRYKER_ACTIVE_MUTANT__");
  else Deno.env.set("__STRYKER_ACTIVE_MUTANT__", stryker.activeMutant);
}

async function load(file: string) {
  if (!loaded.has(file)) {
    switchOn(undefined);
    registered = [];
    try {
      await import(pathToFileURL(join(Deno.cwd(), file)).href);
      for (const hook of before.splice(0)) await hook();
      loaded.set(file, registered);
    } catch (error) {
      loaded.set(file, error as Error);
    }
  }
  const tests = loaded.get(file);
  if (tests instanceof Error) throw tests;
}

/** Runs work up to its deadline or an error outside of it. */
async function measured(timeout_ms: number, work: () => unknown): Promise<TestAnswer> {
  const id = `run ${++runs}`;
  stryker.currentTestId = id;
  const started = performance.now();
  let is_dirty = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const ended = new Promise<never>((_, reject) => {
    failNow = (error) => {
      is_dirty = true;
      reject(error);
    };
    timer = setTimeout(() => failNow(new Error("the test did not end")), timeout_ms);
  });
  ended.catch(() => {});
  let error: string | null = null;
  try {
    await Promise.race([(async () => await work())(), ended]);
  } catch (thrown) {
    error = String(thrown instanceof Error ? thrown.stack ?? thrown : thrown).slice(0, 2_000);
  }
  clearTimeout(timer);
  failNow = () => {};
  stryker.currentTestId = undefined;
  const hits = stryker.mutantCoverage?.perTest[id] ?? {};
  delete stryker.mutantCoverage?.perTest[id];
  return { error, is_dirty, ms: Math.round(performance.now() - started), hits };
}

/** The argument of a test. A failed step ends the test. */
function contextOf(name: string, parent?: Deno.TestContext): Deno.TestContext {
  const context = { name, origin: import.meta.url, ...(parent && { parent }) };
  const step = async (first: unknown, body?: unknown) => {
    const { name, fn, ignore } = typeof first === "string"
      ? { name: first, fn: body as Body, ignore: false }
      : typeof first === "function"
      ? { name: first.name, fn: first as Body, ignore: false }
      : first as Definition;
    const is_run = !ignore && (parent !== undefined || name.includes(steps));
    if (is_run) await fn(contextOf(name, result));
    return is_run;
  };
  const result = { ...context, step } as Deno.TestContext;
  return result;
}
