/**
 * Runs shell blocks like a reader who pastes them into one shell, one after another. A block
 * sees the variables and background jobs of those before it, and a failure of one does not end the
 * session. The `npx` that blocks find runs the Deno of the tests, and the packages that blocks
 * import are fetched before the first block, so that no output and no time depends on a cache.
 */

import { join } from "node:path";
import { outputOf } from "../common/running_command.ts";

/** The result of a block. */
interface ShellResult {
  stdout: string;
  stderr: string;
  code: number;
}

/** The result of a session. */
interface ShellSession {
  /** One for each block. */
  results: ShellResult[];
  /** Background jobs that no block has ended, one on each line. The session ends them. */
  left_running: string;
}

/** All blocks together take a few seconds. Only a block that hangs reaches this limit. */
const SESSION_MS = 180_000;
/** Tenths of a second in which a job must end after its signal, also on a busy machine. */
const ENDING_TENTHS = 200;

/**
 * The arguments are files with the blocks. No block uses the names of its variables. Blocks work
 * without job control, as in a script.
 */
const SESSION = `
for readme_block; do
  . "$readme_block" >"$readme_block.out" 2>"$readme_block.err"
  echo $? >"$readme_block.code"
done
for (( readme_tenth = 0; readme_tenth < ${ENDING_TENTHS}; readme_tenth++ )); do
  [ -z "$(jobs -rp)" ] && break
  sleep 0.1
done
jobs -r`;

/** Runs the session as a job, which is a process group, and ends what its blocks left running. */
const JOB = `
set -m
bash -c "$README_SESSION" bash "$@" &
trap "kill -- -$! 2>/dev/null" EXIT
trap 'exit 143' TERM
wait $!`;

/** Bash prints this line at any time after a job has ended. The line belongs to no block. */
const JOB_NOTICE = /^(?:\[\d+\]|.*: line \d+:).*\bTerminated\b.*\n/gm;

/** A script in place of `npx`. Like the real one, it does not pass signals on. */
const NPX = `#!/bin/sh
case "$1 $2" in
  "-y deno@"*) shift 2; "$README_DENO" "$@"; exit $? ;;
esac
echo "npx $*: only npx -y deno@<version> is known here" >&2
exit 1
`;

/**
 * Runs the blocks in one bash whose working directory is `folder`.
 * @throws {Error} if a package cannot be fetched, or the session ends early
 */
export async function runInOneShell(
  folder: string,
  blocks: readonly string[],
): Promise<ShellSession> {
  await fetchPackages(folder, blocks);
  const work = await Deno.makeTempDir({ prefix: "payments-shell-" });
  try {
    const files = blocks.map((_, index) => join(work, `${index}.sh`));
    for (const [index, file] of files.entries()) await Deno.writeTextFile(file, blocks[index]!);
    await Deno.writeTextFile(join(work, "npx"), NPX, { mode: 0o755 });
    const { code, stdout, stderr } = await new Deno.Command("bash", {
      args: ["-c", JOB, "bash", ...files],
      cwd: folder,
      // curl ignores the settings of this account, and uses no proxy for the loopback address.
      env: {
        CURL_HOME: work,
        NO_PROXY: "127.0.0.1",
        no_proxy: "127.0.0.1",
        PATH: `${work}:${Deno.env.get("PATH")}`,
        README_DENO: Deno.execPath(),
        README_SESSION: SESSION,
      },
      stdin: "null",
      // Without a terminal, because a process group in the background cannot read from one.
      detached: true,
      signal: AbortSignal.timeout(SESSION_MS),
    }).output();
    const [left_running, errors] = [stdout, stderr].map((text) => new TextDecoder().decode(text));
    if (code !== 0) {
      const ended = [...Deno.readDirSync(work)].filter(({ name }) => name.endsWith(".code")).length;
      throw new Error(`bash ended with ${code}: ${errors}\n${blocks[ended] ?? "after all blocks"}`);
    }
    const results = await Promise.all(files.map(async (file) => ({
      stdout: await Deno.readTextFile(`${file}.out`),
      stderr: (await Deno.readTextFile(`${file}.err`)).replace(JOB_NOTICE, ""),
      code: Number(await Deno.readTextFile(`${file}.code`)),
    })));
    return { results, left_running: left_running! };
  } finally {
    await Deno.remove(work, { recursive: true });
  }
}

/**
 * Fetches the packages that scripts in the blocks import, as Deno does in a folder without a lock.
 */
async function fetchPackages(folder: string, blocks: readonly string[]): Promise<void> {
  const specifiers = blocks.flatMap((block) =>
    [...block.matchAll(/\bfrom "(npm:[^"]+)"/g)].map(([, specifier]) => specifier!)
  );
  if (specifiers.length === 0) return;
  await outputOf([Deno.execPath(), "cache", ...specifiers], { cwd: folder });
}
