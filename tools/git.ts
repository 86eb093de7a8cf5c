/** Reads the repository of the project. */

/** Runs git and returns its output. @throws {Error} if it fails */
export async function git(cwd: string, args: readonly string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command("git", { args: [...args], cwd })
    .output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
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
