/**
 * Runs shell blocks as a reader would who pastes them into one shell, one after another: a block
 * sees the variables of those before it, and a failure of one does not end the session.
 */

import { join } from "node:path";

/** What a block did. */
export interface ShellResult {
  stdout: string;
  stderr: string;
  code: number;
}

/** Takes the blocks as files; the name of its variable is none that a block would use. */
const SESSION = `
for readme_block; do
  . "$readme_block" >"$readme_block.out" 2>"$readme_block.err"
  echo $? >"$readme_block.code"
done`;

/** Runs the blocks in one bash that stands in `folder`. Errors: the session ended early. */
export async function runInOneShell(
  folder: string,
  blocks: readonly string[],
): Promise<ShellResult[]> {
  const work = await Deno.makeTempDir({ prefix: "payments-shell-" });
  try {
    const files = blocks.map((_, index) => join(work, `${index}.sh`));
    for (const [index, file] of files.entries()) await Deno.writeTextFile(file, blocks[index]!);
    const { code, stderr } = await new Deno.Command("bash", {
      args: ["-c", SESSION, "bash", ...files],
      cwd: folder,
      // No curl settings of this account, and no proxy between us and the loopback address.
      env: { CURL_HOME: work, NO_PROXY: "127.0.0.1", no_proxy: "127.0.0.1" },
      stdin: "null",
    }).output();
    if (code !== 0) throw new Error(`bash ended with ${code}: ${new TextDecoder().decode(stderr)}`);
    return await Promise.all(files.map(async (file) => ({
      stdout: await Deno.readTextFile(`${file}.out`),
      stderr: await Deno.readTextFile(`${file}.err`),
      code: Number(await Deno.readTextFile(`${file}.code`)),
    })));
  } finally {
    await Deno.remove(work, { recursive: true });
  }
}

/** Those of the programs that this machine has not. */
export async function missingPrograms(names: readonly string[]): Promise<string[]> {
  const missing: string[] = [];
  for (const name of names) {
    try {
      await new Deno.Command(name, { args: ["--version"], stdout: "null", stderr: "null" })
        .output();
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
      missing.push(name);
    }
  }
  return missing;
}
