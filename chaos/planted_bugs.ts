/**
 * `deno task planted-bugs`: puts known bugs into a copy of the project, one at a time, and checks that
 * a named test notices each. `--check` only checks that the file of each bug has the replaced text
 * exactly once. `--only <part of a name>` selects bugs.
 *
 * Exit codes: 0 if every bug was noticed, 1 if one was not or cannot be planted.
 */

import { parseArgs } from "node:util";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { BUGS, type PlantedBug } from "./bugs.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** A test that runs longer has not noticed the bug. */
const TEST_DEADLINE_MS = 600_000;

if (import.meta.main) Deno.exit(await main(Deno.args));

async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: { check: { type: "boolean" }, only: { type: "string", default: "" } },
  });
  const bugs = BUGS.filter(({ name }) => name.includes(values.only));
  const unplantable = (await Promise.all(bugs.map(findTexts))).flat();
  for (const fault of unplantable) console.error(fault);
  if (unplantable.length > 0 || bugs.length === 0) return 1;
  if (values.check) {
    console.log(`${bugs.length} bugs can be planted`);
    return 0;
  }
  const copy = await copyProject();
  try {
    let missed = 0;
    for (const noticed_by of new Set(bugs.map(({ noticed_by }) => noticed_by))) {
      if (await fails(copy, noticed_by) !== false) {
        console.error(`${noticed_by} fails without a bug, so it cannot notice one`);
        return 1;
      }
    }
    for (const bug of bugs) {
      const started = performance.now();
      const restore = await plant(copy, bug);
      const verdict = await fails(copy, bug.noticed_by);
      await restore();
      const seconds = Math.round((performance.now() - started) / 1_000);
      if (verdict !== true) missed++;
      const word = verdict === true ? "noticed" : verdict === false ? "MISSED " : "UNCLEAR";
      console.log(`${word} ${bug.name}: ${bug.noticed_by} (${seconds} s)`);
    }
    console.log(`${bugs.length - missed} of ${bugs.length} planted bugs noticed`);
    return missed === 0 ? 0 : 1;
  } finally {
    await Deno.remove(copy, { recursive: true });
  }
}

/** The reasons why a bug cannot be planted. */
async function findTexts({ name, edits }: PlantedBug): Promise<string[]> {
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
  const copy = await Deno.makeTempDir({ prefix: "payments-planted-" });
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

/** Plants a bug; the returned function removes it. */
async function plant(copy: string, { edits }: PlantedBug): Promise<() => Promise<void>> {
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
    ? ["run", "-A", "chaos/chaos.ts", "--seed", "1", ...rest]
    : ["run", "-A", "scripts/testing/test.ts", test];
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
