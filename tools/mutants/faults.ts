/**
 * The faults that `deno task mutants` plants, one at a time: mutants of `shared/`, fixes of the
 * history taken back, and constraints, policies and triggers of the database dropped. Each has a
 * name that a change elsewhere in its file leaves as it is.
 */

import { createInstrumenter, type Instrumenter } from "@stryker-mutator/instrumenter";
import { createInjector } from "typed-inject";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { globSync } from "node:fs";
import { relative } from "node:path";
import type postgres from "postgres";
import { git } from "../git.ts";

/** The part of the project that a fault changes. */
export type FaultKind = "mutant" | "fix" | "sql";

export interface Fault {
  kind: FaultKind;
  /** Unique, and the same in the next run. */
  name: string;
  /** The change in words of the code, for readers. */
  change: string;
  /** The file of the project with the fault; of a `sql` fault the table. */
  place: string;
  /** `mutant`: the number by which it is switched on. `fix`: the patch. `sql`: the statement. */
  plant: string;
  /** Test files that its commit has changed. */
  own_tests: readonly string[];
}

/**
 * Mutators that are left out: texts and members are mostly messages and rows of tables, and an
 * empty list or a removed call of a chain seldom compiles.
 */
const LEFT_OUT = ["StringLiteral", "ObjectLiteral", "ArrayDeclaration", "CallExpression", "Regex"];
/** Maximum length of a change in words. */
const CHANGE_LENGTH = 100;

/** Returns the first `count` faults in the order of a hash, so a larger count has the same ones. */
export function draw(faults: readonly Fault[], count: number): Fault[] {
  const rank = new Map(faults.map((fault) => [fault, hash(fault.name)]));
  return faults.toSorted((a, b) => rank.get(a)! < rank.get(b)! ? -1 : 1).slice(0, count);
}

/**
 * Writes the files of `shared/` in the copy with all mutants in them, each behind a switch.
 * @param copy the root of a copy of the project
 * @returns every mutant
 */
export async function instrument(copy: string): Promise<Fault[]> {
  const paths = globSync(`${copy}/shared/**/*.ts`).sort();
  const files = paths.map((name) => ({
    name,
    mutate: true as const,
    content: Deno.readTextFileSync(name),
  }));
  const result = await instrumenter().instrument(files, {
    plugins: null,
    excludedMutations: LEFT_OUT,
    ignorers: [],
  });
  for (const { name, content } of result.files) {
    await Deno.writeTextFile(name, `// deno-lint-ignore-file\n// deno-fmt-ignore-file\n${content}`);
  }
  const texts = new Map(files.map(({ name, content }) => [name, content.split("\n")]));
  const seen = new Map<string, number>();
  const planted = result.mutants.filter(({ status }) => status !== "Ignored");
  return planted.map(({ id, fileName, location, mutatorName, replacement = "" }) => {
    const place = relative(copy, fileName);
    const original = textAt(texts.get(fileName)!, location);
    const change = `${short(original)} → ${short(replacement)}`;
    const key = `${place} ${mutatorName} ${hash(`${original}→${replacement}`)}`;
    const count = (seen.get(key) ?? 0) + 1;
    seen.set(key, count);
    const name = count === 1 ? key : `${key} ${count}`;
    return { kind: "mutant", name, change, place, plant: id, own_tests: [] };
  });
}

/**
 * Reads the hunks of the commits `fix…` that can still be taken back.
 * @param root the project with its history
 */
