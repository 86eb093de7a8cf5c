/** Reads the repository of the project. */

import { runProgram } from "./run_program.ts";

/** Runs git and returns its output. @throws {Error} if it fails */
export function git(cwd: string, args: readonly string[]): Promise<string> {
  return runProgram(["git", ...args], { cwd });
}

/** Returns the commit of a repository, and whether files differ; `unknown` outside of one. */
export async function readCommit(root: string): Promise<string> {
  try {
    const changes = await git(root, [
      ...["status", "--porcelain", "--untracked-files=no"],
      // Reports of runs name the commit that ran.
      ...["--", ".", ":!*/last_run*"],
    ]);
    const commit = await git(root, ["rev-parse", "--short", "HEAD"]);
    return commit.trim() + (changes === "" ? "" : " with changes");
  } catch {
    return "unknown";
  }
}
