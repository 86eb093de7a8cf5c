/**
 * `deno task mutations`: makes one mutation at a time in a copy of the project, and checks that a
 * named test notices it. `--check` only checks that the file of each mutation has the replaced text
 * exactly once. `--only <part of a name>` selects mutations.
 *
 * Exit codes: 0 if every mutation was noticed, 1 if one was not or cannot be made.
 */

import { parseArgs } from "node:util";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Mutation, MUTATIONS } from "./mutation_cases.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** A test that runs longer has not noticed the mutation. */
const TEST_DEADLINE_MS = 600_000;

if (import.meta.main) Deno.exit(await main(Deno.args));

async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: { check: { type: "boolean" }, only: { type: "string", default: "" } },
  });
  const mutations = MUTATIONS.filter(({ name }) => name.includes(values.only));
  const faults = (await Promise.all(mutations.map(findTexts))).flat();
  for (const fault of faults) console.error(fault);
  if (faults.length > 0 || mutations.length === 0) return 1;
  if (values.check) {
    console.log(`${mutations.length} mutations can be made`);
    return 0;
  }
  const copy = await copyProject();
  try {
    let missed = 0;
    for (const noticed_by of new Set(mutations.map(({ noticed_by }) => noticed_by))) {
      if (await fails(copy, noticed_by) !== false) {
        console.error(`${noticed_by} fails without a mutation, so it cannot notice one`);
        return 1;
      }
    }
    for (const mutation of mutations) {
      const started = performance.now();
      const restore = await mutate(copy, mutation);
      const verdict = await fails(copy, mutation.noticed_by);
      await restore();
      const seconds = Math.round((performance.now() - started) / 1_000);
      if (verdict !== true) missed++;
      const word = verdict === true ? "noticed" : verdict === false ? "MISSED " : "UNCLEAR";
      console.log(`${word} ${mutation.name}: ${mutation.noticed_by} (${seconds} s)`);
    }
    console.log(`${mutations.length - missed} of ${mutations.length} mutations noticed`);
    return missed === 0 ? 0 : 1;
  } finally {
    await Deno.remove(copy, { recursive: true });
  }
}

/** The reasons why a mutation cannot be made. */
async function findTexts({ name, edits }: Mutation): Promise<string[]> {
  const faults: string[] = [];
  for (const { file, find } of edits) {
    const text = await Deno.readTextFile(join(ROOT, file)).catch(() => "");
    const count = text.split(find).length - 1;
    if (count !== 1) {
      faults.push(`"${name}": ${file} has the text to replace ${count} times: "${find}"`);
    }
  }
  return faults;
}

/** Copies the files that git lists into a temporary folder. */
async function copyProject(): Promise<string> {
  const copy = await Deno.makeTempDir({ prefix: "payments-mutation-" });
  await Deno.chmod(copy, 0o755);
  const listed = await new Deno.Command("git", {
    args: ["ls-files", "--cached", "--others", "--exclude-standard"],
    cwd: ROOT,
  }).output();
  if (!listed.success) throw new Error("git does not list the project's files");
  for (const file of new TextDecoder().decode(listed.stdout).split("\n")) {
    if (file === "" || !await Deno.stat(join(ROOT, file)).catch(() => null)) continue;
    await Deno.mkdir(dirname(join(copy, file)), { recursive: true });
    await Deno.copyFile(join(ROOT, file), join(copy, file));
  }
  return copy;
}

/** Makes a mutation; the returned function undoes it. */
async function mutate(copy: string, { edits }: Mutation): Promise<() => Promise<void>> {
  const before = new Map<string, string>();
  for (const { file, find, replace } of edits) {
    const path = join(copy, file);
    const text = await Deno.readTextFile(path);
    if (!before.has(path)) before.set(path, text);
    await Deno.writeTextFile(path, text.split(find).join(replace));
  }
  return async () => {
    for (const [path, text] of before) await Deno.writeTextFile(path, text);
  };
}

/** Whether a test fails by its assertions; null if it failed before them. */
async function fails(copy: string, test: string): Promise<boolean | null> {
  const [name, ...rest] = test.split(" ");
  const args = name === "chaos"
    ? ["run", "-A", "tests/chaos/chaos.ts", "--seed", "1", ...rest]
    : ["run", "-A", "tools/testing/test.ts", test];
  const child = new Deno.Command(Deno.execPath(), {
    args,
    cwd: copy,
    env: { NO_COLOR: "1", SEED: "1" },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const timer = setTimeout(() => child.kill("SIGTERM"), TEST_DEADLINE_MS);
  const { code, stdout, stderr } = await child.output();
  clearTimeout(timer);
  const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  if (code === 0) return false;
  const has_judged = name === "chaos" ? /^BROKEN /m.test(text) : /^FAILED \| /m.test(text) &&
    !/error: (TS\d+|Type checking failed|Relative import)/.test(text);
  if (!has_judged) console.error(text.slice(-2_000));
  return has_judged ? true : null;
}