export async function oldFixes(root: string): Promise<Fault[]> {
  const log = await git(root, ["log", "--format=%h", "--no-merges", "-E", "--grep=^fix[(:]"]);
  const faults: Fault[] = [];
  for (const commit of log.split("\n").filter((line) => line !== "")) {
    const changed = (await git(root, ["show", "--format=", "--name-only", commit])).split("\n");
    const own_tests = changed.filter((file) => file.endsWith("_test.ts"));
    const patch = await git(root, ["show", "--format=", "-U3", commit, "--", "shared", SCHEMAS]);
    for (const { place, hunk, text } of hunksOf(patch)) {
      if (!applyBack(root, text, ["--check"])) continue;
      const [change = ""] = text.split("\n").filter((line) => /^[-+](?![-+])/.test(line));
      const name = `${commit} ${place} ${hash(hunk)}`;
      faults.push({ kind: "fix", name, change: short(change), place, plant: text, own_tests });
    }
  }
  return faults;
}

const SCHEMAS = "supabase/schemas";

/**
 * Lists the constraints, policies and triggers of the tables of `pay`. A dropped policy would show
 * nothing to anybody, so it allows everything instead.
 */
export async function sqlObjects(sql: postgres.Sql): Promise<Fault[]> {
  const rows = await sql<{ name: string; place: string; change: string; plant: string }[]>`
    select t::text || ' constraint ' || c.conname as name, t::text as place,
      pg_get_constraintdef(c.oid) as change,
      format('alter table %s drop constraint %I cascade', t, c.conname) as plant
    from pg_constraint c cross join lateral (select c.conrelid::regclass as t) as on_table
    where c.connamespace = 'pay'::regnamespace and c.contype in ('c', 'u', 'f', 'x')
      and c.conparentid = 0
    union all
    select t::text || ' policy ' || p.polname, t::text,
      concat_ws(' check ', pg_get_expr(p.polqual, t), pg_get_expr(p.polwithcheck, t)),
      format('alter policy %I on %s', p.polname, t)
        || case when p.polqual is null then '' else ' using (true)' end
        || case when p.polwithcheck is null then '' else ' with check (true)' end
    from pg_policy p cross join lateral (select p.polrelid::regclass as t) as on_table
    union all
    select r.oid::regclass::text || ' trigger ' || t.tgname, r.oid::regclass::text,
      pg_get_triggerdef(t.oid), format('drop trigger %I on %s', t.tgname, r.oid::regclass)
    from pg_trigger t join pg_class r on r.oid = t.tgrelid
    where r.relnamespace = 'pay'::regnamespace and not t.tgisinternal and t.tgparentid = 0
    order by 1`;
  return rows.map((row) => ({ ...row, kind: "sql", change: short(row.change), own_tests: [] }));
}

function instrumenter(): Instrumenter {
  const silent = new Proxy({}, {
    get: (_, name) => String(name).startsWith("is") ? () => false : () => {},
  });
  const injector = createInjector().provideValue("logger", silent as never);
  return injector.injectFunction(createInstrumenter as never);
}

interface Range {
  start: { line: number; column: number };
  end: { line: number; column: number };
}

function textAt(lines: readonly string[], { start, end }: Range): string {
  const part = lines.slice(start.line, end.line + 1);
  part[part.length - 1] = part.at(-1)!.slice(0, end.column);
  part[0] = part[0]!.slice(start.column);
  return part.join("\n");
}

function* hunksOf(patch: string): Generator<{ place: string; hunk: string; text: string }> {
  for (const file of patch.split(/^(?=diff --git )/m)) {
    const place = /^\+\+\+ b\/(.+)$/m.exec(file)?.[1];
    const at = file.search(/^@@ /m);
    if (place === undefined || at === -1 || place.endsWith("openapi_document.ts")) continue;
    for (const hunk of file.slice(at).split(/^(?=@@ )/m)) {
      yield { place, hunk, text: file.slice(0, at) + hunk };
    }
  }
}

/** Takes a patch back in a folder. Returns false if it does not fit. */
export function applyBack(folder: string, patch: string, flags: readonly string[] = []): boolean {
  const args = ["apply", "--reverse", ...flags, "-"];
  return spawnSync("git", args, { cwd: folder, input: patch }).status === 0;
}

function short(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= CHANGE_LENGTH ? line : `${line.slice(0, CHANGE_LENGTH - 1)}…`;
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}
